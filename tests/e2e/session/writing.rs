//! Conversations that are written.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_tests::files::{names, read, set_mtime, write};
use cofferdam_tests::mount::Mount;
use cofferdam_tests::session::{SessionSite, Turn, id};
use cofferdam_tests::skip;
use cofferdam_tests::user::is_root;
use serde_json::json;

use super::{each_fault, site, texts, under};

fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn temporary(site: &SessionSite) -> Vec<String> {
    names(site.scope()).into_iter().filter(|name| name.ends_with(".tmp")).collect()
}

/// A place with a stored conversation of one turn.
fn begun() -> SessionSite {
    let site = site();
    site.use_mock();
    site.put_ready(&id(1), 5);
    site
}

#[test]
fn a_new_conversation_is_private_whatever_the_umask_and_has_its_keys_in_order() {
    let site = site();
    site.use_mock();
    let turn = site.turn_command(None, "hello");
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(turn.get_program()).args(turn.get_args());
    command.env_clear().env("HOME", site.home()).current_dir(site.path("elsewhere"));
    let turn = Turn::of(&mut command);
    assert_eq!(turn.outcome(), "ok");
    let session = turn.lines.last().unwrap()["session_id"].as_str().unwrap();
    assert_eq!(names(site.scope()), [format!(".{session}.lock"), format!("{session}.json")]);
    assert_eq!([site.scope(), site.root(), site.root().parent().unwrap().into()].map(mode), [0o700; 3]);
    assert!(names(site.scope()).iter().all(|name| mode(site.scope().join(name)) == 0o600));
    let text = String::from_utf8(read(site.scope().join(format!("{session}.json")))).unwrap();
    let keys: Vec<_> =
        text.lines().filter(|line| line.starts_with("  \"")).map(|line| line.split('"').nth(1)).collect();
    let expected = [
        "schema_version",
        "session_id",
        "workspace_scope",
        "created_at_ms",
        "updated_at_ms",
        "model",
        "generation",
        "messages",
        "compaction_revision",
    ];
    assert_eq!(keys, expected.map(Some));
    assert!(text.contains("\n  \"generation\": 1,\n") && text.ends_with("\n}"), "{text}");
}

#[test]
fn everything_of_a_write_is_reached_through_the_one_directory_that_is_held() {
    let site = begun();
    let trace = site.path("trace");
    let turn = site.turn_command(Some(1), "one");
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-e", "trace=openat,flock,fsync,renameat,renameat2,unlinkat", "-o"]).arg(&trace);
    command.arg(turn.get_program()).args(turn.get_args());
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", site.home())
        .current_dir(site.path("elsewhere"));
    match command.output() {
        Ok(output) if output.status.success() => {}
        other => skip!("nothing can be traced here: {other:?}"),
    }
    let trace = String::from_utf8(read(trace)).unwrap();
    let calls: Vec<_> = trace.lines().map(|line| line.split_once(' ').unwrap().1.trim_start()).collect();
    let rename = calls.iter().position(|call| call.starts_with("renameat")).unwrap();
    let dir = calls[rename].split_once('(').unwrap().1.split_once(',').unwrap().0;
    let named = format!(".{}.", id(1));
    let of_session = |call: &&&str| call.contains(id(1).as_str()) && !call.starts_with("execve");
    for call in calls.iter().filter(of_session) {
        let (_, arguments) = call.split_once('(').unwrap();
        assert!(arguments.starts_with(&format!("{dir}, \"")), "not through {dir}: {call}");
    }
    // Lock, temporary file, its content, its name, the directory, and the lock is given back.
    let mut at = 0;
    for (what, parts) in [
        ("lock", ["openat(", ".lock"]),
        ("lock", ["flock(", "LOCK_EX|LOCK_NB"]),
        ("temporary file", [&named, "O_EXCL"]),
        ("content", ["fsync(", ""]),
        ("name", ["renameat", ".json"]),
        ("directory", [&format!("fsync({dir})"), ""]),
        ("unlock", ["flock(", "LOCK_UN"]),
    ] {
        let found = calls[at..].iter().position(|call| parts.iter().all(|part| call.contains(part)));
        at += 1 + found.unwrap_or_else(|| panic!("no {what} in its place:\n{trace}"));
    }
}

