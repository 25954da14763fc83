//! Hosts that do not read, do not wait or do not make sense.

use std::io::Write;
use std::time::Duration;

use cofferdam_protocol::pod::METHOD_NAMES;
use cofferdam_tests::pod::{PodSite, Sidecar, reserve};
use cofferdam_tests::process::{peak_kib, resident_kib};
use cofferdam_tests::project::noise;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::site;

#[test]
fn a_host_that_does_not_read_is_not_read_from_and_misses_no_answer() {
    const MANY: usize = 100_000;
    let site = site();
    let mut pod = Sidecar::spawn_unheard(&mut site.command());
    pod.send("initialize", site.initialize());
    let lines: Vec<u8> = (0..MANY)
        .flat_map(|i| {
            let method = ["config.get", "task.list", "export.list"][i % 3];
            format!("{{\"id\":\"{i}\",\"method\":\"{method}\"}}\n").into_bytes()
        })
        .collect();
    let mut stdin = pod.take_stdin();
    rustix::fs::fcntl_setfl(&stdin, OFlags::NONBLOCK).unwrap();
    let mut sent = 0;
    // Until the sidecar has taken nothing for that long.
    let enough = Timespec::try_from(Duration::from_secs(1)).unwrap();
    while poll(&mut [PollFd::new(&stdin, PollFlags::OUT)], Some(&enough)).unwrap() == 1 {
        sent += stdin.write(&lines[sent..lines.len().min(sent + 4096)]).unwrap();
        assert!(sent < lines.len(), "everything was taken, though nothing was read");
    }
    let held = peak_kib(pod.pid());
    assert!(held < 128 << 10, "{held} KiB");
    rustix::fs::fcntl_setfl(&stdin, OFlags::empty()).unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&lines[sent..]).unwrap());
    pod.listen();
    assert_eq!(pod.line().unwrap()["id"], "q1");
    for i in 0..MANY {
        let line = pod.line().unwrap();
        assert_eq!(line["id"], i.to_string(), "one answer each, in order");
        assert!(line.get("result").is_some(), "{line}");
    }
    writer.join().unwrap();
    assert_eq!(pod.line(), None, "its input has ended");
    assert_eq!(pod.wait().0, 0);
}

#[test]
fn twenty_thousand_heartbeats_leave_memory_where_it_was() {
    let site = site();
    let mut pod = site.start_rooted();
    pod.run("a");
    pod.heard();
    let before = resident_kib(pod.pid());
    let line = json!({"id": "x", "method": "task.heartbeat", "params": {"taskId": "a", "leaseId": "L"}});
    let piece = format!("{line}\n").repeat(1000);
    for _ in 0..20 {
        pod.send_bytes(&piece);
        for _ in 0..1000 {
            assert!(pod.line().unwrap().get("result").is_some());
        }
    }
    let after = resident_kib(pod.pid());
    assert!(after < before + (16 << 10), "{before} KiB became {after} KiB");
}

/// Choices that are the same in every run.
struct Dice {
    bytes: Vec<u8>,
    at: usize,
}

impl Dice {
    fn new(seed: usize) -> Self {
        Self { bytes: noise((1 << 20) + seed), at: 0 }
    }

    fn bytes(&mut self, count: usize) -> &[u8] {
        self.at += count;
        &self.bytes[self.at - count..self.at]
    }

