//! The table from a method's name to its message.

use std::ops::ControlFlow;

use cofferdam_actors::Carries;
use cofferdam_actors::pod::{Call, Failure, Pod, Reply};
use cofferdam_protocol::pod::*;
use serde_json::{Value, json};

use super::lifetime::{Cause, Lifetime};
use super::outbox::Ticket;

/// Where requests go.
pub(super) struct Translator {
    pub(super) pod: Pod,
    pub(super) lifetime: Lifetime,
}

/// Hands a request over to the actors. `Break` if it is the last one to be taken.
type HandOver = fn(&Translator, &Request, Ticket) -> ControlFlow<()>;

macro_rules! table {
    ($($method:ident => $hand_over:expr,)+) => {
        /// How to hand over each method there is.
        const TABLE: &[(&str, HandOver)] = &[$(($method::NAME, $hand_over)),+];
    };
}

table! {
    Initialize => initialize,
    Shutdown => shutdown,
    Health => plain::<Health>,
    DiagnosticsGet => plain::<DiagnosticsGet>,
    ConfigGet => plain::<ConfigGet>,
    ConfigValidate => plain::<ConfigValidate>,
    ConfigSet => plain::<ConfigSet>,
    TaskList => long::<TaskList>,
    TaskGet => plain::<TaskGet>,
    TaskReserve => plain::<TaskReserve>,
    TaskReattach => plain::<TaskReattach>,
    TaskMarkStarting => plain::<TaskMarkStarting>,
    TaskMarkRunning => plain::<TaskMarkRunning>,
    TaskTurnStarted => plain::<TaskTurnStarted>,
    TaskTurnEnded => plain::<TaskTurnEnded>,
    TaskSetLastText => plain::<TaskSetLastText>,
    TaskSetSandboxCheck => plain::<TaskSetSandboxCheck>,
    TaskSetAvailableTools => plain::<TaskSetAvailableTools>,
    TaskSetError => plain::<TaskSetError>,
    TaskCancel => plain::<TaskCancel>,
    TaskHeartbeat => plain::<TaskHeartbeat>,
    TaskCleanupFiles => plain::<TaskCleanupFiles>,
    TaskDelete => plain::<TaskDelete>,
    TaskBySession => plain::<TaskBySession>,
    TaskLegacyLog => long::<TaskLegacyLog>,
    TaskBulkCleanup => plain::<TaskBulkCleanup>,
    SandboxPrepare => plain::<SandboxPrepare>,
    FilesList => long::<FilesList>,
    FilesStat => plain::<FilesStat>,
    FilesRead => long::<FilesRead>,
    ExportCreate => long::<ExportCreate>,
    ExportList => long::<ExportList>,
    ExportUndo => long::<ExportUndo>,
    ExportDeleteRecord => plain::<ExportDeleteRecord>,
}

impl Translator {
    /// Turns a line into a message, or answers what is wrong with it. `Break` if it is the last one to be taken.
    pub(super) fn line(&self, line: Line, ticket: Ticket) -> ControlFlow<()> {
        let request = match line {
            Line::Whole(bytes) => Request::parse(&bytes),
            Line::TooLong => {
                let message = format!("the line is too long; the limit is {MAX_REQUEST_LINE} bytes");
                refuse(ticket, None, PodErrorCode::BadRequest, message, json!({"limit": MAX_REQUEST_LINE}));
                return ControlFlow::Continue(());
            }
        };
        match request {
            Ok(request) => self.request(&request, ticket),
            Err(BadRequest { id, message }) => {
                refuse(ticket, id.as_deref(), PodErrorCode::BadRequest, message, Value::Null);
                ControlFlow::Continue(())
            }
        }
    }

    fn request(&self, request: &Request, ticket: Ticket) -> ControlFlow<()> {
        let name = request.method.as_str();
        if let Some((_, hand_over)) = TABLE.iter().find(|(known, _)| *known == name) {
            return hand_over(self, request, ticket);
        }
        let message = format!("no such method: {name}");
        refuse(ticket, Some(&request.id), PodErrorCode::UnknownMethod, message, Value::Null);
        ControlFlow::Continue(())
    }
}

/// A method about which the adapter need not know anything.
fn plain<M: Method>(to: &Translator, request: &Request, ticket: Ticket) -> ControlFlow<()>
where
    Pod: Carries<Call<M>>,
{
    if let Some((params, ticket)) = params::<M>(request, ticket) {
        call(to, request, params, ticket);
    }
    ControlFlow::Continue(())
}

/// The same, if what it answers can fill a line.
fn long<M: Method>(to: &Translator, request: &Request, mut ticket: Ticket) -> ControlFlow<()>
where
    Pod: Carries<Call<M>>,
{
    ticket.expect_long_answer();
    plain::<M>(to, request, ticket)
}

/// The host says who it is.
fn initialize(to: &Translator, request: &Request, ticket: Ticket) -> ControlFlow<()> {
    if let Some((params, mut ticket)) = params::<Initialize>(request, ticket) {
        if let Some(pid) = params.host_pid {
            to.lifetime.watch_host(pid);
        }
        ticket.expect_long_answer();
        call(to, request, params, ticket);
    }
    ControlFlow::Continue(())
}

/// The host sends nothing more that counts.
fn shutdown(to: &Translator, request: &Request, ticket: Ticket) -> ControlFlow<()> {
    let Some((params, ticket)) = params::<Shutdown>(request, ticket) else {
        return ControlFlow::Continue(());
    };
    call(to, request, params, ticket);
    to.lifetime.end(Cause::Shutdown);
    ControlFlow::Break(())
}

/// The params, if they are the method's.
fn params<M: Method>(request: &Request, ticket: Ticket) -> Option<(M, Ticket)> {
    match request.params::<M>() {
        Ok(params) => Some((params, ticket)),
        Err(message) => {
            tracing::debug!(method = M::NAME, code = ?PodErrorCode::BadRequest, "refused");
            refuse(ticket, Some(&request.id), PodErrorCode::BadRequest, message, Value::Null);
            None
        }
    }
}

fn call<M: Method>(to: &Translator, request: &Request, params: M, ticket: Ticket)
where
    Pod: Carries<Call<M>>,
{
    let id = request.id.clone();
    let reply = Reply::new(move |answer| {
        ticket.answer(match answer {
            Ok(result) => answer_line(&id, result),
            Err(Failure { code, message, data }) => {
                tracing::debug!(method = M::NAME, ?code, "refused");
                error_line(Some(&id), &WireError { code, message, data })
            }
        });
    });
    // Nothing brings them back but a new process.
    if !Carries::<Call<M>>::recipient(&to.pod).connected() {
        to.lifetime.end(Cause::ActorsGone);
    }
    to.pod.call(params, reply);
}

fn refuse(ticket: Ticket, id: Option<&str>, code: PodErrorCode, message: String, data: Value) {
    ticket.answer(error_line(id, &WireError { code, message, data }));
}

#[cfg(test)]
mod tests;
