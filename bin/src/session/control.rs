//! The adapter of the management protocol: one request on stdin becomes one message, its reply one line on stdout.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use cofferdam_actors::session::{
    self, ClearSessions, InspectSession, ListSessions, Parts, PrepareClearAll, Sessions, ValidateSession,
    error_of,
};
use cofferdam_protocol::session::{SessionData, SessionError, SessionRequest, SessionResponse, limits};
use cofferdam_storage::session::Error;

use crate::logging;
use crate::stdio::Inherited;

/// Carries the request on stdin out and answers it. Fails if the request does, or if nobody takes the answer.
pub(crate) fn run(parts: Parts) -> ExitCode {
    logging::start("warn");
    let (line, succeeded) = SessionResponse::of(read().and_then(|request| carry_out(parts, request))).line();
    let written = Inherited(io::stdout()).write_all(&line);
    if succeeded && written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The request. Of one that is too long no more is read than shows that it is.
fn read() -> Result<SessionRequest, SessionError> {
    let invalid = |why: String| error_of(&Error::InvalidRequest(why));
    let mut bytes = Vec::new();
    let read = Inherited(io::stdin()).take(limits::REQUEST as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| invalid(format!("standard input cannot be read: {error}")))?;
    SessionRequest::parse(&bytes).map_err(|unreadable| invalid(unreadable.to_string()))
}

fn carry_out(parts: Parts, request: SessionRequest) -> Result<SessionData, SessionError> {
    // Without its I/O driver, which would make sockets and an epoll descriptor that nothing here needs.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime
        .map_err(|source| error_of(&Error::Io { operation: "set-up", path: "the program".into(), source }))?;
    actix::System::with_tokio_rt(|| runtime).block_on(async { send(&session::start(parts), request).await })
}

/// Sends the message that a request is.
async fn send(sessions: &Sessions, request: SessionRequest) -> Result<SessionData, SessionError> {
    match request {
        SessionRequest::List(request) => sessions.ask(ListSessions(request)).await,
        SessionRequest::Inspect(request) => sessions.ask(InspectSession(request)).await,
        SessionRequest::Validate(request) => sessions.ask(ValidateSession(request)).await,
        SessionRequest::PrepareClearAll(request) => sessions.ask(PrepareClearAll(request, Vec::new())).await,
        SessionRequest::Clear(request) => sessions.ask(ClearSessions(request, Vec::new())).await,
    }
}
