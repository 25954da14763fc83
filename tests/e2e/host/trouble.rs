//! A daemon whose core cannot have its database, and listeners that hear nothing.

use std::io::Write;

use cofferdam_protocol::host::CoreStatus;
use cofferdam_tests::files;
use cofferdam_tests::host::{Core, HostSite};
use cofferdam_tests::program::LineProgram;

use super::{site, with_either_core};

with_either_core! {
    a_daemon_whose_database_is_damaged_says_so_leaves_it_and_serves_everything_else
    a_daemon_whose_database_is_held_by_another_waits_until_it_is_free
    a_listener_that_reads_nothing_does_not_hold_up_the_end
    nothing_that_lets_somebody_in_is_on_a_disk
}

/// Fails unless checkpoints are served, and tasks refused with the reason.
#[track_caller]
fn serves_without_tasks(site: &HostSite) {
    let workspace = site.site().workspace("ws");
    let ran = site.run(&["ckpt", "checkpoint", "-w", workspace.to_str().unwrap(), "-i", "one"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let refused = site.run(&["task", "run", "say hello", "--preset", "fake"]);
    assert!(refused.code == 1 && refused.stderr.contains("DB_ERROR"), "{refused:?}");
}

fn a_daemon_whose_database_is_damaged_says_so_leaves_it_and_serves_everything_else(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    site.ok(&["task", "run", "say hello", "--wait"]);
    daemon.stop();
    let database = site.path("state/pod/pod.db");
    let whole = files::read(&database);
    let damaged = [b"not a database at all", &whole[21..]].concat();
    files::write(&database, &damaged);
    let daemon = site.start_at_once();
    let state = site.until_core(|core| core.status == CoreStatus::Down);
    assert!(state.message.contains("pod.db"), "{state:?}");
    serves_without_tasks(&site);
    assert_eq!(daemon.stop().0, 0);
    assert_eq!(files::read(&database), damaged, "it is left as it was");
    // Whoever has a good one puts it back.
    files::write(&database, &whole);
    let _daemon = site.start();
    assert_eq!(site.json(&["task", "list"])[0]["lastText"], "hello");
}

fn a_daemon_whose_database_is_held_by_another_waits_until_it_is_free(core: Core) {
    let site = site(core).scaled(100);
    let daemon = site.start_with(&[]);
    daemon.stop();
    let database = site.path("state/pod/pod.db");
    let mut holder = site.site().command(env!("CARGO_BIN_EXE_isolation-pod-core"));
    let mut holder = LineProgram::spawn(&mut holder, "isolation-pod-core");
    let path = database.display();
    holder.send_line(format!(
        r#"{{"id":"1","method":"initialize","params":{{"protocol":1,"dbPath":"{path}"}}}}"#
    ));
    assert!(holder.next_line().unwrap().starts_with(br#"{"id":"1","result""#));
    let daemon = site.start_at_once();
    let state = site.until_core(|core| core.status == CoreStatus::Down);
    assert!(state.message.contains("in use") || state.message.contains("lock"), "{state:?}");
    serves_without_tasks(&site);
    holder.end();
    holder.wait();
    site.until_core(|core| core.status == CoreStatus::Ready);
    assert_eq!(site.run(&["task", "run", "say hello", "--wait"]).stdout, "hello\n");
    assert_eq!(daemon.stop().0, 0);
}

fn a_listener_that_reads_nothing_does_not_hold_up_the_end(core: Core) {
    let site = site(core);
    let daemon = site.start_with(&[]);
    let mut silent = site.control();
    write!(silent, "GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let said = format!("say {}\n", "x".repeat(3000)).repeat(10);
    // More than fits on the way to it.
    for _ in 0..25 {
        site.ok(&["task", "run", &said, "--wait"]);
    }
    assert_eq!(daemon.stop().0, 0);
}

fn nothing_that_lets_somebody_in_is_on_a_disk(core: Core) {
    let site = site(core).with_http();
    let daemon = site.start_with(&[]);
    let page = super::http::Page::open(&daemon);
    page.ok("startTask", &serde_json::json!({"description": "say hello"}));
    site.ok(&["task", "run", "say hello", "--wait"]);
    let secrets = page.secrets();
    let (code, log) = daemon.stop();
    assert_eq!(code, 0);
    for secret in &secrets {
        assert!(secret.len() >= 16 && !log.contains(secret), "{secret} is in the log");
        nowhere(&site.path(""), secret);
    }
}

/// Fails if a file below a directory has that text in it.
#[track_caller]
fn nowhere(dir: &std::path::Path, text: &str) {
    for name in files::names(dir) {
        let path = dir.join(name);
        let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            nowhere(&path, text);
        } else if kind.is_file() {
            let content = files::read(&path);
            let has = content.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!has, "{} has a secret in it", path.display());
        }
    }
}
