//! What time brings.

use super::*;

const PACE: Duration = Duration::from_millis(250);
const MOMENT: Duration = Duration::from_millis(50);

#[actix::test]
async fn texts_are_told_at_most_every_250_ms_and_the_last_one_for_sure() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.heard().await;
    for n in 0..4 {
        fixture.text("a", &n.to_string());
        fixture.heard().await;
        pass(MOMENT).await;
    }
    assert_eq!(fixture.said.take(), [""; 0]);
    pass(MOMENT * 2).await;
    assert_eq!(fixture.said.take(), ["changed a running 3"]);
    pass(PACE * 4).await;
    assert_eq!(fixture.said.take(), [""; 0], "nothing is told twice");
    fixture.text("a", "4");
    assert_eq!(fixture.heard().await, ["text ok", "changed a running 4"]);
}

#[actix::test]
async fn a_text_that_another_change_has_shown_is_not_told_again() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.insert("b", TaskStatus::Running);
    fixture.heard().await;
    // In one commit, behind one that takes long: between two commits time may pass, and a text may be told.
    fixture.commits.hold();
    fixture.describe("b", "x");
    fixture.text("a", "1");
    fixture.text("a", "2");
    fixture.describe("a", "x");
    fixture.applied().await;
    fixture.commits.let_go();
    let heard = fixture.heard().await;
    assert_eq!(heard.iter().filter(|line| line.starts_with("changed a running 2")).count(), 1, "{heard:?}");
    pass(PACE * 4).await;
    assert_eq!(fixture.said.take(), [""; 0]);
}

#[actix::test]
async fn a_text_of_a_task_that_is_gone_is_not_told() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Completed);
    fixture.text("a", "1");
    fixture.heard().await;
    fixture.text("a", "2");
    fixture.change("delete", |queue, _| {
        queue.remove("a")?;
        DONE
    });
    fixture.heard().await;
    pass(PACE * 4).await;
    assert_eq!(fixture.said.take(), [""; 0]);
}

#[actix::test]
async fn no_text_is_told_before_everything_it_shows_is_durable() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.text("a", "1");
    fixture.heard().await;
    fixture.text("a", "2");
    fixture.heard().await;
    fixture.commits.fail(1, 1, EIO);
    fixture.change("fail", |queue, at| {
        queue.edit("a", at, |task| task.summary.status = TaskStatus::Failed)?;
        DONE
    });
    pass(PACE * 8).await;
    assert_eq!(fixture.said.take(), ["fail DB_ERROR", "changed a running 2"]);
}

#[actix::test]
async fn a_turn_out_of_time_is_told_once_and_ended_after_the_grace_period() {
    let fixture = Fixture::with_slots(1).await;
    fixture.reserve("a").await;
    fixture.done::<TaskTurnStarted>(turn("a", 1)).await;
    fixture.reserve("b").await;
    fixture.said.take();
    // The wall clock does not matter.
    fixture.clock.set_wall(3_600_000);
    pass(29 * SECOND).await;
    fixture.clock.set_wall(-7_200_000);
    assert_eq!(fixture.said.take(), [""; 0]);
    pass(2 * SECOND).await;
    assert_eq!(fixture.said.take(), ["expired a 1"]);
    pass(8 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    pass(3 * SECOND).await;
    assert_eq!(fixture.said.take(), ["changed a timeout", "changed b starting", "dispatch b"]);
    fixture.agreed().await;
}

#[actix::test]
async fn time_that_is_up_while_nothing_can_be_saved_is_up_again_until_it_can() {
    let fixture = Fixture::with_slots(1).await;
    fixture.reserve("a").await;
    fixture.done::<TaskTurnStarted>(turn("a", 1)).await;
    fixture.said.take();
    fixture.commits.fail(1, 20, ENOSPC);
    pass(34 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    fixture.agreed().await;
    pass(20 * SECOND).await;
    assert_eq!(fixture.said.take(), ["expired a 1"]);
    pass(11 * SECOND).await;
    assert_eq!(fixture.said.take(), ["changed a timeout"]);
}

#[actix::test]
async fn a_dispatched_task_whose_host_is_gone_gives_its_slot_back() {
    let fixture = Fixture::with_slots(1).await;
    fixture.reserve("a").await;
    fixture.reserve("b").await;
    fixture.reserve("c").await;
    fixture.done::<TaskTurnStarted>(turn("a", 1)).await;
    fixture.done::<TaskTurnEnded>(turn("a", 1)).await;
    // The host heartbeats for b and has missed its dispatch.
    for _ in 0..3 {
        pass(15 * SECOND).await;
        fixture.done::<TaskHeartbeat>(held("b")).await;
    }
    assert_eq!(fixture.task("b").await.status, TaskStatus::Starting);
    fixture.said.take();
    pass(58 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    pass(4 * SECOND).await;
    assert_eq!(fixture.said.take(), ["changed b interrupted", "changed c starting", "dispatch c"]);
    assert!(fixture.task("b").await.error.contains("lease lost"));
}

#[actix::test]
async fn a_task_that_was_only_looked_at_gives_its_slot_back_after_60_s() {
    let fixture = Fixture::with_slots(1).await;
    fixture.ended("a").await;
    let ended = fixture.task("a").await.ended_at;
    fixture.done::<TaskReattach>(held("a")).await;
    assert_eq!(fixture.reserve("c").await.queued_position, 1);
    fixture.said.take();
    pass(59 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    pass(2 * SECOND).await;
    assert_eq!(fixture.said.take(), ["changed a completed", "changed c starting", "dispatch c"]);
    assert_eq!(fixture.task("a").await.ended_at, ended);
    fixture.done::<TaskTurnStarted>(turn("a", 2)).await;
}

#[actix::test]
async fn a_cancellation_that_nobody_settles_is_carried_out_after_30_s() {
    let fixture = Fixture::with_slots(1).await;
    fixture.reserve("a").await;
    fixture.done::<TaskMarkRunning>(held("a")).await;
    fixture.done::<TaskCancel>(json!({"taskId": "a"})).await;
    assert_eq!(fixture.task("a").await.status, TaskStatus::Running);
    fixture.said.take();
    pass(29 * SECOND).await;
    assert_eq!(fixture.said.take(), [""; 0]);
    pass(2 * SECOND).await;
    assert_eq!(fixture.said.take(), ["changed a cancelled"]);
}
