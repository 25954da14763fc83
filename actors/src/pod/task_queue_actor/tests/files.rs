//! Work on files goes on beside the queue.

use std::sync::mpsc::{Sender, channel};

use super::*;
use crate::pod::queue::FileUse;
use crate::pod::queue::verbs::{Later, Then};

impl Fixture {
    /// Sends a request that works on the files of task `a`, as if it took them away, until it is told to go on; that it
    /// begins is said.
    fn work(&self, name: &str, ends: impl FnOnce() -> Then<Done> + Send + 'static) -> Sender<()> {
        let (go_on, told) = channel();
        let said = self.said.clone();
        self.change(name, move |queue, _| {
            let held = queue.hold("a", FileUse::Removed)?;
            let work = Box::new(move || {
                said.say("begins");
                let _ = told.recv();
                ends()
            });
            Ok(Outcome::Later(Later { holds: vec![held], work }))
        });
        go_on
    }

    /// Until that was said.
    async fn hears(&self, wanted: &str) {
        let mut heard = Vec::new();
        while !heard.iter().any(|line| line == wanted) {
            tokio::task::yield_now().await;
            heard.extend(self.said.take());
        }
    }

    /// The code with which `a` is not taken up again.
    async fn reattach(&self) -> Option<PodErrorCode> {
        let answer = self.ask(params::<TaskReattach>(json!({"taskId": "a", "leaseId": "N"}))).await;
        answer.err().map(|failure| failure.code)
    }
}

fn done() -> Then<Done> {
    Then::Answer(Ok(Done { ok: true }))
}

#[actix::test]
async fn it_begins_when_everything_before_is_durable_and_holds_nothing_up() {
    let fixture = Fixture::open().await;
    fixture.commits.hold();
    fixture.insert("a", TaskStatus::Completed);
    let go_on = fixture.work("work", done);
    fixture.applied().await;
    assert_eq!(fixture.said.take(), [""; 0]);
    fixture.commits.let_go();
    fixture.hears("begins").await;
    fixture.describe("a", "changed meanwhile");
    assert_eq!(fixture.heard().await, ["describe a ok", "changed a completed"]);
    assert_eq!(fixture.reattach().await, Some(PodErrorCode::TaskBusy));
    go_on.send(()).unwrap();
    fixture.hears("work ok").await;
    assert_eq!(fixture.reattach().await, None);
}

#[actix::test]
async fn it_is_not_begun_on_what_is_lost_and_holds_nothing_then() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Completed);
    fixture.heard().await;
    fixture.commits.fail(1, 1, ENOSPC);
    fixture.describe("a", "lost");
    let _go_on = fixture.work("work", done);
    assert_eq!(fixture.heard().await, ["describe a DB_ERROR", "work DB_ERROR"]);
    assert_eq!(fixture.reattach().await, None);
}

#[actix::test]
async fn what_it_holds_stays_held_while_memory_is_loaded_again() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Completed);
    let go_on = fixture.work("work", done);
    fixture.hears("begins").await;
    fixture.commits.fail(1, 1, ENOSPC);
    fixture.describe("a", "lost");
    fixture.hears("describe a DB_ERROR").await;
    assert_eq!(fixture.reattach().await, Some(PodErrorCode::TaskBusy));
    go_on.send(()).unwrap();
    fixture.hears("work ok").await;
    assert_eq!(fixture.reattach().await, None);
}

#[actix::test]
async fn a_bug_in_it_is_an_internal_error_and_nothing_stays_held() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Completed);
    let go_on = fixture.work("work", || panic!("a bug in work on files"));
    go_on.send(()).unwrap();
    fixture.hears("work INTERNAL").await;
    assert_eq!(fixture.reattach().await, None);
}

#[actix::test]
async fn what_it_changes_is_durable_before_the_answer() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Completed);
    let go_on = fixture.work("work", || {
        Then::Change(Box::new(|queue, _| {
            queue.remove("a")?;
            Ok(Done { ok: true })
        }))
    });
    go_on.send(()).unwrap();
    fixture.hears("work ok").await;
    assert_eq!(fixture.agreed().await.tasks, []);
}

#[actix::test]
async fn shutdown_waits_for_it() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Completed);
    let go_on = fixture.work("work", done);
    fixture.hears("begins").await;
    fixture.call("end", Shutdown {});
    go_on.send(()).unwrap();
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| last != "end ok") {
        tokio::task::yield_now().await;
        heard.extend(fixture.said.take());
    }
    assert_eq!(heard, ["work ok", "end ok"]);
}

#[actix::test]
async fn shutdown_does_not_wait_for_it_for_long() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Completed);
    let _go_on = fixture.work("work", done);
    fixture.hears("begins").await;
    fixture.call("end", Shutdown {});
    let began = tokio::time::Instant::now();
    while !fixture.said.take().contains(&"end ok".to_owned()) {
        // A thread that works keeps time from going on by itself.
        tokio::time::advance(SECOND / 10).await;
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() >= SECOND / 2, "{:?}", began.elapsed());
}
