//! What waits to be printed: its order, its bounds, and what is left out of it.

use std::sync::mpsc::channel;
use std::thread;

use cofferdam_protocol::pod::TaskSummary;
use serde_json::{Value, json};

use super::*;

fn changed(task: &str, turns: u64, text: &str) -> PodEvent {
    let summary: TaskSummary = serde_json::from_value(json!({
        "id": task, "sessionId": "", "mainSessionId": "", "label": "", "description": "", "status": "running",
        "subdir": "", "taskDir": "", "sandboxRoot": "", "createdAt": 0, "queuedAt": 0, "startedAt": 0, "endedAt": 0,
        "turns": turns, "timeoutMs": 0, "allow": [], "availableTools": [], "presetId": "", "model": {},
        "sandboxMode": "", "sandboxProbe": "", "fsDenied": false, "lastText": text, "error": "", "legacy": false,
        "turnDeadline": 0, "queuedPosition": 0,
    }))
    .unwrap();
    PodEvent::changed(&summary)
}

fn dispatch(task: &str) -> PodEvent {
    PodEvent::QueueDispatch { task_id: task.to_owned() }
}

/// What is printed if nothing more comes, each line in short.
fn rest(outbox: &Outbox) -> Vec<String> {
    let mut printed = Vec::new();
    outbox.close();
    outbox.print(&mut printed, |error| panic!("{error}"));
    String::from_utf8(printed).unwrap().lines().map(short).collect()
}

fn short(line: &str) -> String {
    let Ok(line) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    let event = &line["params"];
    let task = event["taskId"].as_str().unwrap_or_default();
    match event["kind"].as_str().unwrap() {
        "task.changed" => format!("{task} {}", event["task"]["turns"]),
        kind => format!("{kind} {task}"),
    }
}

#[test]
fn answers_and_events_are_printed_in_the_order_in_which_they_came() {
    let outbox = Arc::new(Outbox::default());
    let (first, second) = (outbox.admit(9).unwrap(), outbox.admit(9).unwrap());
    outbox.event(changed("a", 1, ""));
    second.answer("second".to_owned());
    outbox.event(changed("a", 2, ""));
    outbox.event(dispatch("b"));
    first.answer("first".to_owned());
    assert_eq!(rest(&outbox), ["a 1", "second", "a 2", "queue.dispatch b", "first"]);
}

#[test]
fn of_a_task_s_changes_only_the_newest_waits_once_much_does_and_nothing_else_is_left_out() {
    let outbox = Arc::new(Outbox::default());
    let ticket = outbox.admit(0).unwrap();
    ticket.answer("x".repeat(MERGE_FROM));
    for turn in 1..=3 {
        outbox.event(changed("a", turn, ""));
        outbox.event(dispatch("a"));
        outbox.event(PodEvent::DeadlineExpired { task_id: "a".to_owned(), turn });
        outbox.event(changed("b", turn, ""));
    }
    outbox.event(changed("a", 4, ""));
    let (dispatched, expired) = ("queue.dispatch a", "deadline.expired a");
    assert_eq!(
        rest(&outbox)[1..],
        [dispatched, expired, dispatched, expired, dispatched, expired, "b 3", "a 4"]
    );
}

#[test]
fn changes_of_tasks_that_nobody_reads_take_bounded_memory() {
    let outbox = Outbox::default();
    for turn in 0..10_000 {
        outbox.event(changed(["a", "b", "c"][turn as usize % 3], turn, &"t".repeat(1000)));
    }
    let state = outbox.state();
    assert!(state.line_bytes < MERGE_FROM + (8 << 10), "{}", state.line_bytes);
    assert!(state.lines.len() < 400, "{}", state.lines.len());
    assert_eq!(state.newest.len(), 3);
}

#[test]
fn what_was_printed_counts_no_more() {
    let outbox = Arc::new(Outbox::default());
    for turn in 0..1000 {
        outbox.event(changed("a", turn, &"t".repeat(1000)));
        outbox.admit(70).unwrap().answer("answer".to_owned());
    }
    rest(&outbox);
    let state = outbox.state();
    assert_eq!((state.line_bytes, state.request_bytes, state.unanswered), (0, 0, 0));
    assert!(state.lines.is_empty() && state.newest.is_empty());
}

#[test]
fn a_request_waits_until_another_is_answered_when_too_many_are_not() {
    let outbox = Arc::new(Outbox::default());
    let mut tickets: Vec<_> = (0..MAX_UNANSWERED).map(|_| outbox.admit(0).unwrap()).collect();
    assert!(!outbox.state().has_room());
    let waiting = {
        let outbox = Arc::clone(&outbox);
        thread::spawn(move || outbox.admit(0).is_some())
    };
    tickets.pop().unwrap().answer("answer".to_owned());
    assert!(waiting.join().unwrap());
}

#[test]
fn a_request_waits_until_lines_are_printed_when_too_much_waits() {
    let outbox = Arc::new(Outbox::default());
    outbox.admit(0).unwrap().answer("x".repeat(MAX_HELD));
    assert!(!outbox.state().has_room());
    let waiting = {
        let outbox = Arc::clone(&outbox);
        thread::spawn(move || outbox.admit(0).is_some())
    };
    assert_eq!(outbox.take().unwrap().len(), MAX_HELD + 1);
    assert!(waiting.join().unwrap());
}

#[test]
fn large_requests_that_nobody_has_answered_let_no_other_in() {
    let outbox = Arc::new(Outbox::default());
    let _held: Vec<_> = (0..8).map(|_| outbox.admit(1 << 20).unwrap()).collect();
    assert!(!outbox.state().has_room());
}

#[test]
fn requests_whose_answers_can_be_long_let_no_other_in_until_one_is_answered() {
    let outbox = Arc::new(Outbox::default());
    let mut tickets: Vec<_> = (0..3).map(|_| outbox.admit(0).unwrap()).collect();
    assert!(outbox.state().has_room());
    tickets.iter_mut().take(2).for_each(Ticket::expect_long_answer);
    assert!(!outbox.state().has_room());
    tickets.remove(0).answer("short after all".to_owned());
    assert!(outbox.state().has_room());
}

#[test]
fn nobody_waits_for_room_when_the_end_has_come() {
    let outbox = Arc::new(Outbox::default());
    let _held: Vec<_> = (0..MAX_UNANSWERED).map(|_| outbox.admit(0).unwrap()).collect();
    let waiting = {
        let outbox = Arc::clone(&outbox);
        thread::spawn(move || outbox.admit(0).is_none())
    };
    outbox.stop_admitting();
    assert!(waiting.join().unwrap());
}

/// Takes some writes, then none.
struct Breaks(usize);

impl Write for Breaks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_broken_stdout_is_told_once_and_the_printer_stays_until_the_end() {
    let outbox = Arc::new(Outbox::default());
    let (failing, failed) = channel();
    let printer = Arc::clone(&outbox);
    let printing =
        thread::spawn(move || printer.print(Breaks(0), |error| failing.send(error.kind()).unwrap()));
    outbox.event(dispatch("a"));
    assert_eq!(failed.recv(), Ok(io::ErrorKind::BrokenPipe));
    // Requests that were let in are still answered, and others let in.
    outbox.admit(0).unwrap().answer("x".repeat(MAX_HELD));
    outbox.admit(0).unwrap().answer("answer".to_owned());
    assert!(!printing.is_finished());
    outbox.close();
    printing.join().unwrap();
    assert!(failed.try_recv().is_err());
    assert!(outbox.state().lines.is_empty());
}
