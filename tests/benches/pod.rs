//! How fast the sidecar is, beside a rival in the same run: `cargo bench -p cofferdam --bench pod`.
//!
//! - Durable changes of state a second, one after the other and 16 in flight, beside commits of one row by bare SQLite in
//!   the same directory.
//! - How long a host waits for an answer, beside the same line back from `cat` over the same kind of pipes.
//! - Memory after 10 000 and after 1 000 000 requests.
//!
//! Rivals take turns, so that a busy machine is busy for both. Files lie in `TMPDIR`: a disk or memory, as you like.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has nothing to say")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(missing_docs, reason = "of what a macro makes")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::process::resident_kib;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use serde_json::json;
use tempfile::TempDir;

/// Tasks whose turns begin and end.
const TASKS: usize = 8;
const IN_FLIGHT: usize = 16;

fn main() {
    let place = tempfile::Builder::new().prefix("cofferdam-bench-").tempdir().unwrap();
    println!("in {}", place.path().display());
    durable_changes(&place);
    latency(&place);
    memory(&place);
}

/// Durable changes a second. A disk may sync ten times as fast in one second as in the next: so rounds are short, bare
/// commits come before and after each, and what is compared is always within a round.
fn durable_changes(place: &TempDir) {
    const ROUNDS: usize = 60;
    const CHANGES: usize = 40;
    let mut sidecar = Sidecar::start(&place.path().join("changes"));
    let mut bare = Bare::open(&place.path().join("bare.db"));
    let mut turns = Turns::default();
    let mut commits = || per_second(CHANGES, || (0..CHANGES).for_each(|_| bare.commit()));
    let (mut alone, mut together, mut rows) = (Rates::default(), Rates::default(), Rates::default());
    for _ in 0..ROUNDS {
        let mut before = commits();
        for (rates, many, in_flight) in [(&mut alone, CHANGES, 1), (&mut together, 4 * CHANGES, IN_FLIGHT)] {
            let rate = per_second(many, || sidecar.run(many, in_flight, |n| turns.next(n)));
            let after = commits();
            // As long for each commit as it took on the whole.
            let beside = 2.0 / (1.0 / before + 1.0 / after);
            rates.add(rate, beside);
            rows.add(beside, before);
            before = after;
        }
    }
    println!("\n{:<42}{:>12}{:>12}{:>16}", "durable changes of state", "a second", "x bare", "p10 to p90");
    println!("{:<42}{:>12.0}", "bare SQLite, one row a commit", median(&mut rows.rates));
    for (what, mut rates) in [("sidecar, one after the other", alone), ("sidecar, 16 in flight", together)] {
        let ratio = median(&mut rates.ratios);
        let [low, high] = [1, 9].map(|tenth| rates.ratios[rates.ratios.len() * tenth / 10]);
        let spread = format!("{low:.2} to {high:.2}");
        println!("{what:<42}{:>12.0}{ratio:>12.2}{spread:>16}", median(&mut rates.rates));
    }
}

/// Rates, each with how it stands to the rival's of the same moment.
#[derive(Default)]
struct Rates {
    rates: Vec<f64>,
    ratios: Vec<f64>,
}

impl Rates {
    fn add(&mut self, rate: f64, rival: f64) {
        self.rates.push(rate);
        self.ratios.push(rate / rival);
    }
}

/// How long a host waits.
fn latency(place: &TempDir) {
    const ROUNDS: usize = 100;
    const REQUESTS: usize = 50;
    let mut sidecar = Sidecar::start(&place.path().join("latency"));
    let mut echo = Pipes::spawn(&mut Command::new("cat"));
    let mut turns = Turns::default();
    let task = json!({"taskId": "t0", "leaseId": "L"});
    let echoed = line("task.heartbeat", &task);
    let kinds = [
        ("cat, the same line back", None),
        ("health", Some(line("health", &json!({})))),
        ("task.get", Some(line("task.get", &task))),
        ("task.heartbeat", Some(echoed.clone())),
        ("task.turnStarted, task.turnEnded (durable)", None),
    ];
    let mut times: [Vec<Duration>; 5] = Default::default();
    for _ in 0..ROUNDS {
        for (at, ((_, request), times)) in kinds.iter().zip(&mut times).enumerate() {
            for n in 0..REQUESTS {
                let began = Instant::now();
                match (at, request) {
                    (0, _) => echo.round_trip(&echoed),
                    (_, Some(request)) => sidecar.run(1, 1, |_| request.clone()),
                    (_, None) => sidecar.run(1, 1, |_| turns.next(n)),
                }
                times.push(began.elapsed());
            }
        }
    }
    println!("\n{:<42}{:>12}{:>12}", "time to the answer", "p50 µs", "p99 µs");
    for ((what, _), times) in kinds.iter().zip(&mut times) {
        times.sort();
        let micros = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e6;
        println!("{what:<42}{:>12.1}{:>12.1}", micros(50), micros(99));
    }
}

