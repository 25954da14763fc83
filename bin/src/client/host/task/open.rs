//! Show a task, and give it its agent again.

use clap::Args;
use cofferdam_protocol::host::OpenTask;

use super::show::as_lines;
use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::moment::local_offset;
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Open {
    /// The beginning of the task's id
    task: String,
    #[command(flatten)]
    shown: Shown,
}

impl Open {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        let opened = run.control.host(&OpenTask { task_id })?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&opened)?);
        }
        run.terminal.print(as_lines(&opened.task, local_offset()))?;
        if let Some(why) = &opened.resume_error {
            run.terminal.warn(format_args!("Warning: it could not be resumed: {}", one_line(why)));
        }
        Ok(())
    }
}
