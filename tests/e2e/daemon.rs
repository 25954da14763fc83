//! The daemon's life: where it puts things, who else may run, how it starts and how it ends.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use cofferdam_protocol::ckpt::{WsCkptErrorCode, WsCkptRequest, WsCkptResponse};
use cofferdam_tests::process::cpu_ticks;
use cofferdam_tests::project::noise;
use cofferdam_tests::site::{Daemon, run};
use cofferdam_tests::wire::{Wire, ask};
use cofferdam_tests::{files, skip, user};
use nix::sys::signal::Signal;

use crate::{site, site_of_ordinary_user};

#[track_caller]
fn serves(daemon: &Daemon) {
    assert!(matches!(daemon.call(&WsCkptRequest::Config), WsCkptResponse::ConfigOk { .. }));
}

#[test]
fn an_ordinary_user_needs_neither_flags_nor_variables() {
    let site = site_of_ordinary_user();
    let state = site.path("home/.local/state/cofferdam");
    let socket = state.join("run/ws-ckpt.sock");
    let daemon = Daemon::start(site.command(&site.programs().cofferdam).arg("serve"), &socket);
    assert!(daemon.ready_line().contains(socket.to_str().unwrap()), "{}", daemon.ready_line());
    let ws = site.workspace("project");
    let path = ws.to_str().unwrap();
    // The client finds it in the same way.
    for arguments in [
        ["checkpoint", "-w", path, "-i", "one"].as_slice(),
        &["rollback", "-w", path, "-s", "one"],
        &["undo", "-w", path],
        &["list", "-w", path],
        &["check", "--read-data"],
    ] {
        files::append(ws.join("file"), "something to take back\n");
        let ran = run(site.command(&site.programs().cofferdam).arg("ckpt").args(arguments));
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    }
    serves(&daemon);
}

#[test]
fn the_drop_in_daemon_and_variables_for_state_and_socket_work_as_well() {
    let site = site_of_ordinary_user();
    let daemon = Daemon::start(&mut site.ws_ckpt_daemon(), &site.socket());
    serves(&daemon);
    daemon.stop();

    let xdg = site.directory("xdg");
    files::chmod(&xdg, 0o700);
    let socket = xdg.join("ws-ckpt/ws-ckpt.sock");
    let mut command = site.command(&site.programs().cofferdam);
    command.arg("serve").env("XDG_RUNTIME_DIR", &xdg).env("XDG_STATE_HOME", xdg.join("state"));
    let daemon = Daemon::start(&mut command, &socket);
    serves(&daemon);
    assert!(xdg.join("state/cofferdam/ckpt").is_dir());
    daemon.stop();

    let mut command = site.command(&site.programs().ws_ckpt);
    command
        .arg("daemon")
        .env("WS_CKPT_SOCKET", site.path("s"))
        .env("COFFERDAM_STATE_DIR", site.path("by-variable"));
    let daemon = Daemon::start(&mut command, &site.path("s"));
    serves(&daemon);
    assert!(site.path("by-variable/ckpt").is_dir());
}

#[test]
fn what_the_daemon_keeps_is_for_its_own_user_only() {
    let site = site_of_ordinary_user();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    fn visit(path: &Path, count: &mut usize) {
        let meta = std::fs::symlink_metadata(path).unwrap();
        let mode = meta.permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
        *count += 1;
        if meta.is_dir() {
            for entry in std::fs::read_dir(path).unwrap() {
                visit(&entry.unwrap().path(), count);
            }
        }
    }
    let mut count = 0;
    visit(site.state(), &mut count);
    assert!(count > 6, "{count}");
    assert!(cofferdam_tests::site::is_private_socket(&site.socket()));
}

#[test]
fn a_client_finds_the_daemon_of_a_state_directory_wherever_that_listens() {
    let site = site_of_ordinary_user();
    let ws = site.workspace("project");
    let status = || {
        let mut command = site.command(&site.programs().cofferdam);
        run(command.args(["ckpt", "status", "--state-dir"]).arg(site.state()))
    };
    for n in 0..2 {
        let daemon = site.start();
        daemon.init(&ws);
        let ran = status();
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains(ws.to_str().unwrap()), "{ran:?}");
        if n == 0 {
            // What it leaves is replaced by the next.
            daemon.kill();
            assert_ne!(status().code, 0);
        } else {
            daemon.stop();
        }
    }
    assert_ne!(status().code, 0);
}

#[test]
fn a_second_daemon_on_the_same_state_directory_is_told_who_holds_it() {
    let site = site();
    let daemon = site.start();
    for mut second in [site.cofferdam(&["serve"]), site.ws_ckpt(&["daemon"])] {
        let ran =
            run(second.arg("--state-dir").arg(site.state()).arg("--socket").arg(site.path("other.sock")));
        assert_eq!(ran.code, 1, "{ran:?}");
        assert_eq!(ran.stdout, "");
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
        let pid = daemon.pid().to_string();
        assert!(ran.stderr.contains(&pid), "process {pid} is not named: {}", ran.stderr);
        assert!(!site.path("other.sock").exists());
    }
    serves(&daemon);
    // The lock is the process's, not the file's: what a killed daemon leaves is no obstacle.
    daemon.kill();
    serves(&site.start());
}

#[test]
fn a_live_socket_is_not_taken_from_the_daemon_that_serves_it() {
    let site = site();
    let daemon = site.start();
    let mut second = site.cofferdam(&["serve"]);
    let ran = run(second.arg("--state-dir").arg(site.path("other-state")).arg("--socket").arg(site.socket()));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(site.socket().to_str().unwrap()), "{}", ran.stderr);
    serves(&daemon);
}

