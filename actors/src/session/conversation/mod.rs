//! A conversation over lines: what the headless program does.
//!
//! It is one task, and where that task waits is its state: for a line, for a piece of an answer, for a person's consent,
//! for a tool, or for the disk. Lines that come while it waits for something else keep their order; only an interrupt is
//! taken at once.

mod lines;
mod sink;
mod start;
mod turn;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cofferdam_protocol::session::headless::{
    ErrorLine, Input, MalformedLine, Output, ShellContext, System, UserLine,
};
use cofferdam_protocol::session::{Envelope, bounded, limits};
use cofferdam_storage::clock::{Clock, IdGen};
use cofferdam_storage::session::SessionStore;

use super::Sessions;
use super::provider::Provider;
use super::tool::{Place, Tool};

pub use super::process::Processes;
pub use lines::{Line, LineSource};
pub use sink::OutputSink;
pub use start::{Options, hold};

use lines::Lines;

/// What a conversation works with.
#[derive(Clone)]
pub struct Parts {
    /// The way to the stored conversations.
    pub sessions: Sessions,
    /// Where lines are put.
    pub sink: Arc<dyn OutputSink>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Ids of new conversations.
    pub ids: Arc<dyn IdGen>,
    /// The programs that run for it.
    pub processes: Processes,
}

/// How a conversation came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There was nothing more to do, or no conversation that could be resumed. Whether turns went well their results say.
    Done,
    /// A line could not be read, so what the client meant is not known any more.
    Malformed,
    /// A tool was asked for that there is not.
    UnknownTools,
}

/// A conversation that was begun or resumed.
struct Conversation {
    parts: Parts,
    /// Where turns are kept, if they are.
    store: Option<Arc<SessionStore>>,
    envelope: Envelope,
    provider: Arc<dyn Provider>,
    tools: Vec<Arc<dyn Tool>>,
    lines: Lines,
    /// Where the person's shell is.
    place: Place,
    /// How many requests the client was sent.
    requests: u64,
}

impl Conversation {
    /// One turn.
    async fn one_shot(&mut self, prompt: &str) {
        if self.store.is_none() {
            self.put(self.init());
        }
        self.turn(prompt).await;
    }

    /// Takes line after line.
    async fn converse(&mut self) -> Ended {
        while let Some(line) = self.lines.next().await {
            match line {
                Ok(Input::User(line)) => self.user(line).await,
                Ok(Input::Initialize { request_id }) => {
                    self.put(Output::initialized(request_id));
                    self.put(self.init());
                }
                Ok(Input::SwitchModel { model }) => {
                    self.put(Output::status(format!("model_switched:{model}")));
                    self.envelope.model = model;
                }
                Ok(Input::ConfigOverride) => self.put(Output::status("config_override_applied")),
                Ok(Input::ReloadConfig) => self.put(Output::status("config_reloaded")),
                // There is nothing to interrupt or to answer.
                Ok(Input::Interrupt | Input::Answer(_) | Input::Registry) => {}
                Ok(Input::Shutdown) => break,
                Err(malformed @ MalformedLine) => {
                    let text = malformed.to_string();
                    self.put(ErrorLine::of_client(self.id(), "InvalidJsonlInput", text));
                    return Ended::Malformed;
                }
            }
            self.parts.sink.room().await;
        }
        Ended::Done
    }

    async fn user(&mut self, UserLine { content, session_id, shell_context }: UserLine) {
        if let Some(other) = session_id.filter(|id| !["", "default", self.id()].contains(&id.as_str())) {
            let text = format!("session identity conflict: initialized {}, received {other}", self.id());
            return self.put(ErrorLine::new(self.id(), text));
        }
        if let Some(ShellContext { cwd, env, .. }) = shell_context {
            self.place = Place { cwd: Some(cwd.into()), variables: env };
        }
        self.turn(&content).await;
    }

    fn id(&self) -> &str {
        &self.envelope.session_id
    }

    /// Who is here.
    fn init(&self) -> Output {
        Output::System(System::Init {
            session_id: self.id().to_owned(),
            session_resumable: self.store.is_some(),
            model: bounded(&self.envelope.model, limits::MODEL),
            tools: self.tools.iter().map(|tool| tool.name().to_owned()).collect(),
        })
    }

    fn put(&self, line: impl Into<Output>) {
        self.parts.sink.put(&line.into());
    }
}