    fn below(&mut self, limit: usize) -> usize {
        let bytes = self.bytes(4);
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize % limit
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A sidecar with a few tasks, for odd requests to be about.
fn busy(site: &PodSite) -> Sidecar {
    let mut pod = site.start_with(json!({"maxConcurrent": 2}));
    pod.finish("c");
    pod.run("a");
    pod.reserve("b");
    pod.reserve("d");
    pod
}

#[test]
fn random_bytes_end_nothing() {
    let site = site();
    let mut pod = site.start();
    let mut dice = Dice::new(1);
    for _ in 0..50 {
        let count = dice.below(4000);
        pod.send_bytes(dice.bytes(count));
        pod.send_bytes(b"\n");
        pod.ok("health", json!({}));
    }
    let all = std::iter::from_fn(|| pod.line()).take_while(|line| line["id"].is_null());
    assert!(all.take(50).all(|line| line["error"]["code"] == "BAD_REQUEST"));
}

#[test]
fn broken_requests_end_nothing() {
    let site = site();
    let mut pod = busy(&site);
    let mut dice = Dice::new(2);
    let whole = json!({"id": "x", "method": "task.reserve", "params": reserve("e")}).to_string().into_bytes();
    for _ in 0..2000 {
        let mut line = whole.clone();
        for _ in 0..=dice.below(3) {
            let at = dice.below(line.len());
            match dice.below(4) {
                0 => line[at] = dice.bytes(1)[0],
                1 => line.truncate(at + 1),
                2 => line.insert(at, *dice.pick(b"\"{}[],:\\\x00\xff0-eE.ntf ")),
                _ => drop(line.remove(at)),
            }
            if line.is_empty() {
                break;
            }
        }
        pod.send_line(&line);
    }
    pod.ok("health", json!({}));
    for line in pod.heard() {
        assert_ne!(line["error"]["code"], "INTERNAL", "{line}");
    }
}

/// A value of some kind, often one that means something.
fn odd_value(dice: &mut Dice, depth: usize) -> Value {
    const WORDS: &[&str] =
        &["", "a", "b", "c", "d", "e", "L", "N", "s-a", "completed", "failed", "../x", "x/y", "\u{0}", "😀"];
    match dice.below(if depth == 0 { 8 } else { 10 }) {
        0 => json!(null),
        1 => json!(dice.below(2) == 0),
        2 => json!(dice.below(5)),
        3 => json!(-(dice.below(1 << 31) as i64)),
        4 => json!(dice.below(1000) as f64 / 7.0 * 1e300),
        5 => json!(u64::MAX),
        6 | 7 => json!(dice.pick(WORDS)),
        8 => (0..dice.below(4)).map(|_| odd_value(dice, depth - 1)).collect(),
        _ => odd_params(dice, depth - 1),
    }
}

/// An object with some of the contract's keys.
fn odd_params(dice: &mut Dice, depth: usize) -> Value {
    const KEYS: &[&str] = &[
        "taskId",
        "taskId",
        "leaseId",
        "leaseId",
        "sessionId",
        "turn",
        "reason",
        "text",
        "check",
        "tools",
        "code",
        "message",
        "patch",
        "statuses",
        "olderThanMs",
        "deleteFiles",
        "subdir",
        "label",
        "description",
        "allow",
        "model",
        "timeoutMs",
        "timedOut",
        "lastText",
        "mode",
        "probe",
        "maxConcurrent",
        "allowedTools",
        "logLevel",
        "exportId",
        "itemOffset",
        "itemLimit",
    ];
    let keys = dice.below(8);
    (0..keys).map(|_| ((*dice.pick(KEYS)).to_owned(), odd_value(dice, depth))).collect()
}

#[test]
fn no_params_however_odd_are_an_internal_error() {
    let site = site();
    let mut pod = busy(&site);
    let mut dice = Dice::new(3);
    let methods: Vec<_> = METHOD_NAMES.iter().filter(|name| **name != "shutdown").collect();
    for round in 0..3000 {
        let (method, params) = (methods[round % methods.len()], odd_params(&mut dice, 3));
        let id = pod.send(method, params.clone());
        let answer = pod.answer(&id);
        let code = &answer["error"]["code"];
        assert!(code != "INTERNAL" && code != "DB_ERROR", "{method} {params}: {answer}");
    }
    // What they made of it is what the database has.
    let mut before = pod.tasks();
    let config = pod.ok("config.get", json!({}));
    pod.kill();
    let mut pod = site.start();
    let mut after = pod.tasks();
    for task in before.iter_mut().chain(&mut after) {
        for key in ["status", "error", "endedAt", "turnDeadline", "queuedPosition"] {
            task.as_object_mut().unwrap().remove(key);
        }
    }
    assert_eq!(after, before);
    assert_eq!(pod.ok("config.get", json!({})), config);
}
