//! `task.turnStarted`, `task.turnEnded`: what the agent does. It numbers its turns itself, and may begin again or leave
//! numbers out; what matters is which turn is open.

use std::cmp::Ordering;
use std::time::Duration;

use cofferdam_protocol::pod::{LeaseId, TaskStatus, TaskTurnEnded, TaskTurnStarted, cut};
use cofferdam_storage::pod::TaskRecord;

use super::held::Held;
use super::{Queue, Refusal};
use crate::pod::messages::Deadline;
use crate::pod::queue::rules::Step;
use crate::pod::queue::{TEXT_CHARS, WORD_CHARS, life};

impl Held for TaskTurnStarted {
    const STEP: Step = Step::TurnStarted;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    /// A task that has ended takes a slot even if there is none: its turn runs already.
    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal> {
        let Self { task_id, turn, .. } = self;
        queue.check_files_stay(&task_id)?;
        let task = queue.task(&task_id)?;
        if task.open_turn == Some(turn) {
            return Ok(());
        }
        let after = Duration::from_millis(u64::try_from(task.summary.timeout_ms).unwrap_or(0));
        let id = queue.id(&task_id)?;
        let late = task.open_turn.filter(|_| task.deadline_passed);
        let reattached = task.reattached_from.is_some();
        queue.edit(id.as_str(), at, |task| life::begin_turn(task, turn, at))?;
        if let Some(late) = late {
            queue.disarm(&id, Deadline::Grace(late));
        }
        if reattached {
            queue.disarm(&id, Deadline::FirstTurn);
        }
        queue.arm(&id, Deadline::Turn(turn), after);
        Ok(())
    }
}

impl Held for TaskTurnEnded {
    const STEP: Step = Step::TurnEnded;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    fn check(&self) -> Result<(), Refusal> {
        match self.reason.is_none() && !self.timed_out {
            true => {
                Err(Refusal::BadRequest("reason is missing; it may be only if timedOut is true".to_owned()))
            }
            false => Ok(()),
        }
    }

    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal> {
        let Self { task_id, turn, reason, timed_out, last_text, .. } = self;
        let task = queue.task(&task_id)?;
        let age = age(task, turn);
        if age == Age::Old {
            return Ok(());
        }
        let ended = task.summary.status.is_terminal();
        let reason = cut(reason.as_deref().unwrap_or(""), WORD_CHARS);
        let end = End::of(reason);
        queue.edit(&task_id, at, |task| {
            if let Some(text) = &last_text {
                task.summary.last_text = cut(text, TEXT_CHARS).to_owned();
            }
            // The first end counts.
            if ended {
                return;
            }
            if age == Age::New {
                life::begin_turn(task, turn, at);
            }
            match timed_out || task.deadline_passed {
                true => life::time_out(task, at),
                false => {
                    life::end(task, end.status, at);
                    if end.status == TaskStatus::Failed {
                        life::explain(task, || format!("the turn ended with the reason {reason:?}"));
                    }
                }
            }
        })?;
        if !end.known && !ended && !timed_out {
            queue.warn(
                &queue.id(&task_id)?,
                format!("a turn ended with the unknown reason {reason:?}; taken as failed"),
            );
        }
        Ok(())
    }
}

/// How a turn that ended stands to what is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    /// A later one has begun, or ended, since.
    Old,
    /// It is the open one, or the one that ended last.
    Current,
    /// That it began was missed.
    New,
}

fn age(task: &TaskRecord, turn: u64) -> Age {
    let Some(last) = task.last_turn else { return Age::New };
    match turn.cmp(&last) {
        Ordering::Less => Age::Old,
        Ordering::Equal if task.open_turn.is_none() && !task.summary.status.is_terminal() => Age::Old,
        Ordering::Equal => Age::Current,
        Ordering::Greater => Age::New,
    }
}

/// What a reason means.
struct End {
    status: TaskStatus,
    /// Whether the contract names the reason. Agents may have reasons of their own.
    known: bool,
}

impl End {
    fn of(reason: &str) -> Self {
        let (status, known) = match reason {
            "completed" | "max-tokens" | "forked" => (TaskStatus::Completed, true),
            "aborted" => (TaskStatus::Cancelled, true),
            "error" | "blocked" => (TaskStatus::Failed, true),
            "interrupted" => (TaskStatus::Interrupted, true),
            _ => (TaskStatus::Failed, false),
        };
        Self { status, known }
    }
}
