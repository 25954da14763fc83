//! The leases, in virtual time.

use tokio::time::{advance, pause};

use super::*;
use crate::mailbox::Carries;
use crate::pod::testing::VirtualClock;

const SECOND: Duration = Duration::from_secs(1);

struct Fixture {
    clock: Arc<VirtualClock>,
    leases: Leases,
}

impl Fixture {
    fn new() -> Self {
        pause();
        let clock = VirtualClock::new();
        Self { leases: LeaseActor::new(clock.clone()).start().into(), clock }
    }

    async fn acquire(&self, task: &str, lease: &str) -> Result<Acquired, Duration> {
        let message = AcquireLease { task: task_id(task), lease: LeaseId(lease.to_owned()) };
        self.leases.recipient().send(message).await.unwrap()
    }

    async fn heartbeat(&self, task: &str, lease: &str) -> bool {
        let message = Heartbeat { task: task_id(task), lease: LeaseId(lease.to_owned()) };
        self.leases.recipient().send(message).await.unwrap()
    }

    async fn check(&self, task: &str) -> Option<Duration> {
        self.leases.recipient().send(CheckLease { task: task_id(task) }).await.unwrap()
    }

    async fn count(&self) -> usize {
        self.leases.recipient().send(CountLeases).await.unwrap()
    }
}

fn task_id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

#[actix::test]
async fn a_lease_is_live_for_30_s_after_its_holder_was_heard_of() {
    let fixture = Fixture::new();
    assert_eq!(fixture.acquire("a", "L1").await, Ok(Acquired::Free));
    advance(29 * SECOND).await;
    assert_eq!(fixture.acquire("a", "L2").await, Err(SECOND));
    assert_eq!(fixture.acquire("b", "L2").await, Ok(Acquired::Free), "another task");
    advance(SECOND).await;
    assert_eq!(fixture.acquire("a", "L2").await, Ok(Acquired::TakenOver));
    assert!(!fixture.heartbeat("a", "L1").await, "it was taken over");
    assert!(fixture.heartbeat("a", "L2").await);
}

#[actix::test]
async fn a_late_holder_keeps_its_task_while_nobody_has_taken_it_over() {
    let fixture = Fixture::new();
    fixture.acquire("a", "L1").await.unwrap();
    advance(100 * SECOND).await;
    assert!(fixture.heartbeat("a", "L1").await);
    assert_eq!(fixture.acquire("a", "L2").await, Err(30 * SECOND), "it is live again");
    advance(100 * SECOND).await;
    assert_eq!(fixture.acquire("a", "L1").await, Ok(Acquired::Same));
    assert_eq!(fixture.acquire("a", "L2").await, Err(30 * SECOND));
}

#[actix::test]
async fn a_stranger_is_no_heartbeat_and_neither_is_a_question() {
    let fixture = Fixture::new();
    fixture.acquire("a", "L1").await.unwrap();
    advance(20 * SECOND).await;
    assert!(!fixture.heartbeat("a", "L2").await);
    assert!(!fixture.heartbeat("b", "L1").await);
    assert_eq!(fixture.acquire("a", "L2").await, Err(10 * SECOND));
    assert_eq!(fixture.check("a").await, Some(20 * SECOND));
    assert_eq!(fixture.check("b").await, None);
}

#[actix::test]
async fn a_released_task_is_free_and_no_longer_counted() {
    let fixture = Fixture::new();
    fixture.acquire("a", "L1").await.unwrap();
    fixture.acquire("b", "L1").await.unwrap();
    assert_eq!(fixture.count().await, 2);
    for _ in 0..2 {
        fixture.leases.recipient().send(ReleaseLease { task: task_id("a") }).await.unwrap();
    }
    assert_eq!(fixture.count().await, 1);
    assert!(!fixture.heartbeat("a", "L1").await);
    assert_eq!(fixture.acquire("a", "L2").await, Ok(Acquired::Free));
}

#[actix::test]
async fn setting_the_wall_clock_changes_no_lease() {
    let fixture = Fixture::new();
    fixture.acquire("a", "L1").await.unwrap();
    for hour in [3_600_000, -7_200_000] {
        fixture.clock.set_wall(hour);
        assert_eq!(fixture.acquire("a", "L2").await, Err(30 * SECOND));
    }
}
