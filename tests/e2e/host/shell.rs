//! Tasks whose agents are programs in a sandbox: each test with a daemon of root's and with an ordinary user's.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use cofferdam_storage::sandbox::NOT_SERVED;
use cofferdam_tests::host::HostSite;
use cofferdam_tests::site::{Daemon as Served, run};
use cofferdam_tests::{files, skip};
use serde_json::Value;

use crate::programs;

/// Whose the daemon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Daemon {
    Roots,
    Users,
}

/// Each of these tests twice: with a daemon of root's, if root runs the tests, and with an ordinary user's.
macro_rules! with_either_daemon {
    ($($test:ident)+) => {
        mod as_root {
            $(#[test] fn $test() {
                if !cofferdam_tests::user::is_root() {
                    super::skip!("needs root to be root's daemon");
                }
                super::$test(super::site(super::Daemon::Roots));
            })+
        }
        mod as_user {
            $(#[test] fn $test() { super::$test(super::site(super::Daemon::Users)); })+
        }
    };
}

pub(super) use with_either_daemon;

with_either_daemon! {
    a_script_works_in_its_directory_and_what_it_wrote_is_exported
    the_next_script_finds_what_the_one_before_left
    a_script_that_fails_says_why
    what_a_script_did_is_taken_back
    what_an_agent_keeps_at_home_goes_back_with_its_task
    a_script_that_is_cancelled_leaves_nothing_running
    what_a_script_leaves_behind_ends_with_its_turn
    a_script_that_is_ended_with_its_task_leaves_nothing_running
    nothing_is_written_outside
    a_task_that_may_not_write_does_not
    our_own_sockets_are_out_of_reach
    whatever_is_printed_is_read_and_little_of_it_kept
    presets_of_the_file_are_run_and_bad_ones_say_what_is_wrong
}

pub(super) fn site(daemon: Daemon) -> HostSite {
    match daemon {
        Daemon::Roots => HostSite::new(programs(), None),
        Daemon::Users => HostSite::of_ordinary_user(programs()),
    }
}

/// The id of the only task there is.
pub(super) fn only_task(site: &HostSite) -> String {
    site.json(&["task", "list"])[0]["id"].as_str().unwrap().to_owned()
}

/// Seconds that no other process sleeps for.
pub(super) fn own_time() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether a process has such an argument.
pub(super) fn runs(argument: &str) -> bool {
    let has = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().any(has)
}

