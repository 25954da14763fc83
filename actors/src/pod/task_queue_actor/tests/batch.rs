//! What is durable, what is answered, and in which order.

use super::super::batch::MOST_MOVES;
use super::*;

#[actix::test]
async fn what_comes_while_a_commit_is_under_way_is_one_commit() {
    let fixture = Fixture::open().await;
    let before = fixture.commits.seen();
    fixture.commits.hold();
    for n in 0..16 {
        fixture.insert(&format!("t{n}"), TaskStatus::Completed);
    }
    fixture.applied().await;
    fixture.commits.let_go();
    assert_eq!(fixture.heard().await.iter().filter(|line| line.ends_with(" ok")).count(), 16);
    assert_eq!(fixture.commits.seen() - before, 2);
    assert_eq!(fixture.agreed().await.tasks.len(), 16);
}

#[actix::test]
async fn answers_come_in_the_order_of_requests_and_events_right_behind_their_answer() {
    let fixture = Fixture::open().await;
    fixture.commits.hold();
    fixture.insert("a", TaskStatus::Running);
    fixture.call("get", params::<TaskGet>(json!({"taskId": "a"})));
    fixture.call("unknown", params::<TaskGet>(json!({"taskId": "b"})));
    fixture.call("exports", params::<ExportList>(json!({})));
    fixture.describe("a", "x");
    fixture.call("config", ConfigGet {});
    fixture.call("diagnostics", DiagnosticsGet {});
    fixture.call("again", fixture.initialize());
    fixture.applied().await;
    assert_eq!(fixture.said.take(), [""; 0], "nothing is durable yet");
    fixture.commits.let_go();
    assert_eq!(
        fixture.heard().await,
        [
            "insert a ok",
            "changed a running",
            "get ok",
            "unknown TASK_NOT_FOUND",
            "exports ok",
            "describe a ok",
            "changed a running",
            "config ok",
            "diagnostics ok",
            "again ok",
        ]
    );
}

#[actix::test]
async fn of_too_many_moves_that_wait_the_last_are_told() {
    let fixture = Fixture::with_slots(1).await;
    let ids: Vec<_> = (0..65).map(|n| format!("t{n}")).collect();
    for id in &ids {
        fixture.reserve(id).await;
    }
    fixture.heard().await;
    fixture.commits.hold();
    let (cancelled, left) = ids[1..].split_at(40);
    for id in cancelled {
        fixture.call("cancel", params::<TaskCancel>(json!({"taskId": id})));
    }
    fixture.applied().await;
    fixture.commits.let_go();
    let heard = fixture.heard().await;
    // 63 + 62 + … + 24 tasks moved.
    let moves = heard.iter().filter(|line| line.ends_with("queued")).count();
    assert!(moves <= MOST_MOVES + 64, "{moves} moves were kept");
    let last: Vec<_> = left.iter().map(|id| format!("changed {id} queued")).collect();
    assert_eq!(heard[heard.len() - left.len()..], last);
}

#[actix::test]
async fn what_changes_nothing_costs_no_commit() {
    let fixture = Fixture::with_slots(1).await;
    fixture.reserve("a").await;
    let before = fixture.commits.seen();
    for _ in 0..10 {
        fixture.done::<TaskHeartbeat>(held("a")).await;
        fixture.task("a").await;
        fixture.done::<TaskList>(json!({})).await;
    }
    assert_eq!(fixture.commits.seen(), before);
}

#[actix::test]
async fn a_failed_commit_takes_everything_on_top_of_it_along() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.insert("q", TaskStatus::Completed);
    fixture.heard().await;
    fixture.commits.fail(1, 1, ENOSPC);
    fixture.commits.hold();
    let undone = Said::default();
    let undo = |name: &'static str| {
        let said = undone.clone();
        move |queue: &mut Queue, at: i64| {
            queue.insert(summary(name, TaskStatus::Completed), at)?;
            let undo = Box::new(move || said.say(format!("undo {name}")));
            Ok(Outcome::DoneOrUndo(Done { ok: true }, undo))
        }
    };
    fixture.change("first", undo("x"));
    fixture.change("second", undo("y"));
    fixture.describe("a", "lost");
    fixture.call("get", params::<TaskGet>(json!({"taskId": "a"})));
    // Refused for a reason that is lost too.
    fixture.insert("x", TaskStatus::Completed);
    fixture.call("unknown", params::<TaskGet>(json!({"taskId": "b"})));
    fixture.call("exports", params::<ExportList>(json!({})));
    fixture.call("health", Health {});
    fixture.applied().await;
    fixture.commits.let_go();
    assert_eq!(
        fixture.heard().await,
        [
            "first DB_ERROR",
            "second DB_ERROR",
            "describe a DB_ERROR",
            "get DB_ERROR",
            "insert x DB_ERROR",
            "unknown DB_ERROR",
            "exports DB_ERROR",
            "health ok",
        ]
    );
    let loaded = fixture.agreed().await;
    assert_eq!(undone.take(), ["undo y", "undo x"]);
    let names: Vec<&str> = loaded.tasks.iter().map(|task| task.summary.id.as_str()).collect();
    assert_eq!(names, ["a", "q"]);
    assert_eq!(loaded.tasks[0].summary.description, "d");
    assert!(fixture.diagnostics().await.iter().any(|line| line.contains("could not be saved")));
}

