//! Deadlines, in virtual time.

use tokio::time::{pause, sleep};

use super::*;
use crate::pod::testing::{Said, VirtualClock};

const SECOND: Duration = Duration::from_secs(1);
/// A tick, and what is needed to hear of it.
const TICK: Duration = Duration::from_millis(501);

/// Stands in for the owner of the queue.
struct Listener(Said);

impl Actor for Listener {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(2);
    }
}

impl Handler<DeadlineExpired> for Listener {
    type Result = ();

    fn handle(&mut self, DeadlineExpired { task, deadline }: DeadlineExpired, _: &mut Context<Self>) {
        self.0.say(format!("{task} {deadline:?}"));
    }
}

impl Handler<GraceOver> for Listener {
    type Result = ();

    fn handle(&mut self, GraceOver { task, turn }: GraceOver, _: &mut Context<Self>) {
        self.0.say(format!("{task} over {turn}"));
    }
}

/// Keeps the listener busy for so long.
#[derive(Message)]
#[rtype(result = "()")]
struct Busy(Duration);

impl Handler<Busy> for Listener {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, Busy(time): Busy, _: &mut Context<Self>) -> Self::Result {
        AtomicResponse::new(Box::pin(sleep(time).into_actor(self)))
    }
}

/// Ends the listener.
#[derive(Message)]
#[rtype(result = "()")]
struct End;

impl Handler<End> for Listener {
    type Result = ();

    fn handle(&mut self, End: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

struct Fixture {
    clock: Arc<VirtualClock>,
    said: Said,
    listener: Addr<Listener>,
    ticker: Addr<DeadlineTicker>,
}

impl Fixture {
    fn new() -> Self {
        pause();
        let (clock, said) = (VirtualClock::new(), Said::default());
        let listener = Listener(said.clone()).start();
        let ticker = DeadlineTicker::new(clock.clone(), SECOND / 2, listener.clone().into()).start();
        Self { clock, said, listener, ticker }
    }

    async fn arm(&self, task: &str, deadline: Deadline, seconds: u32) {
        let task = TaskId::new(task).unwrap();
        self.ticker.send(ArmDeadline { task, deadline, after: seconds * SECOND }).await.unwrap();
    }

    async fn disarm(&self, task: &str, deadline: Option<Deadline>) {
        self.ticker.send(DisarmDeadline { task: TaskId::new(task).unwrap(), deadline }).await.unwrap();
    }
}

#[actix::test]
async fn time_is_up_once_and_within_a_tick() {
    let fixture = Fixture::new();
    fixture.arm("a", Deadline::Turn(1), 600).await;
    sleep(600 * SECOND - Duration::from_millis(1)).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    sleep(TICK).await;
    assert_eq!(fixture.said.take(), ["a Turn(1)"]);
    fixture.arm("a", Deadline::Grace(1), 10).await;
    sleep(10 * SECOND + TICK).await;
    assert_eq!(fixture.said.take(), ["a over 1"]);
    sleep(1000 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
}

#[actix::test]
async fn a_deadline_replaces_those_of_its_task_and_kind_only() {
    let fixture = Fixture::new();
    fixture.arm("a", Deadline::Turn(1), 10).await;
    fixture.arm("b", Deadline::Turn(1), 10).await;
    fixture.arm("a", Deadline::Cancellation, 10).await;
    fixture.arm("a", Deadline::Turn(2), 20).await;
    sleep(11 * SECOND).await;
    assert_eq!(fixture.said.take(), ["b Turn(1)", "a Cancellation"]);
    sleep(10 * SECOND).await;
    assert_eq!(fixture.said.take(), ["a Turn(2)"]);
}

#[actix::test]
async fn what_was_disarmed_is_not_told() {
    let fixture = Fixture::new();
    for deadline in [Deadline::Turn(1), Deadline::FirstTurn, Deadline::Heartbeat] {
        fixture.arm("a", deadline, 5).await;
        fixture.arm("b", deadline, 5).await;
    }
    // The number of the turn does not matter here.
    fixture.disarm("a", Some(Deadline::Turn(7))).await;
    fixture.disarm("b", None).await;
    fixture.disarm("c", None).await;
    sleep(6 * SECOND).await;
    assert_eq!(fixture.said.take(), ["a FirstTurn", "a Heartbeat"]);
}

#[actix::test]
async fn what_is_up_at_the_same_tick_is_told_in_the_order_of_its_times_then_of_arming() {
    let fixture = Fixture::new();
    sleep(SECOND / 4).await;
    let tasks: Vec<String> = (0..9).map(|n| format!("t{n}")).collect();
    for task in &tasks {
        fixture.arm(task, Deadline::FirstTurn, 2).await;
    }
    sleep(Duration::from_millis(1)).await;
    fixture.arm("later", Deadline::FirstTurn, 2).await;
    fixture.arm("sooner", Deadline::FirstTurn, 1).await;
    sleep(30 * SECOND).await;
    let expected = ["sooner"].into_iter().chain(tasks.iter().map(String::as_str)).chain(["later"]);
    let expected: Vec<String> = expected.map(|task| format!("{task} FirstTurn")).collect();
    assert_eq!(fixture.said.take(), expected);
}

#[actix::test]
async fn a_listener_without_room_hears_of_everything_later_and_in_order() {
    let fixture = Fixture::new();
    let tasks: Vec<String> = (0..20).map(|n| format!("t{n:02}")).collect();
    for task in &tasks {
        fixture.arm(task, Deadline::Turn(1), 1).await;
    }
    fixture.listener.do_send(Busy(10 * SECOND));
    sleep(9 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    sleep(60 * SECOND).await;
    let expected: Vec<String> = tasks.iter().map(|task| format!("{task} Turn(1)")).collect();
    assert_eq!(fixture.said.take(), expected);
}

#[actix::test]
async fn a_wall_clock_that_is_set_neither_brings_time_up_nor_holds_it_back() {
    let fixture = Fixture::new();
    fixture.arm("a", Deadline::Turn(1), 30).await;
    fixture.clock.set_wall(86_400_000);
    sleep(20 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    fixture.clock.set_wall(-2 * 86_400_000);
    sleep(11 * SECOND).await;
    assert_eq!(fixture.said.take(), ["a Turn(1)"]);
}

#[actix::test]
async fn the_ticker_ends_with_its_listener() {
    let fixture = Fixture::new();
    sleep(SECOND).await;
    assert!(fixture.ticker.connected());
    fixture.listener.send(End).await.unwrap();
    sleep(SECOND).await;
    assert!(!fixture.ticker.connected());
}
