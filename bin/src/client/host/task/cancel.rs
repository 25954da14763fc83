//! Cancel a turn, or a queued task.

use clap::Args;
use cofferdam_protocol::host::CancelTask;

use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::follow::status;
use crate::client::host::{Run, find};
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The beginning of the task's id
    task: String,
    /// Why, for the agent
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

impl Cancel {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        let row = run.control.host(&CancelTask { task_id, reason: self.reason.clone() })?.task;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&row)?);
        }
        // Its agent has to end its turn first.
        let waits = if row.task.status.is_terminal() { "" } else { ", being cancelled" };
        Ok(run.terminal.print(format_args!("{}  {}{waits}", one_line(&row.task.id), status(&row)))?)
    }
}
