//! Tell a main session what a task found.

use clap::Args;
use cofferdam_protocol::host::{PreviewReturn, ReturnParts, ReturnToMain, Returned, ReturnedFile};
use cofferdam_storage::clock::{IdGen, RandomIds};

use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::shown::{lines, one_line};
use crate::control::ControlError;

#[derive(Args, Debug)]
pub(crate) struct Return {
    /// The beginning of the task's id
    task: String,
    /// The main session; a client has to be attached to it [default: the one the task was started from]
    #[arg(long, value_name = "SESSION")]
    main: Option<String>,
    /// Also the beginning of this file, below the task's directory
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Also this, 1000 characters at most
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    text: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Return {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task = find::task(&run.control, &self.task)?.task;
        let main_session_id = self.main.clone().unwrap_or(task.main_session_id);
        if main_session_id.trim().is_empty() {
            return Err(Failure::Said(
                "the task was started from no main session; name one with --main".to_owned(),
            ));
        }
        let parts = ReturnParts {
            file: self.file.clone().map(|rel_path| ReturnedFile { rel_path }),
            custom_text: self.text.clone(),
            ..ReturnParts::default()
        };
        let preview = run.control.host(&PreviewReturn { task_id: task.id, parts })?;
        let main = one_line(&main_session_id);
        if !self.yes {
            run.terminal.say(format_args!("To be told to {main}:\n\n{}\n", lines(preview.text.trim_end())));
            if preview.truncated {
                run.terminal.say("(it was cut)");
            }
        }
        if !run.consent(self.yes, "Send this?")? {
            run.terminal.say("Nothing was sent.");
            return Ok(());
        }
        let request_id = Some(RandomIds.fresh());
        let sent = send(run, &ReturnToMain { main_session_id, text: preview.text, request_id })?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&sent)?);
        }
        let cut = if sent.truncated { "; it was cut" } else { "" };
        Ok(run.terminal.print(format_args!("Sent to {main}: {}{cut}", one_line(&sent.id)))?)
    }
}

/// Sends it, and once more if the connection broke: the request has an id, so it is not delivered twice.
fn send(run: &Run, message: &ReturnToMain) -> Result<Returned, ControlError> {
    match run.control.host(message) {
        Err(ControlError::Protocol(_)) => run.control.host(message),
        answer => answer,
    }
}
