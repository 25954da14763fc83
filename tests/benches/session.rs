//! How long a management request takes from the program's start to its end, beside a bare scan-and-stat of the same
//! directory in the same run: `cargo bench -p cofferdam --bench session`.
//!
//! Rivals take turns, so that a busy machine is busy for both. Files lie in `TMPDIR`: a disk or memory, as you like.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has nothing to say")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::session::{Place, id, put};
use serde_json::{Value, json};

const ROUNDS: usize = 40;

/// Ids from here on are put there to be removed again.
const DOOMED: u32 = 1_000_000;

fn main() {
    println!("{:<34}{:>10}{:>12}{:>12}{:>10}", "whole process", "sessions", "p50 ms", "p95 ms", "x scan");
    for sessions in [10, 1000, 10_000] {
        let place = Place::new();
        for n in 0..sessions {
            let seconds = 1_700_000_000 + i64::from(n);
            put(&place.scope(), &id(n), conversation(n, &place.workspace()), seconds);
        }
        measure(&place, sessions);
    }
}

/// A conversation of eight messages, about three kilobytes.
fn conversation(n: u32, workspace: &Path) -> String {
    let said =
        "what was said here is neither long nor short, and nothing in it has to be kept secret. ".repeat(4);
    let messages: Vec<_> = (0..8)
        .map(|at| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": format!("{at} of {n}: {said}")})
        })
        .collect();
    let envelope = json!({
        "schema_version": 1, "session_id": id(n), "workspace_scope": workspace, "created_at_ms": 1, "updated_at_ms": 2,
        "model": "mock", "generation": 4, "messages": messages, "compaction_revision": 0,
    });
    serde_json::to_string_pretty(&envelope).unwrap()
}

fn measure(place: &Place, sessions: u32) {
    let middle = id(sessions / 2);
    let doomed = |count: u32| (DOOMED..DOOMED + count).map(id).collect::<Vec<_>>();
    let cursor = format!("v1:{:016x}:{middle}", (1_700_000_000 + u64::from(sessions / 2)) * 1000);
    let clear = |count| json!({"action": "clear", "session_ids": doomed(count), "protected_session_ids": []});
    let plan = json!({"action": "prepare_clear_all", "limit": 4096, "protected_session_ids": []});
    // What is asked for, and how many sessions it removes.
    let requests = [
        ("list, 20 rows", json!({"action": "list"}), 0),
        ("list, 100 rows", json!({"action": "list", "limit": 100}), 0),
        ("list, a page in the middle", json!({"action": "list", "cursor": cursor}), 0),
        ("list, all workspaces", json!({"action": "list", "all_workspaces": true}), 0),
        ("inspect", json!({"action": "inspect", "session_id": middle}), 0),
        ("validate", json!({"action": "validate", "session_id": middle}), 0),
        ("prepare_clear_all, 4096 ids", plan, 0),
        ("clear, 1 id", clear(1), 1),
        ("clear, 128 ids", clear(128), 128),
    ];
    let (mut scans, mut starts) = (Vec::new(), Vec::new());
    let mut times = vec![Vec::new(); requests.len()];
    for _ in 0..ROUNDS {
        scans.push(timed(|| scan(&place.scope())));
        starts.push(timed(|| assert!(Command::new("/bin/true").status().unwrap().success())));
        for ((_, request, removed), times) in requests.iter().zip(&mut times) {
            for id in doomed(*removed) {
                put(&place.scope(), &id, conversation(0, &place.workspace()), 1);
            }
            times.push(timed(|| ask(place, request)));
        }
    }
    let scan = median(&mut scans);
    let row = |what: &str, times: &mut [Duration]| {
        let (p50, p95) = (median(times), times[times.len() * 95 / 100]);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let ratio = ms(p50) / ms(scan);
        println!("{what:<34}{sessions:>10}{:>12.2}{:>12.2}{ratio:>10.2}", ms(p50), ms(p95));
    };
    println!();
    row("(bare scan-and-stat, no process)", &mut scans);
    row("(/bin/true)", &mut starts);
    for ((what, ..), mut times) in requests.iter().zip(times) {
        row(what, &mut times);
    }
}

/// Looks at every file of a directory, and at nothing in it.
fn scan(dir: &Path) {
    let stats = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    std::hint::black_box(stats.sum::<u64>());
}

/// One request, from the start of the program to its end.
fn ask(place: &Place, request: &Value) {
    let mut request = request.clone();
    request["workspace_scope"] = json!(place.workspace());
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosh-core"));
    command.arg("--session-control").env("HOME", place.home()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{request}: {}", String::from_utf8_lossy(&output.stdout));
}

fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