#[test]
fn a_stale_socket_is_replaced_and_anything_else_is_not() {
    let site = site();
    let daemon = site.start();
    daemon.kill();
    assert!(site.socket().exists(), "a killed daemon removes nothing");
    let daemon = site.start();
    serves(&daemon);
    daemon.stop();

    files::write(site.socket(), "somebody's file");
    let ran = run(&mut site.serve());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(files::read(site.socket()), b"somebody's file");
    files::remove(site.socket());
    let target = site.path("somebody's file");
    files::write(&target, "kept");
    files::symlink(&target, site.socket());
    let ran = run(&mut site.serve());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(files::read(&target), b"kept");
    assert!(site.socket().is_symlink());
}

#[test]
fn a_clean_exit_removes_the_sockets_and_says_nothing_went_wrong() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let site = site();
        let mut daemon = site.start();
        let ws = site.workspace("project");
        daemon.checkpoint(&ws, "one");
        daemon.signal(signal);
        let (code, stderr) = daemon.wait();
        assert_eq!(code, 0, "{signal}: {stderr}");
        assert!(!site.socket().exists(), "{signal}");
        let left: Vec<_> = std::fs::read_dir(site.state().join("run")).unwrap().collect();
        assert!(left.is_empty(), "{signal}: {left:?}");
        assert_eq!(site.check(), 1);
    }
}

#[test]
fn a_terminal_that_is_closed_does_not_end_the_daemon() {
    let site = site();
    let daemon = site.start();
    daemon.signal(Signal::SIGHUP);
    serves(&daemon);
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    assert_eq!(daemon.stop().0, 0);
}

#[test]
fn a_socket_that_somebody_else_put_there_meanwhile_is_left_alone() {
    let site = site();
    let daemon = site.start();
    files::remove(site.socket());
    let _theirs = UnixListener::bind(site.socket()).unwrap();
    let inode = std::fs::symlink_metadata(site.socket()).unwrap().ino();
    assert_eq!(daemon.stop().0, 0);
    assert_eq!(std::fs::symlink_metadata(site.socket()).unwrap().ino(), inode);
}

#[test]
fn a_checkpoint_that_runs_when_the_daemon_is_told_to_stop_is_finished() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    cofferdam_tests::project::make(&ws);
    let mut wire = daemon.connect();
    wire.send(&ask::checkpoint(&ws, "one"));
    // Its answer to this shows that the daemon has taken up the request before it.
    serves(&daemon);
    let (code, stderr) = daemon.stop();
    assert_eq!(code, 0, "{stderr}");
    let answer = wire.receive();
    let taken = site.check();
    match answer {
        Some(WsCkptResponse::CheckpointOk { .. }) => assert_eq!(taken, 1),
        Some(WsCkptResponse::Error { .. }) | None => assert_eq!(taken, 0),
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_daemon_out_of_descriptors_rests_and_recovers() {
    let site = site();
    let mut command = site.command("sh");
    let serve = site.serve();
    command.args(["-c", r#"ulimit -n 64; exec "$0" "$@""#]).arg(serve.get_program()).args(serve.get_args());
    let daemon = Daemon::start(&mut command, &site.socket());
    serves(&daemon);
    let held: Vec<Wire> = (0..200).map(|_| daemon.connect()).collect();
    let before = cpu_ticks(daemon.pid());
    // Either there is no descriptor left for this one, and waiting for the answer is the time in which the
    // processor must be idle; or the daemon has kept some back, and answers.
    let mut late = daemon.connect();
    late.send(&WsCkptRequest::Config);
    let answered = late.receives_within(Duration::from_millis(1500));
    let used = cpu_ticks(daemon.pid()) - before;
    assert!(used < 30, "{used} hundredths of a second of processor time while nothing could be done");
    drop(held);
    if !answered {
        assert!(
            matches!(late.receive(), Some(WsCkptResponse::ConfigOk { .. })),
            "served when there is room again"
        );
    }
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    let (code, stderr) = daemon.stop();
    assert_eq!(code, 0);
    assert!(stderr.lines().count() < 50, "{} lines of log", stderr.lines().count());
}

#[test]
fn a_state_directory_of_a_newer_version_is_left_alone() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    daemon.stop();
    let catalog = site.state().join("ckpt/catalog.sqlite3");
    // `user_version` is a big-endian number at byte 60 of the first page.
    let mut bytes = files::read(&catalog);
    bytes[60..64].copy_from_slice(&u32::MAX.to_be_bytes());
    files::write(&catalog, &bytes);
    let ran = run(&mut site.serve());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("newer"), "{}", ran.stderr);
    assert_eq!(files::read(&catalog)[60..64], u32::MAX.to_be_bytes());
}

#[test]
fn a_root_daemon_opens_its_socket_to_everybody_and_its_store_to_nobody() {
    if !user::is_root() {
        skip!("needs root to be root's daemon");
    }
    let site = site();
    let _daemon = site.start();
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&site.socket()), 0o666);
    assert_eq!(mode(site.state()), 0o700);
    assert_eq!(mode(&site.state().join("run/control.sock")), 0o600);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_daemons_end() {
    let site = site();
    let ws = site.workspace("project");
    let serve = site.serve();
    let mut limited = site.command("sh");
    limited
        .args(["-c", "ulimit -f 2000; exec \"$0\" \"$@\""])
        .arg(serve.get_program())
        .args(serve.get_args());
    let daemon = Daemon::start(&mut limited, &site.socket());
    daemon.checkpoint(&ws, "small");
    files::write(ws.join("big"), noise(4 << 20));
    let (code, text) = daemon.refused(&ask::checkpoint(&ws, "large"));
    assert_eq!(code, WsCkptErrorCode::IoError, "{text}");
    files::remove(ws.join("big"));
    daemon.checkpoint(&ws, "again");
    assert_eq!(daemon.ids(&ws), ["small", "again"]);
    site.check();
}
