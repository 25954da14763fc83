//! List snapshots.

use clap::Args;
use cofferdam_protocol::ckpt::SnapshotEntry;
use jiff::tz::Offset;

use crate::client::arguments::Shown;
use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::moment::{local_offset, shown_moment, zone};
use crate::client::shown::{excerpt, one_line};
use crate::client::table::table;

#[derive(Args, Debug)]
pub(crate) struct List {
    /// The directory, or the id of its workspace [default: all]
    #[arg(short, long, value_name = "PATH")]
    workspace: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

impl List {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let workspace = self.workspace.as_deref().map(workspace).transpose()?;
        let snapshots = invocation.client.list(workspace.as_deref())?;
        if self.shown.as_json(&mut invocation.terminal) {
            return Ok(invocation.terminal.print_json(&snapshots)?);
        }
        Ok(invocation.terminal.print(as_table(&snapshots, local_offset()))?)
    }
}

fn as_table(snapshots: &[SnapshotEntry], offset: Offset) -> String {
    if snapshots.is_empty() {
        return "No snapshots found.".to_owned();
    }
    let heading = ["WORKSPACE", "SNAPSHOT", &format!("CREATED({})", zone(offset)), "MESSAGE"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(snapshots.iter().map(|snapshot| {
        [
            one_line(&snapshot.workspace),
            marked(snapshot),
            shown_moment(&snapshot.meta.created_at, offset),
            excerpt(snapshot.meta.message.as_deref().unwrap_or_default()),
        ]
    }));
    format!("{}\n\nTotal: {} snapshot(s)", table(&rows), snapshots.len())
}

/// The id with what sets this snapshot apart.
fn marked(snapshot: &SnapshotEntry) -> String {
    let mut text = one_line(&snapshot.id);
    if snapshot.meta.pinned {
        text.push_str(" [PINNED]");
    }
    if snapshot.meta.missing {
        text.push_str(" [MISSING]");
    }
    text
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::ckpt::{SnapshotMeta, Timestamp};

    use super::*;

    fn snapshot(id: &str, pinned: bool, missing: bool, message: Option<&str>) -> SnapshotEntry {
        SnapshotEntry {
            id: id.to_owned(),
            workspace: "/home/user/project".to_owned(),
            meta: SnapshotMeta {
                message: message.map(str::to_owned),
                metadata: None,
                pinned,
                created_at: Timestamp::from_unix_nanos(1_767_323_045_123_456_789),
                missing,
            },
        }
    }

    #[test]
    fn the_table_shows_local_times_and_marks_pinned_and_missing_snapshots() {
        let snapshots =
            [snapshot("one", true, false, Some("before\nthe rest")), snapshot("two", false, true, None)];
        assert_eq!(
            as_table(&snapshots, Offset::constant(8)),
            "WORKSPACE           SNAPSHOT       CREATED(UTC+8)       MESSAGE\n\
             /home/user/project  one [PINNED]   2026-01-02 11:04:05  before…\n\
             /home/user/project  two [MISSING]  2026-01-02 11:04:05\n\
             \n\
             Total: 2 snapshot(s)"
        );
        assert_eq!(as_table(&[], Offset::UTC), "No snapshots found.");
    }
}
