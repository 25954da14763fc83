//! Take the newest rollback back.

use clap::Args;
use cofferdam_web::ckpt::{RollbackReport, UndoReport};
use jiff::tz::Offset;

use crate::client::arguments::Shown;
use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::moment::{local_offset, shown_moment};
use crate::client::shown::one_line;
use crate::client::warnings;

#[derive(Args, Debug)]
pub(crate) struct Undo {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
    #[command(flatten)]
    shown: Shown,
}

impl Undo {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let done = invocation.control()?.undo(&workspace(&self.workspace)?)?;
        if self.shown.as_json(&mut invocation.terminal) {
            return Ok(invocation.terminal.print_json(&done)?);
        }
        invocation.terminal.print(as_text(&done, local_offset()))?;
        warnings::show(invocation, &done.warnings, 0);
        Ok(())
    }
}

/// Which rollback was taken back comes first: it need not be the one that the user thinks of.
fn as_text(done: &UndoReport, offset: Offset) -> String {
    let what = match &done.rollback {
        Some(rollback) => described(rollback, offset),
        None => "last rollback".to_owned(),
    };
    format!("Undid the {what} in workspace {}: {} path(s) changed", one_line(&done.workspace), done.changed)
}

fn described(RollbackReport { at, snapshot, undo, .. }: &RollbackReport, offset: Offset) -> String {
    let what = match snapshot {
        Some(snapshot) => format!("rollback to {}", one_line(snapshot)),
        None if *undo => "undo".to_owned(),
        None => "rollback".to_owned(),
    };
    format!("{what} of {}", shown_moment(at, offset))
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::ckpt::Timestamp;

    use super::*;

    #[test]
    fn the_answer_names_the_rollback_that_was_taken_back() {
        let done = |snapshot: Option<&str>, undo| UndoReport {
            workspace: "ws-6d5aaa".to_owned(),
            path: "/p".to_owned(),
            rollback: Some(RollbackReport {
                operation: "0a1b".to_owned(),
                at: Timestamp::from_unix_nanos(1_767_323_045_123_456_789),
                snapshot: snapshot.map(str::to_owned),
                undo,
            }),
            changed: 4,
            warnings: Vec::new(),
        };
        for (snapshot, undo, what) in [
            (Some("one\u{1b}"), false, "rollback to one\\u{1b}"),
            (None, true, "undo"),
            (None, false, "rollback"),
        ] {
            assert_eq!(
                as_text(&done(snapshot, undo), Offset::constant(8)),
                format!("Undid the {what} of 2026-01-02 11:04:05 in workspace ws-6d5aaa: 4 path(s) changed")
            );
        }
    }

    #[test]
    fn a_daemon_that_does_not_name_the_rollback_has_undone_it_all_the_same() {
        let older = r#"{"workspace":"ws-6d5aaa","path":"/p","changed":4,"warnings":[]}"#;
        assert_eq!(
            as_text(&serde_json::from_str(older).unwrap(), Offset::UTC),
            "Undid the last rollback in workspace ws-6d5aaa: 4 path(s) changed"
        );
    }
}
