//! Waits for the end of a task's turn, and shows meanwhile what its agent says and does.

use clap::Args;
use cofferdam_protocol::host::{EntryKind, GetState, GetTranscript, HostEvent, TaskRow, TranscriptEntry};
use cofferdam_protocol::pod::TaskStatus;

use super::again::Again;
use super::failure::{Failure, INTERRUPTED, answered};
use super::{Run, entry};
use crate::client::shown::{lines, one_line};
use crate::control::{ControlError, Heard, Listener};

/// How often a daemon that is gone is looked for: for half a minute.
const TRIES: u32 = 11;

/// What the exit status says of a task that was waited for; part of the help.
pub(super) const EXIT_STATUS: &str = "With --wait or --follow the exit status tells what became of the turn: 0 it \
completed, 1 it failed, 124 it was out of time, 130 it was cancelled or interrupted, or you pressed Ctrl-C (the task \
runs on then).";

/// Whether to wait for the end of the turn.
#[derive(Args, Debug)]
pub(super) struct Until {
    /// Wait until the turn ends, and print what the agent said last
    #[arg(long, conflicts_with = "follow")]
    wait: bool,
    /// Print what the agent says and does until the turn ends
    #[arg(long)]
    follow: bool,
}

impl Until {
    /// How to wait; nothing if that is not wanted.
    pub(super) fn wanted(&self) -> Option<How> {
        match (self.wait, self.follow) {
            (false, false) => None,
            (true, _) => Some(How::Wait),
            (false, true) => Some(How::Follow),
        }
    }
}

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Silently.
    Wait,
    /// Showing everything.
    Follow,
}

/// A client that waits.
pub(super) struct Follower {
    listener: Listener,
    how: How,
    json: bool,
    row: TaskRow,
    /// Whether anybody was told of the row.
    told: bool,
    /// Whether the turn that is waited for was seen: its end is one, then.
    begun: bool,
    /// What to ask the transcript for next.
    next: u64,
    /// What the agent said last.
    said: String,
    again: Again,
}

impl Follower {
    /// For the turn of a task that was just started, or that may run already: all that was said of it is shown.
    pub(super) fn of_task(listener: Listener, how: How, json: bool, row: TaskRow) -> Self {
        let (said, again) = (String::new(), Again::default());
        Self { listener, how, json, row, told: false, begun: true, next: 1, said, again }
    }

    /// For one more turn of a task that was so before it was told something; the transcript has gone so far.
    pub(super) fn of_turn(listener: Listener, how: How, json: bool, before: TaskRow, next: u64) -> Self {
        Self { begun: false, next, ..Self::of_task(listener, how, json, before) }
    }

    /// Waits until the turn is over; the task is as `now` says. Fails with the exit code that says how it ended, if not well.
    pub(super) fn wait(mut self, run: &mut Run, now: TaskRow) -> Result<(), Failure> {
        self.changed(run, now)?;
        self.catch_up(run)?;
        let status = self.ended(run)?;
        self.catch_up(run)?;
        if self.how == How::Wait {
            self.print_last(run)?;
        }
        let id = one_line(&self.row.task.id);
        if status == TaskStatus::Completed {
            run.terminal.say(format_args!("{id} completed"));
            return Ok(());
        }
        let word = status.as_str();
        match one_line(self.row.task.error.trim()) {
            error if error.is_empty() => run.terminal.complain(format_args!("{id} {word}")),
            error => run.terminal.complain(format_args!("{id} {word}: {error}")),
        }
        Err(Failure::Exit(exit_code(status)))
    }

    fn print_last(&self, run: &mut Run) -> Result<(), Failure> {
        if self.json {
            return Ok(run.terminal.print_json(&self.row)?);
        }
        let last = if self.said.is_empty() { &self.row.task.last_text } else { &self.said };
        match last.trim_end() {
            "" => Ok(()),
            last => Ok(run.terminal.print(lines(last))?),
        }
    }

    /// The status with which the turn ended.
    fn ended(&mut self, run: &mut Run) -> Result<TaskStatus, Failure> {
        loop {
            let status = self.row.task.status;
            if self.begun && status.is_terminal() {
                return Ok(status);
            }
            match self.listener.hear() {
                Heard::Event(event) => self.take(run, event)?,
                Heard::Ended => self.listen_anew(run)?,
                Heard::Interrupted => return Err(self.interrupted(run)),
            }
        }
    }

    fn take(&mut self, run: &mut Run, event: HostEvent) -> Result<(), Failure> {
        match event {
            HostEvent::TaskEntry { task_id, entry } if task_id == self.row.task.id => {
                match entry.seq.cmp(&self.next) {
                    std::cmp::Ordering::Less => Ok(()),
                    std::cmp::Ordering::Equal => self.entry(run, entry),
                    // Something was left out.
                    std::cmp::Ordering::Greater => self.catch_up(run),
                }
            }
            HostEvent::TaskChanged { task_id, task } if task_id == self.row.task.id => {
                self.changed(run, *task)
            }
            HostEvent::TaskRemoved { task_id } if task_id == self.row.task.id => Err(removed()),
            HostEvent::Lost | HostEvent::StateChanged | HostEvent::CoreChanged { .. } => self.look(run),
            _ => Ok(()),
        }
    }

