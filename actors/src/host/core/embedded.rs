//! The pod's actors in this process, started again when they could not open the database or have ended.

use std::sync::Arc;
use std::time::Duration;

use actix::WeakAddr;
use actix::prelude::*;
use cofferdam_protocol::pod::*;
use tokio::time::Instant;

use super::failure::{Refusal, Trouble};
use super::handshake::{self, Verdict};
use super::standing::{STEADY, Standing};
use super::{CoreControl, CoreDescription, CoreEvent, CoreParts, Describe, PodCore, Restart};
use crate::mailbox::Carries;
use crate::pod::{self, Call, EventSink, Failure, Pod, Reply};

/// How many requests may wait.
const MAILBOX: usize = 1024;
/// How long former actors may hold the database with what they had begun, before that counts as a failure.
const SETTLING: Duration = Duration::from_secs(30);
/// How often it is looked whether they still do.
const LOOK: Duration = Duration::from_millis(200);

/// Starts them.
pub(super) fn start(parts: CoreParts, pod: pod::Parts, events: Recipient<CoreEvent>) -> PodCore {
    let core = EmbeddedCore {
        parts,
        pod,
        standing: Standing::new(events, true, 1),
        phase: Phase::Waiting,
        settling_until: None,
    };
    let core = core.start();
    PodCore { pod: (core.clone(), core.clone()).into(), control: CoreControl::from(core) }
}

/// Stands before the pod's actors: hands requests over while they can be asked, and refuses them while they cannot.
struct EmbeddedCore {
    parts: CoreParts,
    pod: pod::Parts,
    standing: Standing,
    phase: Phase,
    /// Until when the database may be locked by actors that were told to end.
    settling_until: Option<Instant>,
}

enum Phase {
    /// The actors open the database.
    Starting(Pod),
    /// They can be asked.
    Up(Pod),
    /// They close the database, so that others can be started.
    Ending,
    /// There are none.
    Waiting,
}

/// What the actors that were started as that number have come to. Sent by whatever they call back, and by timers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Notice {
    start: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// They have opened the database, or not.
    Opened(Box<Result<Initialized, Failure>>),
    /// They have something to say.
    Said(PodEvent),
    /// They have closed the database.
    Closed,
    /// They have ended by themselves.
    Lost,
    /// It is time to start others.
    Retry,
    /// They have worked for so long that a failure is a new one.
    Steady,
}

/// Sends notices. The actors that it is given to do not keep their keeper alive.
#[derive(Clone)]
struct Notify {
    start: u64,
    keeper: WeakAddr<EmbeddedCore>,
}

impl Notify {
    fn send(&self, what: What) {
        if let Some(keeper) = self.keeper.upgrade() {
            // Nothing of this may be lost.
            keeper.do_send(Notice { start: self.start, what });
        }
    }
}

/// Events come through the keeper's mailbox like everything else that the actors say, so that all of it has one order.
impl EventSink for Notify {
    fn event(&self, event: PodEvent) {
        self.send(What::Said(event));
    }
}

impl EmbeddedCore {
    fn begin(&mut self, ctx: &mut Context<Self>) {
        self.standing.begin();
        let request = match handshake::request(&self.parts, None) {
            Ok(request) => request,
            Err(trouble) => return self.fail(trouble, ctx),
        };
        let notify = self.notify(ctx);
        let pod = pod::start(pod::Parts { events: Arc::new(notify.clone()), ..self.pod.clone() });
        pod.call(request, Reply::new(move |answer| notify.send(What::Opened(Box::new(answer)))));
        self.phase = Phase::Starting(pod);
    }

    fn notify(&self, ctx: &Context<Self>) -> Notify {
        Notify { start: self.standing.start(), keeper: ctx.address().downgrade() }
    }

    fn opened(&mut self, answer: Result<Initialized, Failure>, ctx: &mut Context<Self>) {
        let Phase::Starting(pod) = std::mem::replace(&mut self.phase, Phase::Waiting) else { return };
        let locked = answer.as_ref().is_err_and(|failure| failure.data["reason"] == "LOCKED");
        let settling = self.settling_until.is_some_and(|until| Instant::now() < until);
        if locked && settling {
            discard(&pod);
            return self.later(LOOK, What::Retry, ctx);
        }
        self.settling_until = None;
        match handshake::judge(answer) {
            Verdict::Ready(facts, initialized) => {
                self.standing.runs_as(std::process::id());
                self.standing.up(facts, None, Some(initialized));
                self.phase = Phase::Up(pod);
                self.later(STEADY, What::Steady, ctx);
            }
            Verdict::Mismatch(facts, trouble, initialized) => {
                self.standing.runs_as(std::process::id());
                self.standing.up(facts, Some(trouble), initialized);
                self.phase = Phase::Up(pod);
            }
            Verdict::Failed(trouble) => {
                discard(&pod);
                self.fail(trouble, ctx);
            }
        }
    }

