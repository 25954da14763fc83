//! List exports.

use clap::Args;
use cofferdam_protocol::host::ListExports;
use cofferdam_protocol::pod::{ExportMode, ExportRecord, ExportStatus};
use jiff::tz::Offset;

use crate::client::arguments::Shown;
use crate::client::host::Run;
use crate::client::host::failure::Failure;
use crate::client::host::task::moment;
use crate::client::moment::{local_offset, zone};
use crate::client::shown::one_line;
use crate::client::table::table;

#[derive(Args, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    shown: Shown,
}

impl List {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let listed = run.control.host(&ListExports {})?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&listed)?);
        }
        run.terminal.print(as_table(&listed.exports, local_offset()))?;
        if listed.truncated {
            run.terminal.say("There are older ones than can be listed.");
        }
        Ok(())
    }
}

/// How many files an export has.
pub(super) fn count(export: &ExportRecord) -> usize {
    export.items_total.unwrap_or(export.items.len())
}

fn as_table(exports: &[ExportRecord], offset: Offset) -> String {
    if exports.is_empty() {
        return "No exports found.".to_owned();
    }
    let at = format!("AT({})", zone(offset));
    let mut rows = vec![["EXPORT", "TASK", &at, "STATUS", "FILES", "TO"].map(str::to_owned)];
    rows.extend(exports.iter().map(|export| {
        let status = match export.status {
            ExportStatus::Running => "running",
            ExportStatus::Completed => "completed",
            ExportStatus::Failed => "failed",
            ExportStatus::Interrupted => "interrupted",
        };
        let undone = if export.undone_at > 0 { ", undone" } else { "" };
        let moved = if export.mode == ExportMode::Move { ", moved" } else { "" };
        [
            one_line(&export.id),
            one_line(&export.task_id),
            moment(export.at, offset),
            format!("{status}{moved}{undone}"),
            count(export).to_string(),
            one_line(&export.target_dir),
        ]
    }));
    format!("{}\n\nTotal: {} export(s)", table(&rows), exports.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::host::testing::export;

    #[test]
    fn the_table_says_how_each_export_stands() {
        let mut undone = export("exp-1", &[]);
        (undone.undone_at, undone.items_total, undone.target_dir) = (1, Some(300), "/to\x1b".to_owned());
        let moved =
            ExportRecord { mode: ExportMode::Move, status: ExportStatus::Failed, ..export("exp-2", &[]) };
        assert_eq!(
            as_table(&[moved, undone], Offset::UTC),
            "EXPORT  TASK   AT(UTC+0)            STATUS             FILES  TO\n\
             exp-2   pod-1  2026-01-02 03:04:05  failed, moved      0      /out\n\
             exp-1   pod-1  2026-01-02 03:04:05  completed, undone  300    /to\\u{1b}\n\
             \n\
             Total: 2 export(s)"
        );
        assert_eq!(as_table(&[], Offset::UTC), "No exports found.");
    }
}
