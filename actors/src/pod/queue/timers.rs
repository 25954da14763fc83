//! What happens when time is up.

use std::time::Duration;

use cofferdam_protocol::pod::TaskId;

use super::Queue;
use crate::pod::failure::Refusal;
use crate::pod::messages::Deadline;

impl Queue {
    /// Time is up for a task. `unheard` is how long ago its holder was heard of, `None` if nobody holds it. What is not
    /// so any more, such as the turn of another number, changes nothing.
    pub(in crate::pod) fn expired(
        &mut self,
        task: &TaskId,
        deadline: Deadline,
        unheard: Option<Duration>,
        at: i64,
    ) -> Result<(), Refusal> {
        let _ = (task, deadline, unheard, at);
        todo!()
    }
}
