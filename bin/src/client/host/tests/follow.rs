//! Waiting for a turn, and following it.

use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_protocol::host::*;
use cofferdam_protocol::pod::TaskStatus::{self, *};

use crate::client::host::testing::*;

fn changed(row: &TaskRow) -> HostEvent {
    HostEvent::TaskChanged { task_id: row.task.id.clone(), task: Box::new(row.clone()) }
}

fn said(seq: u64, kind: EntryKind, text: &str) -> HostEvent {
    HostEvent::TaskEntry { task_id: "pod-1".into(), entry: entry(seq, kind, text) }
}

/// The task as it is in that status, with an error if it failed.
fn task(status: TaskStatus) -> TaskRow {
    let mut row = row("pod-1", status);
    if status == Failed {
        row.task.error = "it broke\x1b".into();
    }
    row
}

/// A host that starts a task, and has no transcript and no state but what is given.
fn host(entries: &'static [(u64, EntryKind, &'static str)], now: TaskStatus) -> Stub {
    Stub::new(move |method, args| match method {
        "startTask" => {
            let task = task(Starting);
            ok(StartedTask { task_id: "pod-1".into(), session_id: "s".into(), task })
        }
        "getTranscript" => {
            let entries: Vec<_> = entries.iter().map(|(seq, kind, text)| entry(*seq, *kind, text)).collect();
            ok(transcript(&entries, args["from"].as_u64().unwrap()))
        }
        "getState" => ok(state(&[task(now)])),
        other => panic!("{other}"),
    })
}

/// What is said of a turn that ends so.
fn turn(end: TaskStatus) -> Stream {
    let other = HostEvent::TaskEntry { task_id: "pod-2".into(), entry: entry(1, EntryKind::Assistant, "no") };
    Stream::of(&[
        said(1, EntryKind::Prompt, "do it"),
        other,
        changed(&task(Running)),
        said(2, EntryKind::Assistant, "half\x1b[2J"),
        said(3, EntryKind::Assistant, "done"),
        changed(&row("pod-2", Failed)),
        changed(&task(end)),
    ])
}

#[test]
fn the_exit_status_tells_how_the_turn_ended() {
    for (end, code, err) in [
        (Completed, 0, "pod-1 completed\n"),
        (Failed, 1, "pod-1 failed: it broke\\u{1b}\n"),
        (Timeout, 124, "pod-1 timeout\n"),
        (Cancelled, 130, "pod-1 cancelled\n"),
        (Interrupted, 130, "pod-1 interrupted\n"),
    ] {
        let waited = host(&[], Starting).stream(turn(end)).run(&["task", "run", "do it", "--wait"]);
        assert_eq!(waited, ran(code, "done\n", &format!("pod-1 starting\n{err}")), "{end:?}");
        let followed = host(&[], Starting).stream(turn(end)).run(&["task", "run", "do it", "--follow"]);
        let out = "> do it\nhalf\\u{1b}[2J\ndone\n";
        assert_eq!(followed, ran(code, out, &format!("pod-1 starting\npod-1 running\n{err}")), "{end:?}");
    }
}

#[test]
fn places_in_the_queue_are_said_as_they_change() {
    let queued = |place| {
        let mut row = task(Queued);
        row.task.queued_position = place;
        changed(&row)
    };
    let stream = Stream::of(&[queued(2), queued(1), changed(&task(Starting)), changed(&task(Completed))]);
    let ran = host(&[], Starting).stream(stream).run(&["task", "run", "x", "--follow"]);
    let told = "pod-1 queued, place 2\npod-1 queued, place 1\npod-1 starting\npod-1 completed\n";
    assert_eq!(ran.err, format!("pod-1 starting\n{told}"));
}

const TWO: &[(u64, EntryKind, &str)] =
    &[(1, EntryKind::Prompt, "x"), (2, EntryKind::Assistant, "a"), (3, EntryKind::Assistant, "b")];

#[test]
fn what_was_left_out_of_the_events_is_read_from_the_transcript_and_nothing_is_said_twice() {
    let gap = Stream::of(&[
        said(3, EntryKind::Assistant, "b"),
        said(2, EntryKind::Assistant, "a"),
        changed(&task(Completed)),
    ]);
    let lost = Stream::of(&[HostEvent::Lost]);
    let garbage = Stream::raw(&[b"event: x\r\nda", b"ta: {\"kind\":\"ne", b"w\"}\r\n\r", b"\n"]);
    for (stream, now) in [(gap, Starting), (lost, Completed), (garbage, Completed)] {
        let ran = host(TWO, now).stream(stream).run(&["task", "run", "x", "--follow"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "> x\na\nb\n"), "{}", ran.err);
    }
}

