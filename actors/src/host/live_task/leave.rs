//! How a live task ends: the host lets it go, it is somebody else's now, or its agent could not be had. Whatever it is, the
//! actor stays until nothing of the agent runs any more.

use std::mem::{replace, take};
use std::time::Duration;

use actix::prelude::{
    ActorContext, ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture,
};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::messages::{LetGo, LiveChange, Release, StillRunning};
use super::prepare::Unready;
use super::state::{Leaving, State};
use super::{LiveTask, PATIENCE};
use crate::pod::{Failure, Refusal};

/// How long the core may take to hear the last of a task.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Handler<Release> for LiveTask {
    type Result = ResponseFuture<Result<(), StillRunning>>;

    fn handle(&mut self, Release(why): Release, ctx: &mut Context<Self>) -> Self::Result {
        if why == LetGo::Forgotten {
            self.line.close();
        }
        match &self.state {
            State::Preparing(_) => self.give_up(&Unready::Released(why), ctx),
            State::InTurn(turn) => {
                // One that was being ended ends as that.
                let reason = if turn.cancelled.is_some() { "aborted" } else { why.reason() };
                self.settle(reason, "", ctx);
                self.leave(ctx);
            }
            State::Waiting { .. } | State::Idle | State::Gone => self.leave(ctx),
            // Asked again, since it did not end the first time.
            State::Leaving(_) => self.dispose(ctx),
        }
        let (reply, answer) = oneshot::channel();
        if let State::Leaving(leaving) = &mut self.state {
            leaving.waiting.push(reply);
        }
        self.leave_if_over(ctx);
        let answer = timeout(self.parts.real(PATIENCE), answer);
        // An actor that is gone has seen its agent go.
        Box::pin(async move { answer.await.map_or(Err(StillRunning), |answer| answer.unwrap_or(Ok(()))) })
    }
}

impl LetGo {
    /// How a turn ends by it, in the words of spec §5.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Unwanted | Self::Forgotten => "aborted",
            Self::Stopping => "interrupted",
        }
    }
}

impl LiveTask {
    /// The task is somebody else's now, or nobody's.
    pub(super) fn lose(&mut self, ctx: &mut Context<Self>) {
        if self.line.is_closed() {
            return;
        }
        self.line.close();
        match &self.state {
            State::Preparing(_) => self.give_up(&Unready::Core(lost()), ctx),
            State::Leaving(_) => self.leave_if_over(ctx),
            State::Waiting { .. } | State::Idle | State::InTurn(_) | State::Gone => {
                self.warn(format!(
                    "task {} is not held by this host any more; its agent is ended",
                    self.parts.task_id
                ));
                self.leave(ctx);
            }
        }
    }

    /// Ends the agent and waits for that, and for the core to hear the last.
    pub(super) fn leave(&mut self, ctx: &mut Context<Self>) {
        let leaving = Leaving { waiting: Vec::new(), agent_gone: !self.had_agent };
        let before = replace(&mut self.state, State::Leaving(leaving));
        if let State::InTurn(turn) = before {
            ctx.cancel_future(turn.limit);
        }
        self.dispose(ctx);
        ctx.run_later(self.parts.real(LAST_WORDS), |actor, ctx| {
            // Heartbeats go on as long as the agent does.
            actor.line.give_up();
            actor.leave_if_over(ctx);
        });
        self.leave_if_over(ctx);
    }

    /// Ends the agent, if there may be one.
    fn dispose(&mut self, ctx: &mut Context<Self>) {
        if !self.had_agent {
            return;
        }
        let parts = self.parts.clone();
        let disposed = async move { parts.dispose().await };
        ctx.spawn(disposed.into_actor(self).map(|(), actor, ctx| {
            actor.set_live(false);
            actor.remember(ctx);
            if let State::Leaving(leaving) = &mut actor.state {
                leaving.agent_gone = true;
            }
            actor.leave_if_over(ctx);
        }));
    }

    /// Stops, if nothing is left to wait for.
    pub(super) fn leave_if_over(&mut self, ctx: &mut Context<Self>) {
        let State::Leaving(leaving) = &mut self.state else { return };
        if !leaving.agent_gone || !self.line.is_done() {
            return;
        }
        let waiting = take(&mut leaving.waiting);
        // Before the replies: whoever goes on then can hold the task anew.
        if ctx.state().alive() {
            self.say(LiveChange::Ended);
        }
        for reply in waiting {
            // Whoever was told that the agent still runs does not wait any more.
            let _ = reply.send(Ok(()));
        }
        ctx.stop();
    }
}

fn lost() -> Failure {
    Refusal::StaleLease.into()
}
