//! What a failed verb says.

use std::io;

use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_storage::ckpt::config::ConfigError;

use super::arguments::Verb;
use super::invocation::Invocation;
use super::shown::one_line;
use crate::checkpoint::CkptError;
use crate::control::ControlError;
use crate::paths::NoHome;

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The daemon refused, or could not be asked.
    #[error(transparent)]
    Ckpt(#[from] CkptError),
    /// The same over the control API.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The configuration cannot be used or changed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be looked at.
    #[error(transparent)]
    Store(#[from] cofferdam_storage::ckpt::Error),
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// Printing, or asking the system, failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// In the verb's own words.
    #[error("{0}")]
    Said(String),
    /// All of it was said already.
    #[error("failed")]
    Shown,
}

impl Failure {
    /// Whether whoever read the output has had enough.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Says what failed and what to do.
    pub(super) fn explain(&self, verb: &Verb, invocation: &mut Invocation) {
        let program = invocation.program;
        let (text, hint) = match self {
            Self::Shown => return,
            Self::Ckpt(error) => explain(error, verb, program),
            Self::Control(error @ ControlError::Refused { code, .. }) => {
                (format!("Error {error}"), hint_of_control(code, program))
            }
            Self::Control(error @ ControlError::Unreachable { .. }) => {
                (format!("Error: {error}"), Some(START_ONE.to_owned()))
            }
            other => (format!("Error: {other}"), None),
        };
        // Daemons name paths, and whoever made those may mean to steer the terminal.
        invocation.terminal.complain(one_line(&text));
        if let Some(hint) = hint {
            invocation.terminal.say(format_args!("Hint: {hint}"));
        }
    }
}

const START_ONE: &str =
    "start a daemon with 'cofferdam serve' or 'ws-ckpt daemon', or name its socket with --socket";

/// The wording on which agents' plug-ins match: the bare message where something can be done about it, else the code
/// before it.
fn explain(error: &CkptError, verb: &Verb, program: &str) -> (String, Option<String>) {
    let has_hints = matches!(verb, Verb::Init(_) | Verb::Checkpoint(_) | Verb::Rollback(_) | Verb::Delete(_));
    match error {
        CkptError::Daemon { code, message } => match hint_of(*code, program).filter(|_| has_hints) {
            Some(hint) => (message.clone(), Some(hint)),
            None => (format!("Error [{code}]: {message}"), None),
        },
        CkptError::Connection { .. } => (format!("Error: {error}"), Some(START_ONE.to_owned())),
        CkptError::Timeout(_) | CkptError::Protocol(_) => (format!("Error: {error}"), None),
    }
}

/// For a code of the control API.
fn hint_of_control(code: &str, program: &str) -> Option<String> {
    // A route it does not know.
    if code == "NotFound" {
        return Some("the daemon is of an older version than this program; start it anew".to_owned());
    }
    let known = [Code::WorkspaceNotFound, Code::SnapshotAlreadyExists, Code::DiskSpaceInsufficient];
    let known = known.into_iter().find(|known| known.to_string() == *code);
    known.and_then(|code| hint_of(code, program))
}

fn hint_of(code: Code, program: &str) -> Option<String> {
    match code {
        Code::WorkspaceNotFound => Some(format!("register it first: {program} init -w <path>")),
        Code::SnapshotNotFound => {
            Some(format!("see which snapshots there are: {program} list -w <workspace>"))
        }
        Code::SnapshotAlreadyExists => {
            Some(format!("choose another id, or remove that one: {program} delete -w <workspace> -s <id>"))
        }
        Code::DiskSpaceInsufficient => Some(format!(
            "disk space is insufficient; free some, or remove old snapshots: {program} cleanup -w <workspace>"
        )),
        Code::AlreadyInitialized
        | Code::BtrfsError
        | Code::IoError
        | Code::InvalidPath
        | Code::ConfirmationRequired
        | Code::InternalError
        | Code::WriteLockConflict => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_lacks_a_route_is_to_be_started_anew_and_other_codes_are_no_reason() {
        let hint = |code| hint_of_control(code, "cofferdam ckpt").unwrap_or_default();
        assert!(hint("NotFound").contains("older version"), "{}", hint("NotFound"));
        assert!(hint("WorkspaceNotFound").contains("cofferdam ckpt init"), "{}", hint("WorkspaceNotFound"));
        assert_eq!(hint("SnapshotNotFound"), "");
    }
}
