//! Programs that behave badly: each ends its task with a text that says what happened, its slot is free for the next, and
//! nothing of it is left running.

use cofferdam_tests::host::{Core, HostSite};
use cofferdam_tests::mount::Mount;
use cofferdam_tests::{files, skip, user};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::shell::{Daemon, own_time, runs, site, with_either_daemon};

with_either_daemon! {
    a_program_that_fails_leaves_a_reason_a_free_slot_and_no_process
    a_program_that_takes_too_long_is_ended_with_all_it_started
    a_program_that_ends_well_may_not_leave_anything_behind_either
    a_program_that_hangs_at_the_end_of_its_input_runs_out_of_time
    a_supervisor_that_is_stopped_or_killed_takes_its_program_along_and_gives_its_slot_back
}

/// How many times faster than the machine's the daemon's time runs, where a turn has to run out of its 30 s.
const FASTER: u32 = 10;

/// Makes a script, given for how long whatever it leaves behind would stay.
type Script<'a> = &'a dyn Fn(&str) -> String;

/// In a session of its own, its parent gone, deaf to TERM, with everything open that its program had open.
const DAEMON: &str = r#"
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0: os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execv("/bin/sleep", ["sleep", sys.argv[1]])
os.wait()
"#;

/// A line of a script that leaves such a process behind.
fn daemonize(time: &str) -> String {
    format!("/usr/bin/python3 -c '{DAEMON}' {time}; echo up")
}

fn with_one_slot(site: &HostSite, more: &[&str]) {
    site.ok(&[&["config", "set", "maxConcurrent=1"], more].concat());
}

/// Starts a task and another one behind it; returns what became of the first when the second has been carried out.
#[track_caller]
fn gives_way(site: &HostSite, run: &[&str]) -> Value {
    let id = site.json(&[&["task", "run"], run].concat())["taskId"].as_str().unwrap().to_owned();
    let next = site.run(&["task", "run", "echo next", "--preset", "shell", "--wait"]);
    assert_eq!((next.code, next.stdout.as_str()), (0, "next\n"), "{run:?}: {next:?}");
    site.row(&id)
}

fn a_program_that_fails_leaves_a_reason_a_free_slot_and_no_process(site: HostSite) {
    let _daemon = site.start_with_shell();
    with_one_slot(&site, &[]);
    let table: [(&str, Script); 8] = [
        ("exit code 9", &|_| "exit 9".to_owned()),
        ("signal 11", &|_| "kill -SEGV $$".to_owned()),
        ("exit code 9", &|_| "head -c 1073741824 /dev/zero; exit 9".to_owned()),
        ("exit code 9", &|_| "head -c 1000000 /dev/urandom >&2; exit 9".to_owned()),
        ("exit code 9", &|time| format!("{}; exit 9", daemonize(time))),
        ("exit code 9", &|time| format!("(setsid sh -c 'sleep {time} & sleep {time}' &); exit 9")),
        ("signal 9", &|time| format!("{}; kill -9 $$", daemonize(time))),
        ("exit code 9", &|time| format!("for i in $(seq 300); do sleep {time} & done; exit 9")),
    ];
    for (says, script) in table {
        let time = own_time();
        let script = script(&time);
        let row = gives_way(&site, &[&script]);
        assert_eq!(row["status"], "failed", "{script}: {row}");
        assert!(row["error"].as_str().unwrap().contains(says), "{script}: {row}");
        assert!(!runs(&time), "{script}");
    }
}

fn a_program_that_ends_well_may_not_leave_anything_behind_either(site: HostSite) {
    let _daemon = site.start_with_shell();
    with_one_slot(&site, &[]);
    let time = own_time();
    let row = gives_way(&site, &[&daemonize(&time)]);
    assert_eq!((&row["status"], &row["lastText"]), (&"completed".into(), &"up".into()), "{row}");
    assert!(!runs(&time));
}

fn a_program_that_takes_too_long_is_ended_with_all_it_started(site: HostSite) {
    let site = site.scaled(FASTER);
    let _daemon = site.start_with_shell();
    with_one_slot(&site, &["timeoutMs=30000"]);
    let table: [&dyn Fn(&str) -> String; 4] = [
        &|time| format!("sleep {time}"),
        &|time| format!("trap '' TERM; while :; do sleep {time}; done"),
        &|time| format!("{}; kill -STOP $$", daemonize(time)),
        &|time| format!("{}; while :; do sleep {time} & wait; done", daemonize(time)),
    ];
    for script in table {
        let time = own_time();
        let script = script(&time);
        timed_out(&gives_way(&site, &[&script]));
        assert!(!runs(&time), "{script}");
    }
}