#[test]
fn a_daemon_that_comes_back_is_found_again_and_asked_what_became_of_the_task() {
    let stub = host(TWO, Interrupted).stream(Stream::of(&[said(1, EntryKind::Prompt, "x")]).then_over());
    let followed = stub.run(&["task", "run", "x", "--follow"]);
    let err = "pod-1 starting\nThe daemon is gone; looking for it.\npod-1 interrupted\n";
    assert_eq!(followed, ran(130, "> x\na\nb\n", err));
}

#[test]
fn a_task_that_is_removed_meanwhile_is_a_failure() {
    let gone = HostEvent::TaskRemoved { task_id: "pod-1".into() };
    let ran = host(&[], Starting).stream(Stream::of(&[gone])).run(&["task", "run", "x", "--wait"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "pod-1 starting\nError: the task was removed meanwhile\n"));
}

#[test]
fn with_json_waiting_prints_the_task_and_following_a_line_for_each_event() {
    let waited =
        host(&[], Starting).stream(turn(Failed)).run(&["task", "run", "x", "--wait", "--format", "json"]);
    let row: TaskRow = serde_json::from_str(&waited.out).unwrap();
    assert_eq!((waited.code, row.task.status), (1, Failed));
    let followed = host(&[], Starting)
        .stream(turn(Completed))
        .run(&["task", "run", "x", "--follow", "--format", "json"]);
    let events: Vec<HostEvent> =
        followed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = [
        changed(&task(Starting)),
        said(1, EntryKind::Prompt, "do it"),
        changed(&task(Running)),
        said(2, EntryKind::Assistant, "half\x1b[2J"),
        said(3, EntryKind::Assistant, "done"),
        changed(&task(Completed)),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_follow_up_waits_for_its_own_turn_and_shows_nothing_of_those_before() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let mut idle = task(Completed);
    (idle.live, idle.task.turns, idle.task.ended_at) = (true, 1, NOW);
    let mut again = idle.clone();
    (again.task.status, again.task.turns) = (Running, 2);
    let mut done = again.clone();
    (done.task.status, done.task.last_text, done.task.ended_at) = (Completed, "second".into(), NOW + 1);
    let stream = Stream::of(&[
        changed(&idle),
        said(4, EntryKind::User, "more"),
        changed(&again),
        said(5, EntryKind::Assistant, "second"),
        changed(&done),
    ]);
    let row = idle.clone();
    let stub = Stub::new(move |method, args| match method {
        "getState" => ok(state(std::slice::from_ref(&row))),
        "getTranscript" => {
            let entries: Vec<_> = TWO.iter().map(|(seq, kind, text)| entry(*seq, *kind, text)).collect();
            ASKED.fetch_add(1, Ordering::SeqCst);
            ok(transcript(&entries, args["from"].as_u64().unwrap()))
        }
        "followUp" => ok(OneTask { task: row.clone() }),
        other => panic!("{other}"),
    });
    let told = stub.stream(stream).run(&["task", "tell", "pod-1", "more", "--follow"]);
    assert_eq!(told, ran(0, "> more\nsecond\n", "pod-1 running\npod-1 completed\n"));
    assert!(ASKED.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_follow_up_whose_agent_goes_first_ends_as_its_task_does_and_not_with_the_turn_before() {
    let mut idle = task(Completed);
    idle.live = true;
    let gone = TaskRow { live: false, ..idle.clone() };
    let stub = Stub::new(move |method, _| match method {
        "getState" => ok(state(std::slice::from_ref(&idle))),
        "getTranscript" => ok(transcript(&[], 0)),
        "followUp" => ok(OneTask { task: idle.clone() }),
        other => panic!("{other}"),
    });
    let mut failed = TaskRow { live: false, ..task(Failed) };
    failed.task.turns += 1;
    failed.task.error = "the agent is gone".to_owned();
    let stream = Stream::of(&[changed(&gone), changed(&failed)]);
    let told = stub.stream(stream).run(&["task", "tell", "pod-1", "more", "--wait"]);
    assert_eq!(told, ran(1, "", "pod-1 failed: the agent is gone\n"));
}

#[test]
fn logs_are_followed_to_the_end_of_the_turn_or_end_at_once() {
    let ended = host(TWO, Completed).run(&["task", "logs", "pod-1", "--follow"]);
    assert_eq!(ended, ran(0, "> x\na\nb\n", "pod-1 completed\n"));
    let stream = Stream::of(&[said(4, EntryKind::Tool, "ls"), changed(&task(Cancelled))]);
    let followed = host(TWO, Running).stream(stream).run(&["task", "logs", "pod-1", "--follow"]);
    assert_eq!(followed, ran(130, "> x\na\nb\n* ls\n", "pod-1 cancelled\n"));
}

#[test]
fn a_daemon_that_lets_nobody_listen_is_asked_to_start_nothing() {
    let stub = host(&[], Starting).stream(Stream::refused());
    let ran = stub.run(&["task", "run", "x", "--wait"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "Error [Forbidden]: not for you\n"));
    assert!(!stub.was_asked("startTask"));
}
