//! The actor: in which phase the sidecar is, and which calls wait.

use std::time::Duration;

use actix::prelude::*;
use cofferdam_protocol::pod::*;
use tokio::sync::{mpsc, oneshot};

use super::SidecarParts;
use super::attend::{Orders, Report, attend};
use super::calls::{Answer, Calls, IN_FLIGHT, Queued};
use super::child::LINGER;
use super::frame::Frame;
use super::tail::Tail;
use crate::host::core::failure::{Refusal, Trouble};
use crate::host::core::handshake::{self, Verdict};
use crate::host::core::standing::{STEADY, Standing};
use crate::host::core::{CoreDescription, CoreEvent, CoreParts, Describe, Restart};
use crate::pod::{self, Call, Failure};

/// How many requests may wait to be looked at.
const MAILBOX: usize = 1024;

/// The actor. See the module.
pub(super) struct SidecarClient {
    parts: CoreParts,
    sidecar: SidecarParts,
    standing: Standing,
    phase: Phase,
    calls: Calls,
    tail: Tail,
    /// Whether somebody will say when patience with a call ends.
    watched: bool,
}

enum Phase {
    /// It was started and has yet to answer `initialize`, which has that number.
    Starting(Link, u64),
    /// It can be asked.
    Up(Link),
    /// It was told to end.
    Ending(After),
    /// There is none.
    Waiting,
}

/// The way to the task that attends to the process.
struct Link {
    lines: mpsc::Sender<Queued>,
    ending: oneshot::Sender<Duration>,
}

/// What follows the process's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The next one. Until then it is listened to.
    Restart,
    /// That it does not work was told already.
    Failure,
}

/// What becomes of the process that was started as that number. Sent by the task that attends to it, and by timers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Notice {
    pub(super) start: u64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// It runs as that process.
    Runs(u32),
    /// It has ended, and was listened to until then; or it could not be started. Why.
    Gone(String),
    /// It has had its time to answer `initialize`.
    Late,
    /// It has worked for so long that a failure is a new one.
    Steady,
    /// It is time to start another one.
    Retry,
    /// Patience with a call has ended, of whatever process.
    Expired,
}

/// What the process that was started as that number says. Sent by the task that attends to it; the reply is that the next
/// can be taken.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Heard {
    pub(super) start: u64,
    pub(super) frame: Frame,
}

impl SidecarClient {
    pub(super) fn new(parts: CoreParts, sidecar: SidecarParts, events: Recipient<CoreEvent>) -> Self {
        Self {
            standing: Standing::new(events, false, sidecar.faster),
            calls: Calls::new(sidecar.patience),
            parts,
            sidecar,
            phase: Phase::Waiting,
            tail: Tail::default(),
            watched: false,
        }
    }

    fn begin(&mut self, ctx: &Context<Self>) {
        self.standing.begin();
        let (lines, to_write) = mpsc::channel(IN_FLIGHT);
        let (ending, ends) = oneshot::channel();
        let initialize = handshake::request(&self.parts, Some(std::process::id()));
        let sent = initialize.and_then(|request| {
            self.calls.send(&request, &lines).map_err(|refusal| Failure::from(refusal).into())
        });
        let initialize = match sent {
            Ok(id) => id,
            Err(trouble) => return self.fail(trouble, ctx),
        };
        let orders = Orders { lines: to_write, ending: ends };
        actix::spawn(attend(self.sidecar.clone(), orders, self.tail.clone(), self.report(ctx)));
        self.later(self.sidecar.patience, What::Late, ctx);
        self.phase = Phase::Starting(Link { lines, ending }, initialize);
    }

    fn report(&self, ctx: &Context<Self>) -> Report {
        Report { start: self.standing.start(), client: ctx.address().downgrade() }
    }

    /// Says something to this actor later. A task and not a timer of the context, which would keep an actor that nobody
    /// knows any more.
    fn later(&self, after: Duration, what: What, ctx: &Context<Self>) {
        let report = self.report(ctx);
        actix::spawn(async move {
            tokio::time::sleep(after).await;
            report.say(what);
        });
    }

    /// It has answered `initialize`.
    fn initialized(&mut self, link: Link, answer: &Answer, ctx: &Context<Self>) {
        let answer = answer.as_ref().map(|result| result.get()).map_err(Clone::clone);
        match handshake::judge_text(answer) {
            Verdict::Ready(facts, initialized) => self.standing.up(facts, None, Some(initialized)),
            Verdict::Mismatch(facts, trouble, initialized) => {
                self.standing.up(facts, Some(trouble), initialized);
            }
            // It can end by itself.
            Verdict::Failed(trouble) => return self.give_up(link, trouble, LINGER),
        }
        self.phase = Phase::Up(link);
        self.later(STEADY / self.sidecar.faster.max(1), What::Steady, ctx);
    }

    /// Ends a process that is of no use.
    fn give_up(&mut self, link: Link, trouble: Trouble, patience: Duration) {
        self.phase = Phase::Ending(After::Failure);
        self.standing.down(trouble);
        // If nobody listens it is ending anyway.
        let _ = link.ending.send(patience);
    }

    /// There is no process any more, or none could be started.
    fn fail(&mut self, trouble: Trouble, ctx: &Context<Self>) {
        self.standing.down(trouble);
        self.wait(ctx);
    }

