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
    /// With the monotonic time at which each is up.
    open: HashMap<(TaskId, Kind), (Deadline, Duration)>,
}

/// Which deadlines replace each other.
type Kind = std::mem::Discriminant<Deadline>;

impl DeadlineTicker {
    pub(super) fn new(clock: Arc<dyn Clock>, tick: Duration, told: Expiries) -> Self {
        Self { clock, tick, told, open: HashMap::new() }
    }

    /// Tells of everything that is up. What the listener has no room for is told at the next tick.
    fn look(&mut self) {
        let now = self.clock.monotonic();
        let told = &self.told;
        self.open.retain(|(task, _), (deadline, at)| {
            let task = task.clone();
            *at > now
                || match *deadline {
                    Deadline::Grace(turn) => told.offer(GraceOver { task, turn }).is_err(),
                    deadline => told.offer(DeadlineExpired { task, deadline }).is_err(),
                }
        });
    }
}

impl Actor for DeadlineTicker {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.run_interval(self.tick, |actor, _| actor.look());
    }
}

impl Handler<ArmDeadline> for DeadlineTicker {
    type Result = ();

    fn handle(&mut self, ArmDeadline { task, deadline, after }: ArmDeadline, _: &mut Context<Self>) {
        let at = self.clock.monotonic() + after;
        self.open.insert((task, std::mem::discriminant(&deadline)), (deadline, at));
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
