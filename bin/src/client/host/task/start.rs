//! Start a task.

use clap::Args;
use cofferdam_protocol::host::StartTask;

use super::words;
use crate::client::arguments::Shown;
use crate::client::host::Run;
use crate::client::host::failure::{Failure, answered};
use crate::client::host::follow::{EXIT_STATUS, Follower, Until, status};
use crate::client::shown::one_line;
use crate::control::Listener;

#[derive(Args, Debug)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Start {
    /// What the agent is to do, 64 KiB at most; - reads it from the standard input
    description: String,
    /// Which agent [default: presetId of the configuration]
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,
    /// Where below the sandbox root to make the task's directory
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    subdir: String,
    /// What to call it [default: the beginning of the description]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// The main session it is started from: the agent gets its last messages, and what it finds can be returned there
    #[arg(long, value_name = "SESSION", default_value = "", hide_default_value = true)]
    main: String,
    #[command(flatten)]
    until: Until,
    #[command(flatten)]
    shown: Shown,
}

impl Start {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let json = self.shown.as_json(&mut run.terminal);
        let task = StartTask {
            main_session_id: self.main.clone(),
            description: words(&self.description, &mut run.terminal)?,
            subdir: self.subdir.clone(),
            label: self.label.clone(),
            preset_id: self.preset.clone(),
        };
        let Some(how) = self.until.wanted() else {
            let started = run.control.host(&task)?;
            return match json {
                true => Ok(run.terminal.print_json(&started)?),
                false => Ok(run.terminal.print(format_args!(
                    "{}  {}",
                    one_line(&started.task_id),
                    status(&started.task)
                ))?),
            };
        };
        // Before it starts, so that nothing it says is missed.
        let mut listener = Listener::open(&run.control, None)?;
        let row = answered(listener.ask(&task))?.task;
        run.terminal.say(format_args!("{} {}", one_line(&row.task.id), status(&row)));
        Follower::of_task(listener, how, json, row.clone()).wait(run, row)
    }
}
