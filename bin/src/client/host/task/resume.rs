//! Give an ended task its agent again, or begin one that has not begun.

use clap::Args;
use cofferdam_protocol::host::ResumeTask;

use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::follow::status;
use crate::client::host::{Run, find};
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Resume {
    /// The beginning of the task's id
    task: String,
    #[command(flatten)]
    shown: Shown,
}

impl Resume {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        let resumed = run.control.host(&ResumeTask { task_id })?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&resumed)?);
        }
        let agent = if resumed.live { "its agent is there" } else { "its agent is not there yet" };
        let id = one_line(&resumed.task.task.id);
        Ok(run.terminal.print(format_args!("{id}  {}; {agent}", status(&resumed.task)))?)
    }
}