#[test]
fn whichever_operation_fails_or_is_the_last_the_old_or_the_new_conversation_is_there_whole() {
    let left = AtomicBool::new(false);
    each_fault(|fault| {
        let site = begun();
        let (killed, turn) = under(fault, site.turn_command(Some(1), "one"));
        let failed = killed || turn.outcome() != "ok";
        assert!(killed || ["ok", "io/persist"].contains(&turn.outcome().as_str()), "{fault}: {turn:?}");
        let generation = site.envelope(1).generation;
        let old = ["hello", "yes"];
        match generation {
            3 => assert!(failed && texts(&site, 1) == old, "{fault}"),
            _ => assert_eq!(
                (generation, &texts(&site, 1)[..3]),
                (4, &["hello", "yes", "one"].map(String::from)[..])
            ),
        }
        assert!(killed || temporary(&site).is_empty(), "{fault}");
        // What a killed one leaves goes when it is old enough, and not before.
        let temporary_before = temporary(&site);
        assert_eq!(site.turn(1, "two").outcome(), "ok", "{fault}");
        assert_eq!(temporary(&site), temporary_before, "{fault}");
        if let [name] = &temporary_before[..] {
            left.store(true, Ordering::Relaxed);
            assert!(name.starts_with(&format!(".{}.", id(1))), "{name}");
            write(site.scope().join("z.tmp"), "");
            for name in [name, "z.tmp"] {
                set_mtime(site.scope().join(name), 1_000_000_000, 0);
            }
            assert_eq!((site.listed().len(), site.clear(9)), (1, "not_found".to_owned()));
            assert_eq!(temporary(&site).len(), 2);
            assert_eq!(site.turn(1, "three").outcome(), "ok");
            assert_eq!(temporary(&site), ["z.tmp"]);
        }
        failed
    });
    assert!(left.into_inner(), "no temporary file was ever left");
}

#[test]
fn of_eight_that_write_at_once_every_loser_knows_and_no_message_is_lost() {
    let site = begun();
    let done = AtomicBool::new(false);
    let outcomes = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                let now = texts(&site, 1).len();
                assert!(now >= seen);
                seen = now;
            }
        });
        let site = &site;
        let writers: Vec<_> = (0..8)
            .map(|n| scope.spawn(move || (n, site.turn(1, &format!("writer {n}")).outcome())))
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        outcomes
    });
    assert!(
        outcomes.iter().all(|(_, outcome)| ["ok", "conflict/persist"].contains(&outcome.as_str())),
        "{outcomes:?}"
    );
    let mut winners: Vec<_> =
        outcomes.iter().filter(|(_, outcome)| outcome == "ok").map(|(n, _)| format!("writer {n}")).collect();
    assert!(!winners.is_empty());
    let stored = texts(&site, 1);
    let mut said: Vec<_> = stored[2..].iter().step_by(2).cloned().collect();
    said.sort();
    winners.sort();
    assert_eq!(said, winners);
    assert_eq!(
        (site.envelope(1).generation, stored.len()),
        (3 + winners.len() as u64, 2 + 2 * winners.len())
    );
    assert_eq!(temporary(&site), [""; 0]);
}

#[test]
fn what_is_cleared_between_two_turns_of_a_process_is_not_written_again() {
    let site = begun();
    let mut talk = site.converse(&["--resume", id(1).as_str()]);
    assert_eq!(talk.turn("one")["is_error"], false);
    assert_eq!(site.clear(1), "ok");
    let result = talk.turn("two");
    assert_eq!(
        (&result["session_error_code"], &result["session_error_phase"]),
        (&json!("conflict"), &json!("persist"))
    );
    assert_eq!((site.validate(1), site.listed()), ("not_found".to_owned(), vec![]));
}

#[test]
fn on_a_full_disk_the_old_conversation_stays_and_clearing_makes_room() {
    if !is_root() {
        skip!("only root can mount");
    }
    let site = site();
    let mount = Mount::tmpfs(&site.path("home/.copilot-shell/cosh-core"), 2048);
    site.use_mock();
    site.put_ready(&id(1), 5);
    site.put_ready(&id(2), 5);
    let before = read(site.file(1));
    mount.fill();
    let long = "x".repeat(100_000);
    assert_eq!(site.turn(1, &long).outcome(), "io/persist");
    assert_eq!((read(site.file(1)), temporary(&site)), (before, vec![]));
    assert_eq!(site.clear(2), "ok");
    mount.free();
    assert_eq!(site.turn(1, &long).outcome(), "ok");
    assert_eq!(site.envelope(1).generation, 4);
}
