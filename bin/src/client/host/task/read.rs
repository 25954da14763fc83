//! Print the beginning of a file.

use clap::Args;
use cofferdam_protocol::host::ReadSandboxFile;

use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::shown::{lines, size};

#[derive(Args, Debug)]
pub(crate) struct Read {
    /// The beginning of the task's id
    task: String,
    /// The file, below the task's directory
    path: String,
    /// How many characters at most, from 200 to 20000 [default: previewChars of the configuration]
    #[arg(long, value_name = "N")]
    max_chars: Option<i64>,
    #[command(flatten)]
    shown: Shown,
}

impl Read {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        let rel_path = self.path.clone();
        let file = run.control.host(&ReadSandboxFile { task_id, rel_path, max_chars: self.max_chars })?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&file)?);
        }
        let text = lines(&file.text);
        run.terminal.print(text.strip_suffix('\n').unwrap_or(&text))?;
        if file.truncated {
            let (chars, bytes) = (file.chars, size(file.bytes));
            run.terminal.say(format_args!("(the first {chars} characters of {bytes})"));
        }
        Ok(())
    }
}
