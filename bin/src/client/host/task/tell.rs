//! Give an agent something more to do.

use clap::Args;
use cofferdam_protocol::host::{FollowUp, GetTranscript};

use super::words;
use crate::client::arguments::Shown;
use crate::client::host::failure::{Failure, answered};
use crate::client::host::follow::{EXIT_STATUS, Follower, Until, status};
use crate::client::host::{Run, find};
use crate::client::shown::one_line;
use crate::control::Listener;

#[derive(Args, Debug)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Tell {
    /// The beginning of the task's id
    task: String,
    /// What the agent is to do, 64 KiB at most; - reads it from the standard input
    text: String,
    #[command(flatten)]
    until: Until,
    #[command(flatten)]
    shown: Shown,
}

impl Tell {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let json = self.shown.as_json(&mut run.terminal);
        let text = words(&self.text, &mut run.terminal)?;
        let before = find::task(&run.control, &self.task)?;
        let task_id = before.task.id.clone();
        let tell = FollowUp { task_id: task_id.clone(), text };
        let Some(how) = self.until.wanted() else {
            let row = run.control.host(&tell)?.task;
            return match json {
                true => Ok(run.terminal.print_json(&row)?),
                false => Ok(run.terminal.print(format_args!(
                    "Told: {}  {}",
                    one_line(&row.task.id),
                    status(&row)
                ))?),
            };
        };
        let mut listener = Listener::open(&run.control, None)?;
        // What was said before is not part of this turn.
        let next = answered(listener.ask(&GetTranscript { task_id, from: u64::MAX }))?.next;
        let row = answered(listener.ask(&tell))?.task;
        Follower::of_turn(listener, how, json, before, next).wait(run, row)
    }
}
