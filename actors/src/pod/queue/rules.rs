//! Which methods go with which status: the one table.

use cofferdam_protocol::pod::TaskStatus;

use super::Queue;
use crate::pod::failure::Refusal;

/// What a method means for a task in some status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// It does what it says.
    Goes,
    /// It is accepted, and changes nothing.
    Keeps,
    /// `BAD_REQUEST`.
    BadRequest,
    /// `TASK_BUSY`.
    Busy,
    /// `TASK_RUNNING`.
    Running,
    /// `TASK_NOT_RESUMABLE`.
    NotResumable,
}

/// The methods for which the status matters, or is known not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    MarkStarting,
    MarkRunning,
    TurnStarted,
    TurnEnded,
    SetLastText,
    SetSandboxCheck,
    SetAvailableTools,
    SetError,
    Heartbeat,
    Reattach,
    Prepare,
    Cancel,
    Delete,
}

/// The table. `ended` stands for each of the five terminal statuses.
#[rustfmt::skip]
pub(super) fn rule(step: Step, status: TaskStatus) -> Rule {
    use Rule::{BadRequest, Busy, Goes, Keeps, NotResumable, Running};
    let [queued, starting, running, ended] = match step {
        //                            queued      starting  running  ended
        Step::MarkStarting        => [Busy,       Keeps,    Keeps,   NotResumable],
        Step::MarkRunning         => [Busy,       Goes,     Keeps,   NotResumable],
        Step::TurnStarted         => [Busy,       Goes,     Goes,    Goes],
        // Too late once it has ended: only the text is taken.
        Step::TurnEnded           => [BadRequest, Goes,     Goes,    Goes],
        Step::SetLastText         => [Goes,       Goes,     Goes,    Goes],
        // What has ended keeps its status in these three.
        Step::SetSandboxCheck     => [Goes,       Goes,     Goes,    Goes],
        Step::SetAvailableTools   => [Goes,       Goes,     Goes,    Goes],
        Step::SetError            => [Goes,       Goes,     Goes,    Goes],
        Step::Heartbeat           => [Goes,       Goes,     Goes,    Goes],
        // While it is active: only for who holds it, or takes it over.
        Step::Reattach            => [Busy,       Goes,     Goes,    Goes],
        Step::Prepare             => [Goes,       Goes,     Goes,    NotResumable],
        Step::Cancel              => [Goes,       Goes,     Goes,    Keeps],
        Step::Delete              => [Goes,       Running,  Running, Goes],
    };
    match status {
        TaskStatus::Queued => queued,
        TaskStatus::Starting => starting,
        TaskStatus::Running => running,
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Timeout
        | TaskStatus::Cancelled
        | TaskStatus::Interrupted => ended,
    }
}

impl Queue {
    /// Whether the step goes with the task's status: `true` if it does something, `false` if nothing is to be done.
    pub(super) fn permits(&self, id: &str, step: Step) -> Result<bool, Refusal> {
        let status = self.task(id)?.summary.status;
        match rule(step, status) {
            Rule::Goes => Ok(true),
            Rule::Keeps => Ok(false),
            Rule::BadRequest => {
                Err(Refusal::BadRequest("the task is queued; no turn of it can have ended".to_owned()))
            }
            Rule::Busy => Err(Refusal::busy("the task is queued; wait for queue.dispatch")),
            Rule::Running => Err(Refusal::Running(status)),
            Rule::NotResumable => Err(Refusal::NotResumable(status)),
        }
    }
}