/// Memory in the long run.
fn memory(place: &TempDir) {
    let mut sidecar = Sidecar::start(&place.path().join("memory"));
    let task = json!({"taskId": "t0", "leaseId": "L"});
    let mix = [line("health", &json!({})), line("task.get", &task), line("task.heartbeat", &task)];
    println!("\n{:<42}{:>12}", "memory of the sidecar", "KiB");
    let mut before = 0;
    for requests in [10_000, 1_000_000] {
        sidecar.run(requests - before, 64, |n| mix[n % mix.len()].clone());
        before = requests;
        println!(
            "{:<42}{:>12}",
            format!("after {requests} requests"),
            resident_kib(sidecar.pipes.child.id())
        );
    }
}

fn per_second(many: usize, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    many as f64 / began.elapsed().as_secs_f64()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A request. Answers come in order, so that one id will do.
fn line(method: &str, params: &serde_json::Value) -> String {
    format!("{}\n", json!({"id": "1", "method": method, "params": params}))
}

/// Turns of all tasks, which begin and end one after the other.
#[derive(Default)]
struct Turns {
    said: usize,
}

impl Turns {
    fn next(&mut self, _: usize) -> String {
        let (task, step) = (self.said % TASKS, self.said / TASKS);
        self.said += 1;
        // The first turn was to see that all is well.
        let params = json!({
            "taskId": format!("t{task}"), "leaseId": "L", "turn": step / 2 + 2, "reason": "completed",
        });
        let method = if step.is_multiple_of(2) { "task.turnStarted" } else { "task.turnEnded" };
        line(method, &params)
    }
}

/// A child and the host's ends of its pipes.
struct Pipes {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    buffer: Vec<u8>,
}

impl Pipes {
    fn spawn(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::with_capacity(1 << 16, child.stdout.take().unwrap());
        Self { child, stdin, stdout, buffer: Vec::new() }
    }

    fn round_trip(&mut self, line: &str) {
        self.stdin.write_all(line.as_bytes()).unwrap();
        self.line();
    }

    fn line(&mut self) -> &[u8] {
        self.buffer.clear();
        assert!(self.stdout.read_until(b'\n', &mut self.buffer).unwrap() > 0, "the child has ended");
        &self.buffer
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A sidecar with tasks that have run.
struct Sidecar {
    pipes: Pipes,
}

impl Sidecar {
    fn start(place: &Path) -> Self {
        std::fs::create_dir_all(place.join("home")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolation-pod-core"));
        let mut sidecar = Self { pipes: Pipes::spawn(command.env("HOME", place.join("home"))) };
        let mut requests = vec![
            line("initialize", &json!({"protocol": 1, "dbPath": place.join("db/pod.db")})),
            line(
                "config.set",
                &json!({"patch": {"sandboxRoot": place.join("root"), "maxConcurrent": TASKS}}),
            ),
        ];
        for task in (0..TASKS).map(|n| format!("t{n}")) {
            requests.push(line(
                "task.reserve",
                &json!({
                    "taskId": task, "sessionId": format!("s-{task}"), "leaseId": "L",
                    "description": "Count the words of every file and write the sums down, one file a line.",
                }),
            ));
            let turn = json!({"taskId": task, "leaseId": "L", "turn": 1, "reason": "completed"});
            requests.extend([line("task.turnStarted", &turn), line("task.turnEnded", &turn)]);
        }
        sidecar.run(requests.len(), 1, |n| requests[n].clone());
        sidecar
    }

    /// Sends so many requests, so many of them at once, and reads all answers.
    fn run(&mut self, requests: usize, in_flight: usize, mut request: impl FnMut(usize) -> String) {
        let (mut sent, mut answered, mut lines) = (0, 0, String::new());
        while answered < requests {
            lines.clear();
            while sent < requests && sent - answered < in_flight {
                lines.push_str(&request(sent));
                sent += 1;
            }
            self.pipes.stdin.write_all(lines.as_bytes()).unwrap();
            // Then as many as have come, so that the host costs as little as it can.
            loop {
                let line = self.pipes.line();
                if line.starts_with(br#"{"id""#) {
                    let is_good = line.windows(8).take(32).any(|part| part == br#""result""#);
                    assert!(is_good, "{}", String::from_utf8_lossy(line));
                    answered += 1;
                }
                if answered == requests
                    || (sent - answered < in_flight && !self.pipes.stdout.buffer().contains(&b'\n'))
                {
                    break;
                }
            }
        }
    }
}

diesel::table! {
    counted (id) {
        id -> BigInt,
        count -> BigInt,
    }
}

/// SQLite as a sidecar uses it, and nothing around it.
struct Bare {
    database: SqliteConnection,
    count: i64,
}

impl Bare {
    fn open(file: &Path) -> Self {
        let mut database = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
        database
            .batch_execute(
                "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE counted (id INTEGER PRIMARY KEY, count INTEGER NOT NULL);
                 INSERT INTO counted VALUES (1, 0);",
            )
            .unwrap();
        Self { database, count: 0 }
    }

    fn commit(&mut self) {
        self.count += 1;
        let count = self.count;
        let update = |database: &mut SqliteConnection| {
            diesel::update(counted::table.find(1)).set(counted::count.eq(count)).execute(database)
        };
        assert_eq!(self.database.immediate_transaction(update).unwrap(), 1);
    }
}
