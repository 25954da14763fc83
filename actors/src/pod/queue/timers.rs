//! What happens when time is up.

use std::time::Duration;

use cofferdam_protocol::pod::{PodEvent, TaskId, TaskStatus};

use super::{LEASE_LOST, Queue, life};
use crate::pod::failure::Refusal;
use crate::pod::messages::Deadline;

/// What the host has to settle a turn whose deadline has passed (spec §5).
const GRACE: Duration = Duration::from_secs(10);

impl Queue {
    /// Time is up for a task. `unheard` is how long ago its holder was heard of, `None` if nobody holds it. What is not
    /// so any more, such as the turn of another number, changes nothing.
    pub(in crate::pod) fn expired(
        &mut self,
        id: &TaskId,
        deadline: Deadline,
        unheard: Option<Duration>,
        at: i64,
    ) -> Result<(), Refusal> {
        let Some(task) = self.tasks.get(id).filter(|task| task.summary.status.is_active()) else {
            return Ok(());
        };
        match deadline {
            Deadline::Turn(turn) if task.open_turn == Some(turn) && !task.deadline_passed => {
                self.edit(id.as_str(), at, |task| task.deadline_passed = true)?;
                self.tell(PodEvent::DeadlineExpired { task_id: id.to_string(), turn });
                self.arm(id, Deadline::Grace(turn), GRACE);
            }
            Deadline::Grace(turn) if task.open_turn == Some(turn) && task.deadline_passed => {
                self.edit(id.as_str(), at, |task| life::time_out(task, at))?;
            }
            Deadline::FirstTurn => {
                if let Some(before) = task.reattached_from {
                    self.edit(id.as_str(), at, |task| life::end_as_before(task, before, at))?;
                }
            }
            Deadline::Cancellation if task.cancel_requested => {
                self.edit(id.as_str(), at, |task| life::end(task, TaskStatus::Cancelled, at))?;
            }
            // An open turn and a reattached task have deadlines of their own.
            Deadline::Heartbeat if task.open_turn.is_none() && task.reattached_from.is_none() => {
                match unheard.and_then(|unheard| LEASE_LOST.checked_sub(unheard)) {
                    None | Some(Duration::ZERO) => {
                        self.edit(id.as_str(), at, |task| {
                            life::end(task, TaskStatus::Interrupted, at);
                            life::explain(task, || {
                                "lease lost: its host was not heard of for 60 s".to_owned()
                            });
                        })?;
                    }
                    Some(left) => self.arm(id, Deadline::Heartbeat, left),
                }
            }
            Deadline::Turn(_) | Deadline::Grace(_) | Deadline::Cancellation | Deadline::Heartbeat => {}
        }
        Ok(())
    }
}
