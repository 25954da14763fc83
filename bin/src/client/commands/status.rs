//! Show the daemon and its workspaces.

use std::time::Duration;

use clap::Args;
use cofferdam_protocol::ckpt::StatusReport;
use cofferdam_web::ckpt::SizeReport;

use crate::client::arguments::Shown;
use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::shown::{duration, one_line, size};
use crate::client::table::table;

/// The size of the store is an extra that is not worth a longer wait.
const SIZE_BUDGET: Duration = Duration::from_millis(500);

#[derive(Args, Debug)]
pub(crate) struct Status {
    /// The directory, or the id of its workspace [default: all]
    #[arg(short, long, value_name = "PATH")]
    workspace: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

impl Status {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let workspace = self.workspace.as_deref().map(workspace).transpose()?;
        let report = invocation.client.status(workspace.as_deref())?;
        if self.shown.as_json(&mut invocation.terminal) {
            return Ok(invocation.terminal.print_json(&report)?);
        }
        let store = invocation.control_within(SIZE_BUDGET).and_then(|control| control.size().ok());
        Ok(invocation.terminal.print(as_text(&report, store))?)
    }
}

fn as_text(report: &StatusReport, store: Option<SizeReport>) -> String {
    let mut text = format!("Uptime:      {}\n", duration(report.uptime_secs));
    if report.fs_total_bytes > 0 {
        let percent = u128::from(report.fs_used_bytes) * 100 / u128::from(report.fs_total_bytes);
        let (used, total) = (size(report.fs_used_bytes), size(report.fs_total_bytes));
        text.push_str(&format!("Filesystem:  {used} of {total} used ({percent}%)\n"));
    }
    if let Some(store) = store {
        let (all, packs) = (size(store.pack_bytes + store.index_bytes), store.packs);
        text.push_str(&format!("Store:       {all} in {packs} pack(s)\n"));
    }
    text.push_str(&format!("Workspaces:  {}", report.workspaces.len()));
    if report.workspaces.is_empty() {
        return text;
    }
    let mut rows = vec![["WORKSPACE", "SNAPSHOTS", "PATH"].map(str::to_owned)];
    rows.extend(report.workspaces.iter().map(|workspace| {
        [workspace.ws_id.clone(), workspace.snapshot_count.to_string(), one_line(&workspace.path)]
    }));
    format!("{text}\n\n{}", table(&rows))
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::ckpt::WorkspaceInfo;

    use super::*;

    #[test]
    fn the_report_names_every_workspace_and_leaves_out_what_is_not_known() {
        let mut report = StatusReport {
            uptime_secs: 3600,
            workspaces: vec![WorkspaceInfo {
                ws_id: "ws-6d5aaa".to_owned(),
                path: "/home/user/project".to_owned(),
                snapshot_count: 5,
            }],
            fs_total_bytes: 32_212_254_720,
            fs_used_bytes: 3_221_225_472,
        };
        let store = SizeReport { pack_bytes: 1536, packs: 2, index_bytes: 512, objects: 9 };
        assert_eq!(
            as_text(&report, Some(store)),
            "Uptime:      1h 0m\n\
             Filesystem:  3.0 GiB of 30.0 GiB used (10%)\n\
             Store:       2.0 KiB in 2 pack(s)\n\
             Workspaces:  1\n\
             \n\
             WORKSPACE  SNAPSHOTS  PATH\n\
             ws-6d5aaa  5          /home/user/project"
        );
        report.workspaces.clear();
        report.fs_total_bytes = 0;
        assert_eq!(as_text(&report, None), "Uptime:      1h 0m\nWorkspaces:  0");
    }
}