    fn fail(&mut self, trouble: Trouble, ctx: &mut Context<Self>) {
        self.phase = Phase::Waiting;
        self.standing.down(trouble);
        let wait = self.standing.wait();
        self.later(wait, What::Retry, ctx);
    }

    fn later(&self, after: Duration, what: What, ctx: &Context<Self>) {
        let notify = self.notify(ctx);
        // A task and not a timer of the context, which would keep an actor that nobody knows any more.
        actix::spawn(async move {
            tokio::time::sleep(after).await;
            notify.send(what);
        });
    }

    /// Has the actors close the database.
    fn end(&mut self, ctx: &Context<Self>) {
        if let Phase::Up(pod) = std::mem::replace(&mut self.phase, Phase::Ending) {
            self.standing.end();
            let notify = self.notify(ctx);
            pod.call(Shutdown {}, Reply::new(move |_| notify.send(What::Closed)));
        }
    }
}

/// Ends actors that are of no use.
fn discard(pod: &Pod) {
    pod.call(Shutdown {}, Reply::new(drop));
}

/// Whether an answer says that actors have ended.
fn has_ended<T>(answer: &Result<T, Failure>) -> bool {
    answer.as_ref().is_err_and(|failure| {
        failure.code == PodErrorCode::CoreUnavailable && failure.data["reason"] == "STOPPING"
    })
}

impl Actor for EmbeddedCore {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.begin(ctx);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        if let Phase::Starting(pod) | Phase::Up(pod) = &self.phase {
            discard(pod);
        }
    }
}

impl Handler<Notice> for EmbeddedCore {
    type Result = ();

    fn handle(&mut self, Notice { start, what }: Notice, ctx: &mut Context<Self>) {
        if start != self.standing.start() {
            return;
        }
        match (what, &self.phase) {
            (What::Opened(answer), _) => self.opened(*answer, ctx),
            (What::Said(event), Phase::Up(_) | Phase::Ending) => self.standing.says(event),
            (What::Said(_), Phase::Starting(_) | Phase::Waiting) => {}
            (What::Closed, _) => {
                self.standing.down_for_restart();
                self.standing.steady();
                self.settling_until = Some(Instant::now() + SETTLING);
                self.begin(ctx);
            }
            (What::Lost, Phase::Up(pod)) => {
                discard(pod);
                self.settling_until = Some(Instant::now() + SETTLING);
                self.fail(Trouble::unavailable("it has ended unexpectedly; the log says more"), ctx);
            }
            (What::Retry, Phase::Waiting) => self.begin(ctx),
            (What::Steady, Phase::Up(_)) => self.standing.steady(),
            (What::Lost | What::Retry | What::Steady, _) => {}
        }
    }
}

impl<M: Method> Handler<Call<M>> for EmbeddedCore
where
    Pod: Carries<Call<M>>,
{
    type Result = ();

    fn handle(&mut self, Call { request, reply }: Call<M>, ctx: &mut Context<Self>) {
        if [Initialize::NAME, Shutdown::NAME].contains(&M::NAME) {
            return reply.send(Err(Refusal::Reserved(M::NAME).into()));
        }
        let Phase::Up(pod) = &self.phase else {
            return reply.send(Err(self.standing.refusal().into()));
        };
        let notify = self.notify(ctx);
        let reply = Reply::new(move |answer| {
            if has_ended(&answer) {
                notify.send(What::Lost);
            }
            reply.send(answer);
        });
        pod.call(request, reply);
    }
}

impl Handler<Restart> for EmbeddedCore {
    type Result = ResponseFuture<Result<(), Failure>>;

    fn handle(&mut self, _: Restart, ctx: &mut Context<Self>) -> Self::Result {
        let outcome = self.standing.expect();
        match &self.phase {
            Phase::Up(_) => self.end(ctx),
            Phase::Waiting => {
                self.standing.steady();
                self.begin(ctx);
            }
            // One is under way.
            Phase::Starting(_) | Phase::Ending => {}
        }
        Box::pin(async move { outcome.await.unwrap_or_else(|_| Err(pod::Refusal::Stopping.into())) })
    }
}

impl Handler<Describe> for EmbeddedCore {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Context<Self>) -> Self::Result {
        MessageResult(CoreDescription {
            state: self.standing.state().clone(),
            path: String::new(),
            stderr_tail: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests;
