//! The client of the management protocol: blocking, one run of `cosh-core --session-control` per request.
//!
//! A call always comes back within its deadline, plus the quarter of a second that a program gets to end by itself, and
//! leaves nothing behind: no process of the program's group, no descriptor, no thread.
//!
//! ```no_run
//! use cofferdam::session::{ClientError, SessionControlClient, SessionCore};
//!
//! # fn main() -> Result<(), ClientError> {
//! let client = SessionControlClient::discover();
//! let session = client.validate("/home/user/project", "2d711642-b726-4b04-8d2a-8a0470f4ed24")?;
//! println!("{:?}: {} messages", session.first_prompt, session.message_count);
//! # Ok(())
//! # }
//! ```

mod answer;
mod error;
mod exchange;
mod leader;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cofferdam_actors::session::recovery::{ClientError, SessionCore};
use cofferdam_protocol::session::{SessionData, SessionRequest};

use crate::deadline::Deadline;
use crate::paths::Environment;
use error::TransportError;

/// A client of the program that keeps conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionControlClient {
    program: PathBuf,
    /// What comes before `--session-control`, if the program has other parts to play.
    part: Option<&'static str>,
    timeout: Duration,
}

impl SessionControlClient {
    /// How long a call may take unless said otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// The client of the program at `$COSH_CORE_PATH`, else of the `cosh-core` beside the running program, else of the
    /// one that the search path finds.
    pub fn discover() -> Self {
        Self::new(found(named(), std::env::current_exe().ok()).unwrap_or_else(|| "cosh-core".into()))
    }

    /// The same where `cofferdam` is the running program, which can play the part of one that is not beside it.
    pub(crate) fn of_cofferdam() -> Self {
        let running = std::env::current_exe().ok();
        match (found(named(), running.clone()), running) {
            (None, Some(running)) => Self { part: Some("cosh-core"), ..Self::new(running) },
            _ => Self::discover(),
        }
    }

    /// The client of a certain program; a name without a slash is looked for along the search path.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), part: None, timeout: Self::DEFAULT_TIMEOUT }
    }

    /// The same with another deadline for each run of the program.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.part).arg("--session-control");
        command
    }
}

impl SessionCore for SessionControlClient {
    /// Runs the program for one request.
    fn ask(&self, request: SessionRequest) -> Result<SessionData, ClientError> {
        let deadline = Deadline::after(Some(self.timeout));
        let text = serde_json::to_vec(&request).map_err(TransportError::Encode)?;
        let printed = exchange::run(self.command(), &text, &deadline)?;
        answer::read(&printed, request.action())
    }
}

fn named() -> Option<PathBuf> {
    Environment::of_process().cosh_core()
}

/// The program that is named, else the one beside the running one.
fn found(named: Option<PathBuf>, running: Option<PathBuf>) -> Option<PathBuf> {
    named.or_else(|| Some(running?.with_file_name("cosh-core")).filter(|path| path.is_file()))
}