/// Fails unless it is said what to do about a task whose time was up.
#[track_caller]
fn timed_out(row: &Value) {
    assert_eq!(row["status"], "timeout", "{row}");
    let error = row["error"].as_str().unwrap();
    assert!(error.contains("longer than 30 s") && error.contains("timeoutMs"), "{row}");
}

const READER: &str = r#"
[[presets]]
id = "reader"
argv_first = ["sh", "-c", "read time; cat; echo read it all; exec sleep $time"]
prompt = "stdin"
"#;

fn a_program_that_hangs_at_the_end_of_its_input_runs_out_of_time(site: HostSite) {
    let site = site.with_presets(READER).scaled(FASTER);
    let _daemon = site.start_with_shell();
    with_one_slot(&site, &["timeoutMs=30000"]);
    let time = own_time();
    let row = gives_way(&site, &[&format!("{time}\nand more"), "--preset", "reader"]);
    timed_out(&row);
    assert!(row["lastText"].as_str().unwrap().ends_with("read it all"), "{row}");
    assert!(!runs(&time));
}

fn a_supervisor_that_is_stopped_or_killed_takes_its_program_along_and_gives_its_slot_back(site: HostSite) {
    let site = site.scaled(FASTER);
    let daemon = site.start_with_shell();
    with_one_slot(&site, &["timeoutMs=30000"]);
    let begun = |time: &str| {
        let id = site.task(&format!("{}; while :; do sleep {time}; done", daemonize(time)));
        site.until(&id, |row| row["lastText"] == "up");
        (id, child_called(daemon.pid(), "pod-supervisor"))
    };
    // Stopped until its turn's time is up, stopped and cancelled, and killed.
    for (signal, cancelled, ends) in [
        (Signal::SIGSTOP, false, "timeout"),
        (Signal::SIGSTOP, true, "cancelled"),
        (Signal::SIGKILL, false, "failed"),
    ] {
        let time = own_time();
        let (id, supervisor) = begun(&time);
        kill(supervisor, signal).unwrap();
        if cancelled {
            site.ok(&["task", "cancel", &id]);
        }
        let row = site.until(&id, |row| row["status"] != "running");
        assert_eq!(row["status"], ends, "{signal}: {row}");
        assert_eq!(site.ok(&["task", "run", "echo next", "--wait"]), "next\n");
        while runs(&time) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_program_that_fills_the_disk_fails_with_what_the_system_says_and_the_next_one_is_carried_out() {
    if !user::is_root() {
        skip!("only root mounts a small disk");
    }
    let site = HostSite::new(crate::programs(), None);
    let disk = Mount::tmpfs(&site.root(), 4096);
    let daemon = site.start_with_shell();
    with_one_slot(&site, &[]);
    let row = gives_way(&site, &["head -c 100000000 /dev/zero > large"]);
    assert_eq!(row["status"], "failed", "{row}");
    assert!(row["error"].as_str().unwrap().contains("No space left on device"), "{row}");
    // Nor is a daemon whose disk is full stuck with it.
    site.ok(&["task", "clean", row["id"].as_str().unwrap(), "--scope", "all", "--yes"]);
    assert_eq!(site.ok(&["task", "run", "echo much > a; wc -c < a", "--wait"]), "5\n");
    daemon.stop();
    drop(disk);
}

#[test]
fn a_turn_whose_time_is_up_is_ended_though_the_core_says_nothing_any_more() {
    let site = super::site(Core::Sidecar).scaled(FASTER);
    let daemon = site.start_with_shell();
    site.ok(&["config", "set", "timeoutMs=30000"]);
    let time = own_time();
    let id = site.task(&format!("trap '' TERM; echo up; while :; do sleep {time}; done"));
    site.until(&id, |row| row["lastText"] == "up");
    let core = child_called(daemon.pid(), "isolation-pod-core");
    kill(core, Signal::SIGSTOP).unwrap();
    while runs(&time) {
        std::thread::yield_now();
    }
    kill(core, Signal::SIGCONT).unwrap();
    let logs = site.ok(&["task", "logs", &id]);
    assert!(logs.contains("the turn took too long, and was cancelled"), "{logs}");
}

/// A child of a process, by a word of its program's name.
fn child_called(parent: u32, name: &str) -> Pid {
    let of_thread = |thread: String| {
        String::from_utf8(files::read(format!("/proc/{parent}/task/{thread}/children"))).unwrap()
    };
    let children: String = files::names(format!("/proc/{parent}/task")).into_iter().map(of_thread).collect();
    let is_it =
        |id: &&str| String::from_utf8_lossy(&files::read(format!("/proc/{id}/cmdline"))).contains(name);
    let found = children.split_whitespace().find(is_it);
    Pid::from_raw(found.unwrap_or_else(|| panic!("{children}")).parse().unwrap())
}