#[actix::test]
async fn whichever_commit_fails_memory_is_what_the_database_says_and_work_goes_on() {
    for errno in [ENOSPC, EIO] {
        for nth in 1.. {
            let fixture = Fixture::with_slots(1).await;
            let before = fixture.commits.seen();
            fixture.commits.fail(nth, 1, errno);
            for id in ["a", "b"] {
                let reserve = json!({"taskId": id, "sessionId": id, "leaseId": format!("L-{id}")});
                fixture.call("reserve", params::<TaskReserve>(reserve));
                fixture.heard().await;
            }
            fixture.call("start", params::<TaskTurnStarted>(turn("a", 1)));
            fixture.call(
                "text",
                params::<TaskSetLastText>(json!({"taskId": "a", "leaseId": "L-a", "text": "t"})),
            );
            fixture.heard().await;
            fixture.call("end", params::<TaskTurnEnded>(turn("a", 1)));
            fixture.call("delete", params::<TaskDelete>(json!({"taskId": "b"})));
            fixture.call("cancel", params::<TaskCancel>(json!({"taskId": "b"})));
            fixture.heard().await;
            let tasks = fixture.agreed().await.tasks;
            for task in &tasks {
                assert!(std::path::Path::new(&task.summary.task_dir).is_dir());
            }
            let made = std::fs::read_dir(fixture.dir.path().join("root")).map_or(0, Iterator::count);
            assert_eq!(made, tasks.len(), "commit {nth}: a directory is there exactly where its task is");
            let seen = fixture.commits.seen() - before;
            fixture.commits.fail(1, 0, errno);
            fixture.insert("z", TaskStatus::Completed);
            assert_eq!(fixture.heard().await, ["insert z ok", "changed z completed"]);
            // The next fixture stops time again.
            tokio::time::resume();
            if seen < nth {
                assert!(nth > 4, "{nth}");
                break;
            }
        }
    }
}

#[actix::test]
async fn a_lost_reservation_leaves_no_lease_and_a_lost_deletion_takes_none() {
    let fixture = Fixture::with_slots(2).await;
    fixture.ended("a").await;
    fixture.commits.fail(1, 1, EIO);
    fixture.commits.hold();
    fixture.call("delete", params::<TaskDelete>(json!({"taskId": "a"})));
    fixture.call("reserve", params::<TaskReserve>(json!({"taskId": "b", "sessionId": "b", "leaseId": "L"})));
    fixture.applied().await;
    fixture.commits.let_go();
    fixture.heard().await;
    let report = fixture.done::<DiagnosticsGet>(json!({})).await;
    assert_eq!(report.counts.leases, 1);
    fixture.done::<TaskHeartbeat>(held("a")).await;
    fixture.done::<TaskDelete>(json!({"taskId": "a"})).await;
    assert_eq!(fixture.done::<DiagnosticsGet>(json!({})).await.counts.leases, 0);
}

#[actix::test]
async fn a_new_task_of_a_name_whose_deletion_is_under_way_is_its_own_holders() {
    let fixture = Fixture::with_slots(2).await;
    fixture.ended("a").await;
    fixture.commits.hold();
    fixture.call("delete", params::<TaskDelete>(json!({"taskId": "a"})));
    fixture.call("reserve", params::<TaskReserve>(json!({"taskId": "a", "sessionId": "s", "leaseId": "M"})));
    fixture.applied().await;
    fixture.commits.let_go();
    fixture.heard().await;
    fixture.done::<TaskHeartbeat>(json!({"taskId": "a", "leaseId": "M"})).await;
    fixture.call("old", params::<TaskHeartbeat>(held("a")));
    assert_eq!(fixture.heard().await, ["old STALE_LEASE"]);
}

#[actix::test]
async fn a_reservation_that_is_lost_has_no_directory_by_the_time_it_is_answered() {
    let fixture = Fixture::with_slots(2).await;
    fixture.said.take();
    fixture.commits.fail(1, 1, EIO);
    let (said, dir) = (fixture.said.clone(), fixture.dir.path().join("root/a"));
    let reply = Reply::new(move |answer: Result<Reserved, Failure>| {
        said.say(format!("refused {}, directory {}", answer.is_err(), dir.exists()));
    });
    let request = params(json!({"taskId": "a", "sessionId": "s", "leaseId": "L"}));
    fixture.queue.do_send(Call::<TaskReserve> { request, reply });
    assert_eq!(fixture.heard().await, ["refused true, directory false"]);
}

