//! What a failed verb says.

use std::io;

use crate::client::shown::one_line;
use crate::session::ClientError;
use crate::terminal::Terminal;

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Whoever manages conversations refused, or could not be asked.
    #[error(transparent)]
    Refused(#[from] ClientError),
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
    pub(super) fn explain(&self, terminal: &mut Terminal) {
        let hint = match self {
            Self::Shown => return,
            Self::Refused(error) => error.hint.as_deref(),
            Self::Io(_) | Self::Said(_) => None,
        };
        terminal.complain(one_line(&format!("Error: {self}")));
        if let Some(hint) = hint {
            terminal.say(format_args!("Hint: {}", one_line(hint)));
        }
    }
}