fn a_script_works_in_its_directory_and_what_it_wrote_is_exported(site: HostSite) {
    let _daemon = site.start_with_shell();
    let ran = site.run(&["task", "run", "pwd; echo some text > a", "--wait"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let id = only_task(&site);
    assert_eq!(ran.stdout.trim_end(), site.root().join(&id).to_str().unwrap());
    let row = site.row(&id);
    assert_eq!(row["sandboxProbe"], "denied", "{row}");
    let out = site.outside();
    site.ok(&["export", "create", &id, "--to", &out, "--yes"]);
    assert_eq!(fs::read_to_string(site.path("outside/a")).unwrap(), "some text\n");
}

fn the_next_script_finds_what_the_one_before_left(site: HostSite) {
    let daemon = site.start_with_shell();
    site.ok(&["task", "run", "echo one > a", "--wait"]);
    let id = only_task(&site);
    assert_eq!(site.ok(&["task", "tell", &id, "cat a; echo two > a", "--wait"]), "one\n");
    daemon.stop();
    let _daemon = site.start();
    site.ok(&["task", "resume", &id]);
    assert_eq!(site.ok(&["task", "tell", &id, "cat a", "--wait"]), "two\n");
    assert_eq!(site.row(&id)["turns"], 3);
}

fn what_a_script_did_is_taken_back(site: HostSite) {
    let _daemon = site.start_with_shell();
    site.ok(&["task", "run", "echo one > a; mkdir -p d; echo x > d/x", "--wait"]);
    let id = only_task(&site);
    site.ok(&["task", "tell", &id, "echo two > a; echo new > b; rm -r d", "--wait"]);
    site.ok(&["task", "rewind", &id, "--turn", "2", "--yes"]);
    // Also for the script: whoever owned a file owns it again.
    assert_eq!(site.ok(&["task", "tell", &id, "cat a; ls; echo three >> a", "--wait"]), "one\na\nd\n");
    site.ok(&["task", "rewind", &id, "--undo", "--yes"]);
    assert_eq!(site.ok(&["task", "tell", &id, "cat a; ls", "--wait"]), "two\na\nb\n");
}

/// An agent that is its prompt as a script, and keeps its home.
pub(super) const KEEPS: &str = r#"
[[presets]]
id = "keeps"
argv_first = ["sh"]
argv_follow_up = ["sh"]
prompt = "stdin"
keep_home = true
"#;

fn what_an_agent_keeps_at_home_goes_back_with_its_task(site: HostSite) {
    let site = site.with_presets(KEEPS);
    let _daemon = site.start_with_shell();
    site.ok(&["task", "run", "echo one > ~/memory", "--preset", "keeps", "--wait"]);
    let id = only_task(&site);
    site.ok(&["task", "tell", &id, "echo two > ~/memory; echo new > ~/more", "--wait"]);
    site.ok(&["task", "rewind", &id, "--turn", "2", "--yes"]);
    let look = "cat ~/memory; ls ~/more 2>/dev/null; echo changed >> ~/memory";
    assert_eq!(site.ok(&["task", "tell", &id, look, "--wait"]), "one\n");
    site.ok(&["task", "rewind", &id, "--undo", "--yes"]);
    assert_eq!(site.ok(&["task", "tell", &id, "cat ~/memory ~/more", "--wait"]), "two\nnew\n");
}

fn a_script_that_fails_says_why(site: HostSite) {
    let _daemon = site.start_with_shell();
    let ran = site.run(&["task", "run", "echo the reason >&2; exit 3", "--wait"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let id = only_task(&site);
    assert_eq!(site.row(&id)["status"], "failed");
    // Why is told after the turn's end.
    let says = |what: &str| site.until(&id, |row| row["error"].as_str().unwrap().contains(what));
    says("exit code 3: the reason");
    let ran = site.run(&["task", "tell", &id, "kill -9 $$", "--wait"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    says("signal 9");
}

fn a_script_that_is_cancelled_leaves_nothing_running(site: HostSite) {
    let _daemon = site.start_with_shell();
    // One that minds TERM, and one that does not mind it for as long as it may.
    for trap in ["", "trap '' TERM; "] {
        let time = own_time();
        let id = site.task(&format!("{trap}echo up; sleep {time}"));
        site.until(&id, |row| row["lastText"] == "up");
        assert!(runs(&time));
        site.ok(&["task", "cancel", &id]);
        site.until(&id, |row| row["status"] == "cancelled");
        assert_eq!(site.ok(&["task", "tell", &id, "echo again", "--wait"]), "again\n");
        assert!(!runs(&time), "{trap}");
    }
}

/// Starts something in a session of its own, which sleeps.
fn leave_behind(time: &str) -> String {
    format!("mkfifo pipe; setsid sh -c 'trap \"\" TERM; echo up > pipe; exec sleep {time}' & cat pipe")
}

fn what_a_script_leaves_behind_ends_with_its_turn(site: HostSite) {
    let _daemon = site.start_with_shell();
    let time = own_time();
    assert_eq!(site.ok(&["task", "run", &leave_behind(&time), "--wait"]), "up\n");
    assert!(!runs(&time));
}

fn a_script_that_is_ended_with_its_task_leaves_nothing_running(site: HostSite) {
    let daemon = site.start_with_shell();
    let time = own_time();
    let id = site.task(&format!("{}; sleep {time}", leave_behind(&time)));
    site.until(&id, |row| row["lastText"] == "up");
    assert!(runs(&time));
    site.ok(&["task", "clean", &id, "--scope", "all", "--yes"]);
    assert!(!runs(&time));
    // Nor does the daemon's own end, however it comes.
    let id = site.task(&format!("{}; sleep {time}", leave_behind(&time)));
    site.until(&id, |row| row["lastText"] == "up");
    daemon.kill();
    while runs(&time) {
        std::thread::yield_now();
    }
}

fn nothing_is_written_outside(site: HostSite) {
    let _daemon = site.start_with_shell();
    let out = site.outside();
    files::write(site.path("outside/kept"), "kept");
    // Nothing but the sandbox is in the way.
    files::chmod(site.path("outside"), 0o777);
    files::chmod(site.path("outside/kept"), 0o666);
    for script in [
        format!("echo new > {out}/new"),
        format!("echo new > {out}/kept"),
        format!("rm {out}/kept"),
        format!("ln -s {out} link; echo new > link/new"),
        "echo new > ../new".to_owned(),
    ] {
        let ran = site.run(&["task", "run", &script, "--wait"]);
        assert_eq!(ran.code, 1, "{script}: {ran:?}");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(site.path("outside/kept")).unwrap(), "kept");
    assert!(!site.root().join("new").exists());
}

fn a_task_that_may_not_write_does_not(site: HostSite) {
    let _daemon = site.start_with_shell();
    site.ok(&["config", "set", "allowWrites=false"]);
    let ran = site.run(&["task", "run", "echo can read; ls > a", "--wait"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let row = site.row(&only_task(&site));
    assert_eq!((&row["lastText"], &row["sandboxMode"]), (&"can read".into(), &"read-only".into()));
    assert_eq!(fs::read_dir(row["taskDir"].as_str().unwrap()).unwrap().count(), 0);
}

fn our_own_sockets_are_out_of_reach(site: HostSite) {
    let site = site.with_http();
    let daemon = site.start_with_shell();
    let line = daemon.line();
    let address = line.strip_prefix("console: http://").unwrap().split('/').next().unwrap();
    let port = address.rsplit(':').next().unwrap();
    for socket in [site.path("state/run/control.sock"), site.path("ckpt.sock")] {
        let script = format!(
            "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\"); print(\"reached\")'",
            socket.display()
        );
        let ran = site.run(&["task", "run", &script, "--wait"]);
        assert!(ran.code == 1 && !ran.stdout.contains("reached"), "{script}: {ran:?}");
    }
    // While something runs in a sandbox, so that the daemon looks who asks.
    site.ok(&["config", "set", "maxConcurrent=2"]);
    let time = own_time();
    site.ok(&["task", "run", &format!("sleep {time}")]);
    while !runs(&time) {
        std::thread::yield_now();
    }
    for request in [
        "GET /isolation-pod/status",
        "GET /isolation-pod/bootstrap",
        "GET /api/v1/openapi.json",
        "POST /isolation-pod/api",
        "GET /login",
    ] {
        let text = format!(
            r"{request} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{text}' >&3; cat <&3");
        let ran = site.run(&["task", "run", &script, "--wait"]);
        assert!(ran.stdout.starts_with("HTTP/1.1 403"), "{request}: {ran:?}");
        assert!(ran.stdout.contains(NOT_SERVED), "{request}: {ran:?}");
        let user = run(site.program("bash").args(["-c", &script]));
        assert!(user.stdout.starts_with("HTTP/1.1 ") && !user.stdout.contains(NOT_SERVED), "{user:?}");
        if request.ends_with("/status") {
            assert!(user.stdout.starts_with("HTTP/1.1 200"), "{user:?}");
        }
    }
    assert!(runs(&time));
    // One that lets nobody see what it has open.
    let script = format!(
        "/usr/bin/python3 -c 'import ctypes, socket; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); \
         s = socket.create_connection((\"127.0.0.1\", {port})); \
         s.sendall(b\"GET /isolation-pod/status HTTP/1.1\\r\\nHost: {address}\\r\\nConnection: close\\r\\n\\r\\n\"); \
         print(s.makefile().read())'"
    );
    let ran = site.run(&["task", "run", &script, "--wait"]);
    assert!(ran.stdout.starts_with("HTTP/1.1 403") && ran.stdout.contains(NOT_SERVED), "{ran:?}");
}

fn whatever_is_printed_is_read_and_little_of_it_kept(site: HostSite) {
    let daemon = site.start_with_shell();
    let script = "head -c 100000000 /dev/urandom; head -c 100000000 /dev/zero >&2; echo; echo the end";
    let ran = site.run(&["task", "run", script, "--wait"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.ends_with("the end\n"), "{}", ran.stdout.len());
    let logs = site.ok(&["task", "logs", &only_task(&site)]);
    assert!(logs.contains("bytes before this were left out]"));
    let peak = peak_kib(&daemon);
    assert!(peak < 150 << 10, "{peak}");
}

/// The most memory that a daemon ever had.
pub(super) fn peak_kib(daemon: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

const PRESETS: &str = r#"
[[presets]]
id = "echo"
argv_first = ["cat"]
prompt = "stdin"

[[presets]]
id = "deaf"
argv_first = ["true"]
prompt = "stdin"

[[presets]]
id = "missing"
argv_first = ["no-such-program", "{prompt}"]

[[presets]]
id = "data"
argv_first = ["/etc/passwd", "{prompt}"]

[[presets]]
id = "bad"
argv_first = ["true"]
"#;

fn presets_of_the_file_are_run_and_bad_ones_say_what_is_wrong(site: HostSite) {
    let site = site.with_presets(PRESETS);
    let _daemon = site.start_with_shell();
    let run = |preset: &str, text: &str| site.run(&["task", "run", text, "--preset", preset, "--wait"]);
    let newest = || -> Value { site.json(&["task", "list"])[0].clone() };
    assert_eq!(run("echo", "what it is told").stdout, "what it is told\n");
    // It has one turn.
    let id = newest()["id"].as_str().unwrap().to_owned();
    let refused = site.run(&["task", "tell", &id, "more", "--wait"]);
    let stderr = &refused.stderr;
    assert!(stderr.contains("TASK_NOT_RESUMABLE") && stderr.contains("argv_follow_up"), "{refused:?}");
    let deaf = run("deaf", &"x".repeat(60_000));
    assert_eq!(deaf.code, 0, "{deaf:?}");
    let ran = run("data", "anything");
    assert_eq!(ran.code, 1, "{ran:?}");
    // Why is told after the turn's end.
    let id = newest()["id"].as_str().unwrap().to_owned();
    site.until(&id, |row| row["error"].as_str().unwrap().contains("/etc/passwd"));
    for (preset, what) in [("missing", "no-such-program"), ("bad", "{prompt}")] {
        let refused = run(preset, "anything");
        let stderr = &refused.stderr;
        assert!(
            refused.code == 1 && stderr.contains("CONFIG_INVALID") && stderr.contains(what),
            "{refused:?}"
        );
    }
}