/// A commit that has ended, of which the actor has yet to hear, when the next request comes: what that is prepared on is
/// lost before it is carried out.
#[test]
fn a_request_that_is_prepared_on_memory_that_is_lost_is_lost_with_it() {
    on_one_blocking_thread(async {
        for request in [
            json!({"taskId": "a", "sessionId": "s-a", "leaseId": "M"}),
            json!({"taskId": "b", "sessionId": "s-b", "leaseId": "M"}),
        ] {
            let fixture = Fixture::with_slots(2).await;
            fixture.ended("a").await;
            fixture.said.take();
            fixture.commits.fail(1, 1, EIO);
            fixture.commits.hold();
            fixture.call("delete", params::<TaskDelete>(json!({"taskId": "a"})));
            fixture.applied().await;
            fixture.commits.let_go();
            blocking_work_ended();
            fixture.call("reserve", params::<TaskReserve>(request));
            assert_eq!(fixture.heard().await, ["delete DB_ERROR", "reserve DB_ERROR"]);
            assert_eq!(fixture.agreed().await.tasks.len(), 1);
            assert!(!fixture.dir.path().join("root/b").exists());
            fixture.done::<TaskHeartbeat>(held("a")).await;
            tokio::time::resume();
        }
    });
}

/// Runs a test where one piece of blocking work ends before the next begins.
fn on_one_blocking_thread(test: impl Future<Output = ()>) {
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().max_blocking_threads(1).build().unwrap()
    };
    System::with_tokio_rt(runtime).block_on(test);
}

/// Waits until all blocking work has ended, and lets nobody hear of that.
fn blocking_work_ended() {
    let (sender, ended) = std::sync::mpsc::channel();
    spawn_blocking(move || sender.send(()));
    ended.recv().unwrap();
}

#[actix::test]
async fn a_panic_is_an_internal_error_of_its_request_alone_and_leaves_no_trace() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.change("panic", |queue, at| {
        queue.edit("a", at, |task| task.summary.description = "half".to_owned())?;
        panic!("on purpose")
    });
    assert_eq!(fixture.heard().await.last().unwrap(), "panic INTERNAL");
    fixture.describe("a", "whole");
    assert_eq!(fixture.heard().await, ["describe a ok", "changed a running"]);
    assert_eq!(fixture.agreed().await.tasks[0].summary.description, "whole");
}

#[actix::test]
async fn a_refusal_that_changed_something_leaves_no_trace_either() {
    let fixture = Fixture::open().await;
    fixture.insert("a", TaskStatus::Running);
    fixture.heard().await;
    fixture.change("half", |queue, at| {
        queue.edit("a", at, |task| task.summary.description = "half".to_owned())?;
        Err(Refusal::BadRequest("too late".to_owned()))
    });
    fixture.heard().await;
    assert_eq!(fixture.agreed().await.tasks[0].summary.description, "d");
}

#[actix::test]
async fn a_read_that_panics_is_its_own_internal_error_and_loses_no_change() {
    let fixture = Fixture::open().await;
    fixture.commits.hold();
    fixture.insert("a", TaskStatus::Completed);
    fixture.insert("b", TaskStatus::Completed);
    fixture.change("read", |_, _| Ok(Outcome::Read(Box::new(|_| panic!("on purpose")))));
    fixture.applied().await;
    fixture.commits.let_go();
    let heard = fixture.heard().await;
    assert_eq!(heard.last().unwrap(), "read INTERNAL");
    assert!(heard.contains(&"insert b ok".to_owned()));
    assert_eq!(fixture.agreed().await.tasks.len(), 2);
}

#[actix::test]
async fn a_thousand_answers_that_wait_need_no_deep_stack() {
    let fixture = Fixture::open().await;
    fixture.commits.hold();
    fixture.insert("a", TaskStatus::Completed);
    for _ in 0..10_000 {
        fixture.call("get", params::<TaskGet>(json!({"taskId": "a"})));
    }
    fixture.applied().await;
    fixture.commits.let_go();
    assert_eq!(fixture.heard().await.iter().filter(|line| *line == "get ok").count(), 10_000);
}

#[actix::test]
async fn a_request_the_mailbox_has_no_room_for_is_answered() {
    let fixture = Fixture::open().await;
    let answers: Vec<_> = (0..MAILBOX * 2)
        .map(|_| {
            let (reply, answer) = Reply::channel();
            fixture.pod.call(ConfigGet {}, reply);
            answer
        })
        .collect();
    let mut refused = 0;
    for answer in answers {
        if let Err(failure) = answer.await.unwrap() {
            assert_eq!(failure.data, json!({"reason": "OVERLOADED"}));
            refused += 1;
        }
    }
    assert!((1..=MAILBOX).contains(&refused), "{refused}");
}

#[actix::test]
async fn a_reattach_that_is_lost_gives_its_lease_back() {
    let fixture = Fixture::with_slots(2).await;
    fixture.ended("a").await;
    pass(31 * SECOND).await;
    fixture.commits.fail(1, 1, EIO);
    let reattach = |lease: &str| params::<TaskReattach>(json!({"taskId": "a", "leaseId": lease}));
    fixture.call("reattach", reattach("M"));
    assert_eq!(fixture.heard().await.last().unwrap(), "reattach DB_ERROR");
    fixture.call("reattach", reattach("N"));
    assert!(fixture.heard().await.contains(&"reattach ok".to_owned()));
}
