//! What a failed verb says.

use std::io;

use crate::client::shown::one_line;
use crate::control::{Answered, ControlError};
use crate::terminal::Terminal;

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The daemon refused, or could not be asked.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Printing, or asking the system, failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// In the verb's own words.
    #[error("{0}")]
    Said(String),
    /// All of it was said already, or is said by this exit code.
    #[error("failed")]
    Exit(u8),
}

/// The exit code of what was cut short, as shells count it.
pub(super) const INTERRUPTED: u8 = 130;

impl Failure {
    /// Says what failed and what to do; returns the exit code.
    pub(super) fn explain(&self, terminal: &mut Terminal) -> u8 {
        let (text, hint) = match self {
            Self::Exit(code) => return *code,
            // Whoever read the output has had enough.
            Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
            Self::Control(error @ ControlError::Refused { code, message }) => {
                (format!("Error {error}"), hint_of(code, message))
            }
            Self::Control(error @ ControlError::Unreachable { .. }) => (
                format!("Error: {error}"),
                Some("start a daemon with 'cofferdam serve', or name its state directory with --state-dir"),
            ),
            other => (format!("Error: {other}"), None),
        };
        // What a daemon says may name what an agent has made.
        terminal.complain(one_line(&text));
        if let Some(hint) = hint {
            terminal.say(format_args!("Hint: {hint}"));
        }
        1
    }
}

/// The answer, unless somebody did not want to wait for it.
pub(super) fn answered<T>(answer: Answered<Result<T, ControlError>>) -> Result<T, Failure> {
    match answer {
        Answered::Answer(answer) => Ok(answer?),
        Answered::Interrupted => Err(Failure::Exit(INTERRUPTED)),
    }
}

/// What can be done about a code of the host.
fn hint_of(code: &str, message: &str) -> Option<&'static str> {
    Some(match code {
        // A route that it does not know, and not what it knows and has none of.
        "NotFound" if message.starts_with("nothing here") => {
            "the daemon is of an older version than this program; start it anew"
        }
        "NO_SANDBOX_ROOT" => {
            "choose a directory for tasks first: cofferdam config set sandboxRoot=<directory>"
        }
        "BAD_ROOT" | "ROOT_PROTECTED" => {
            "choose a directory of its own for tasks: cofferdam config set sandboxRoot=<directory>"
        }
        "CONFIG_INVALID" => {
            "see which agents there are: cofferdam task presets; and how tasks are started: cofferdam config get"
        }
        "CORE_UNAVAILABLE" => "try again in a moment; the daemon's log says what it waits for",
        "PROTOCOL_MISMATCH" | "SCHEMA_MISMATCH" => {
            "run a daemon, an isolation-pod-core and a database of one version"
        }
        "TASK_NOT_FOUND" => "see which tasks there are: cofferdam task list",
        "TASK_BUSY" => "wait, or cancel a task that runs: cofferdam task cancel <task>",
        "TASK_RUNNING" => "cancel it first: cofferdam task cancel <task>",
        "EXPORT_DISABLED" => "allow exports: cofferdam config set enableExport=true",
        "EXPORT_NOT_FOUND" => "see which exports there are: cofferdam export list",
        "FILE_NOT_FOUND" => "see which files there are: cofferdam task files <task>",
        "FILE_TOO_LARGE" | "BINARY_FILE" => {
            "export it to look at it: cofferdam export create <task> <file> --to <directory>"
        }
        "TARGET_INSIDE_SANDBOX" => "choose a directory outside of the sandbox root",
        "MAIN_SESSION_NOT_LIVE" => "attach it: cofferdam main attach <session>",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::testing::{Input, terminal};

    #[track_caller]
    fn check(failure: Failure, code: u8, said: &str) {
        let (mut terminal, out, err) = terminal(Input::Piped(""));
        assert_eq!(failure.explain(&mut terminal), code);
        assert_eq!((out.text().as_str(), err.text().as_str()), ("", said));
    }

    #[test]
    fn a_refusal_is_its_code_its_words_and_what_to_do() {
        let refused = |code: &str, message: &str| {
            Failure::from(ControlError::Refused { code: code.to_owned(), message: message.to_owned() })
        };
        check(
            refused("NO_SANDBOX_ROOT", "no sandbox root is set"),
            1,
            "Error [NO_SANDBOX_ROOT]: no sandbox root is set\n\
             Hint: choose a directory for tasks first: cofferdam config set sandboxRoot=<directory>\n",
        );
        check(refused("INTERNAL", "a\x1b[2Jb"), 1, "Error [INTERNAL]: a\\u{1b}[2Jb\n");
    }

    #[test]
    fn what_was_said_already_is_not_said_again_and_a_closed_pipe_is_no_failure() {
        check(Failure::Exit(124), 124, "");
        check(Failure::Io(io::ErrorKind::BrokenPipe.into()), 0, "");
        check(Failure::Said("no".to_owned()), 1, "Error: no\n");
    }
}