    /// Takes a new row, and says what is new about it.
    fn changed(&mut self, run: &mut Run, row: TaskRow) -> Result<(), Failure> {
        let (before, after) = (&self.row.task, &row.task);
        self.begun |= !after.status.is_terminal()
            || (after.turns, after.ended_at, &after.error) != (before.turns, before.ended_at, &before.error);
        let news = (before.status, before.queued_position) != (after.status, after.queued_position);
        let unchanged = std::mem::replace(&mut self.told, true) && row == self.row;
        if self.how == How::Follow && self.json && !unchanged {
            let event = HostEvent::TaskChanged { task_id: row.task.id.clone(), task: Box::new(row.clone()) };
            run.terminal.print_json_line(&event)?;
        } else if self.how == How::Follow && news && !after.status.is_terminal() {
            run.terminal.say(format_args!("{} {}", one_line(&after.id), status(&row)));
        }
        self.row = row;
        Ok(())
    }

    fn entry(&mut self, run: &mut Run, entry: TranscriptEntry) -> Result<(), Failure> {
        self.next = entry.seq + 1;
        if entry.kind == EntryKind::Assistant {
            self.said.clone_from(&entry.text);
        }
        match (self.how, self.json) {
            (How::Wait, _) => Ok(()),
            (How::Follow, false) => Ok(run.terminal.print(entry::shown(&entry))?),
            (How::Follow, true) => {
                let event = HostEvent::TaskEntry { task_id: self.row.task.id.clone(), entry };
                Ok(run.terminal.print_json_line(&event)?)
            }
        }
    }

    /// Shows what the transcript has and was not heard.
    fn catch_up(&mut self, run: &mut Run) -> Result<(), Failure> {
        let ask = GetTranscript { task_id: self.row.task.id.clone(), from: self.next };
        let transcript = match answered(self.listener.ask(&ask)) {
            Ok(transcript) => transcript,
            // The transcript may have gone with the daemon; what became of the task is what counts.
            Err(Failure::Control(_)) => return Ok(()),
            Err(failure) => return Err(self.explained(run, failure)),
        };
        let gap = transcript.entries.first().is_some_and(|first| first.seq > self.next);
        if gap && self.how == How::Follow {
            run.terminal.say("(some of it is gone)");
        }
        for entry in transcript.entries {
            if entry.seq >= self.next {
                self.entry(run, entry)?;
            }
        }
        Ok(())
    }

    /// Asks how the task is, after something may have been missed.
    fn look(&mut self, run: &mut Run) -> Result<(), Failure> {
        self.catch_up(run)?;
        let state = match answered(self.listener.ask(&GetState::default())) {
            Ok(state) => state,
            // The events go on, or their end says that the daemon is gone.
            Err(Failure::Control(_)) => return Ok(()),
            Err(failure) => return Err(self.explained(run, failure)),
        };
        match state.tasks.into_iter().find(|row| row.task.id == self.row.task.id) {
            Some(row) => self.changed(run, row),
            // Whoever cannot see the tasks does not know that one is gone.
            None if state.config.is_none() => Ok(()),
            None => Err(removed()),
        }
    }

    fn listen_anew(&mut self, run: &mut Run) -> Result<(), Failure> {
        if self.listener.has_heard() {
            self.again.reset();
        }
        if self.again.tries() == 0 {
            run.terminal.say("The daemon is gone; looking for it.");
        }
        loop {
            let wait = self.again.delay();
            if !self.listener.pause(wait) {
                return Err(self.interrupted(run));
            }
            match self.listener.reopen() {
                Ok(()) => return self.look(run),
                Err(refused @ ControlError::Refused { .. }) => return Err(refused.into()),
                Err(error) if self.again.tries() >= TRIES => return Err(error.into()),
                Err(_) => {}
            }
        }
    }

    fn explained(&self, run: &mut Run, failure: Failure) -> Failure {
        match failure {
            Failure::Exit(INTERRUPTED) => self.interrupted(run),
            other => other,
        }
    }

    /// Somebody does not want to wait any longer.
    fn interrupted(&self, run: &mut Run) -> Failure {
        let id = one_line(&self.row.task.id);
        run.terminal.say(format_args!(
            "\n{id} runs on. Look at it: cofferdam task logs {id} --follow; cancel it: cofferdam task cancel {id}"
        ));
        Failure::Exit(INTERRUPTED)
    }
}

fn removed() -> Failure {
    Failure::Said("the task was removed meanwhile".to_owned())
}

/// What the exit status says of an ended task.
fn exit_code(status: TaskStatus) -> u8 {
    match status {
        TaskStatus::Completed => 0,
        TaskStatus::Timeout => 124,
        TaskStatus::Cancelled | TaskStatus::Interrupted => INTERRUPTED,
        TaskStatus::Failed | TaskStatus::Queued | TaskStatus::Starting | TaskStatus::Running => 1,
    }
}

/// The word for where a task is, with its place if it waits for a slot.
pub(super) fn status(row: &TaskRow) -> String {
    match (row.task.status, row.task.queued_position) {
        (TaskStatus::Queued, place) if place > 0 => format!("queued, place {place}"),
        (status, _) => status.as_str().to_owned(),
    }
}