    fn wait(&mut self, ctx: &Context<Self>) {
        self.phase = Phase::Waiting;
        let wait = self.standing.wait();
        self.later(wait, What::Retry, ctx);
    }

    fn gone(&mut self, how: String, ctx: &Context<Self>) {
        self.calls.fail();
        match std::mem::replace(&mut self.phase, Phase::Waiting) {
            Phase::Starting(..) | Phase::Up(_) => self.fail(Trouble::unavailable(how), ctx),
            Phase::Ending(After::Restart) => {
                self.standing.down_for_restart();
                self.standing.steady();
                self.begin(ctx);
            }
            // Somebody has asked for a restart since.
            Phase::Ending(After::Failure) if self.standing.is_expected() => self.begin(ctx),
            Phase::Ending(After::Failure) => self.wait(ctx),
            Phase::Waiting => {}
        }
    }

    /// Sees to it that patience with calls ends in time.
    fn watch(&mut self, ctx: &Context<Self>) {
        if self.watched {
            return;
        }
        if let Some(end) = self.calls.next_end() {
            self.watched = true;
            let report = self.report(ctx);
            actix::spawn(async move {
                tokio::time::sleep_until(end).await;
                report.say(What::Expired);
            });
        }
    }
}

impl Actor for SidecarClient {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        self.begin(ctx);
    }
}

impl Handler<Notice> for SidecarClient {
    type Result = ();

    fn handle(&mut self, Notice { start, what }: Notice, ctx: &mut Context<Self>) {
        if matches!(what, What::Expired) {
            self.watched = false;
            self.calls.expire();
            return self.watch(ctx);
        }
        if start != self.standing.start() {
            return;
        }
        match what {
            What::Runs(pid) => self.standing.runs_as(pid),
            What::Gone(how) => self.gone(how, ctx),
            What::Late => match std::mem::replace(&mut self.phase, Phase::Waiting) {
                Phase::Starting(link, _) => {
                    let patience = self.sidecar.patience.as_millis();
                    let why = format!("it has not answered initialize within {patience} ms");
                    self.give_up(link, Trouble::unavailable(why), Duration::ZERO);
                }
                other => self.phase = other,
            },
            What::Steady if matches!(self.phase, Phase::Up(_)) => self.standing.steady(),
            What::Retry if matches!(self.phase, Phase::Waiting) => self.begin(ctx),
            What::Steady | What::Retry | What::Expired => {}
        }
    }
}

impl Handler<Heard> for SidecarClient {
    type Result = ();

    fn handle(&mut self, Heard { start, frame }: Heard, ctx: &mut Context<Self>) {
        if start != self.standing.start() {
            return;
        }
        match (std::mem::replace(&mut self.phase, Phase::Waiting), frame) {
            (Phase::Starting(link, initialize), Frame::Answer { id, answer })
                if id == initialize.to_string() =>
            {
                self.initialized(link, &answer, ctx);
            }
            (phase @ (Phase::Up(_) | Phase::Ending(After::Restart)), frame) => {
                self.phase = phase;
                match frame {
                    Frame::Answer { id, answer } => self.calls.answer(&id, answer),
                    Frame::Event(event) => self.standing.says(event),
                }
            }
            // Too early or too late for anybody.
            (phase @ (Phase::Starting(..) | Phase::Ending(After::Failure) | Phase::Waiting), _) => {
                self.phase = phase;
            }
        }
    }
}

impl<M: Method> Handler<Call<M>> for SidecarClient {
    type Result = ();

    fn handle(&mut self, call: Call<M>, ctx: &mut Context<Self>) {
        if [Initialize::NAME, Shutdown::NAME].contains(&M::NAME) {
            return call.reply.send(Err(Refusal::Reserved(M::NAME).into()));
        }
        match &self.phase {
            Phase::Up(link) => self.calls.call(call, &link.lines),
            Phase::Starting(..) | Phase::Ending(_) | Phase::Waiting => {
                return call.reply.send(Err(self.standing.refusal().into()));
            }
        }
        self.watch(ctx);
    }
}

impl Handler<Restart> for SidecarClient {
    type Result = ResponseFuture<Result<(), Failure>>;

    fn handle(&mut self, _: Restart, ctx: &mut Context<Self>) -> Self::Result {
        let outcome = self.standing.expect();
        match std::mem::replace(&mut self.phase, Phase::Waiting) {
            Phase::Up(link) => {
                self.standing.end();
                self.phase = Phase::Ending(After::Restart);
                // If it does not take that, the end of its input tells it the same.
                let _ = self.calls.send(&Shutdown {}, &link.lines);
                let _ = link.ending.send(LINGER);
            }
            Phase::Waiting => {
                self.standing.steady();
                self.begin(ctx);
            }
            // One is under way.
            underway @ (Phase::Starting(..) | Phase::Ending(_)) => self.phase = underway,
        }
        Box::pin(async move { outcome.await.unwrap_or_else(|_| Err(pod::Refusal::Stopping.into())) })
    }
}

impl Handler<Describe> for SidecarClient {
    type Result = MessageResult<Describe>;

    fn handle(&mut self, _: Describe, _: &mut Context<Self>) -> Self::Result {
        MessageResult(CoreDescription {
            state: self.standing.state().clone(),
            path: self.sidecar.program.display().to_string(),
            stderr_tail: self.tail.lines(),
        })
    }
}
