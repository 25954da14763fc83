//! Print what an agent said and did.

use clap::Args;
use cofferdam_protocol::host::{GetLegacyTask, GetState, GetTranscript};

use crate::client::arguments::Shown;
use crate::client::host::failure::{Failure, answered};
use crate::client::host::follow::{Follower, How};
use crate::client::host::{Run, entry, find};
use crate::control::Listener;

#[derive(Args, Debug)]
#[command(
    after_help = "With --follow it ends with the turn that runs, or at once if none does, and the exit status is that of \
                        task run --follow. --format json with --follow prints a line for each event."
)]
pub(crate) struct Logs {
    /// The beginning of the task's id
    task: String,
    /// Go on until the turn ends
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Logs {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let row = find::task(&run.control, &self.task)?;
        let json = self.shown.as_json(&mut run.terminal);
        let task_id = row.task.id.clone();
        if row.task.legacy {
            return migrated(run, task_id, json);
        }
        if self.follow {
            let mut listener = Listener::open(&run.control, None)?;
            // It may have ended before anybody listened.
            let tasks = answered(listener.ask(&GetState::default()))?.tasks;
            let now = tasks.into_iter().find(|now| now.task.id == task_id).unwrap_or(row);
            return Follower::of_task(listener, How::Follow, json, now.clone()).wait(run, now);
        }
        let transcript = run.control.host(&GetTranscript { task_id, from: 0 })?;
        if json {
            return Ok(run.terminal.print_json(&transcript)?);
        }
        if transcript.truncated {
            run.terminal.say("(older entries are gone)");
        }
        for said in &transcript.entries {
            run.terminal.print(entry::shown(said))?;
        }
        Ok(())
    }
}

fn migrated(run: &mut Run, task_id: String, json: bool) -> Result<(), Failure> {
    let log = run.control.host(&GetLegacyTask { task_id })?;
    if json {
        return Ok(run.terminal.print_json(&log)?);
    }
    if log.truncated {
        run.terminal.say("(older entries are left out)");
    }
    for said in &log.entries {
        run.terminal.print(entry::legacy(said))?;
    }
    Ok(())
}
