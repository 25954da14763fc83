//! Says when time is up: monotonic time, so that neither a clock that is set nor a machine that slept ends a turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::pod::TaskId;
use cofferdam_storage::clock::Clock;

use super::messages::{ArmDeadline, Deadline, DeadlineExpired, DisarmDeadline, GraceOver};
use crate::mailbox::{Carries, mailboxes};

mailboxes! {
    /// The way to the ticker.
    pub(super) struct Ticker {
        arm: ArmDeadline,
        disarm: DisarmDeadline,
    }
}

mailboxes! {
    /// Whom the ticker tells.
    pub(super) struct Expiries {
        expired: DeadlineExpired,
        grace_over: GraceOver,
    }
}

/// Owns the open deadlines.
pub(super) struct DeadlineTicker {
    clock: Arc<dyn Clock>,
    tick: Duration,
    told: Expiries,
    open: HashMap<(TaskId, Kind), Armed>,
    /// How many deadlines were armed.
    armed: u64,
}

struct Armed {
    deadline: Deadline,
    /// Monotonic; then the order in which they were armed.
    up: (Duration, u64),
}

/// Which deadlines replace each other.
type Kind = std::mem::Discriminant<Deadline>;

impl DeadlineTicker {
    pub(super) fn new(clock: Arc<dyn Clock>, tick: Duration, told: Expiries) -> Self {
        Self { clock, tick, told, open: HashMap::new(), armed: 0 }
    }

    /// Tells of everything that is up, in the order in which it came to that. What the listener has no room for is told
    /// at the next tick.
    fn look(&mut self, ctx: &mut Context<Self>) {
        if !self.told.expired.connected() {
            return ctx.stop();
        }
        let now = self.clock.monotonic();
        let mut due: Vec<_> = self.open.iter().filter(|(_, armed)| armed.up.0 <= now).collect();
        due.sort_unstable_by_key(|(_, armed)| armed.up);
        let told = due.into_iter().take_while(|((task, _), armed)| {
            let task = task.clone();
            match armed.deadline {
                Deadline::Grace(turn) => self.told.offer(GraceOver { task, turn }).is_ok(),
                deadline => self.told.offer(DeadlineExpired { task, deadline }).is_ok(),
            }
        });
        let told: Vec<_> = told.map(|(key, _)| key.clone()).collect();
        for key in told {
            self.open.remove(&key);
        }
    }
}

impl Actor for DeadlineTicker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(self.tick, Self::look);
    }
}

impl Handler<ArmDeadline> for DeadlineTicker {
    type Result = ();

    fn handle(&mut self, ArmDeadline { task, deadline, after }: ArmDeadline, _: &mut Context<Self>) {
        let up = (self.clock.monotonic().saturating_add(after), self.armed);
        self.armed += 1;
        self.open.insert((task, std::mem::discriminant(&deadline)), Armed { deadline, up });
    }
}

impl Handler<DisarmDeadline> for DeadlineTicker {
    type Result = ();

    fn handle(&mut self, DisarmDeadline { task, deadline }: DisarmDeadline, _: &mut Context<Self>) {
        match deadline {
            Some(deadline) => drop(self.open.remove(&(task, std::mem::discriminant(&deadline)))),
            None => self.open.retain(|(owner, _), _| *owner != task),
        }
    }
}

#[cfg(test)]
mod tests;
