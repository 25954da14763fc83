//! Verbs against a socket on which the test plays the daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use clap::Parser;
use cofferdam_protocol::ckpt::*;

use super::*;
use crate::terminal::testing::{Input, terminal};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

/// A daemon that answers by rule and remembers what it was asked.
struct Fake {
    dir: tempfile::TempDir,
    asked: Arc<Mutex<Vec<WsCkptRequest>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    fn new(rule: impl Fn(&WsCkptRequest) -> WsCkptResponse + Send + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("ckpt.sock")).unwrap();
        let (asked, over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let thread = std::thread::spawn({
            let (asked, over) = (asked.clone(), over.clone());
            move || {
                for stream in listener.incoming() {
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                    let mut stream = stream.unwrap();
                    // The advisory's client may be gone before it is answered.
                    if let Ok(Some(request)) = read_message(&mut stream) {
                        let _ = write_message(&mut stream, &rule(&request));
                        asked.lock().unwrap().push(request);
                    }
                }
            }
        });
        Self { dir, asked, over, thread: Some(thread) }
    }

    /// Runs a verb with this to read.
    fn run_with(&self, line: &[&str], input: Input) -> Ran {
        let socket = self.dir.path().join("ckpt.sock");
        let first = ["client", "--socket", socket.to_str().unwrap()];
        let words = first.iter().chain(line);
        let line = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
        let (terminal, out, err) = terminal(input);
        let invocation = Invocation::new("ws-ckpt", &line.connection, Environment::default(), terminal);
        let code = run_in(invocation, &line.verb);
        Ran { code, out: out.text(), err: err.text() }
    }

    fn run(&self, line: &[&str]) -> Ran {
        self.run_with(line, Input::Piped(""))
    }

    /// The requests so far, without those by which a client finds its way and warns.
    fn asked(&self) -> Vec<WsCkptRequest> {
        let aside = |request: &WsCkptRequest| {
            matches!(request, WsCkptRequest::Config | WsCkptRequest::HealthAdvisory)
        };
        self.asked.lock().unwrap().iter().filter(|request| !aside(request)).cloned().collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(self.dir.path().join("ckpt.sock"));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Ran {
    code: u8,
    out: String,
    err: String,
}

fn ran(code: u8, out: &str, err: &str) -> Ran {
    Ran { code, out: out.to_owned(), err: err.to_owned() }
}

fn refuse(code: WsCkptErrorCode, message: &str) -> WsCkptResponse {
    WsCkptResponse::Error { code, message: message.to_owned() }
}

/// A daemon that refuses everything in the same way.
fn refusing(code: WsCkptErrorCode, message: &'static str) -> Fake {
    Fake::new(move |_| refuse(code, message))
}

#[test]
fn successes_are_told_in_the_words_of_the_existing_program() {
    use WsCkptResponse as A;
    let daemon = Fake::new(|request| match request {
        WsCkptRequest::Init { .. } => A::InitOk { ws_id: "ws-6d5aaa".into() },
        WsCkptRequest::Checkpoint { id, .. } => A::CheckpointOk { snapshot_id: id.clone() },
        WsCkptRequest::Rollback { to, .. } => A::RollbackOk { from: "ws-6d5aaa".into(), to: to.clone() },
        WsCkptRequest::Delete { snapshot, .. } => A::DeleteOk { target: snapshot.clone() },
        WsCkptRequest::Cleanup { keep: Some(0), .. } => {
            A::CleanupOk { removed: vec!["a".into(), "b".into()] }
        }
        WsCkptRequest::Cleanup { .. } => A::CleanupOk { removed: vec![] },
        WsCkptRequest::ReloadConfig => A::ReloadConfigOk,
        WsCkptRequest::Recover { .. } => A::RecoverOk { workspace: "/p".into() },
        WsCkptRequest::Diff { .. } => A::DiffOk { changes: vec![] },
        WsCkptRequest::List { .. } => A::ListOk { snapshots: vec![] },
        _ => refuse(WsCkptErrorCode::InternalError, "not now"),
    });
    for (line, out) in [
        (&["init", "-w", "/p"][..], "✓ Workspace initialized: ws-6d5aaa\n"),
        (&["checkpoint", "-w", "/p", "-i", "one"], "Checkpoint created: one\n"),
        (&["rollback", "-w", "/p", "-s", "one"], "Rolled back workspace ws-6d5aaa to snapshot: one\n"),
        (&["delete", "-s", "one"], "Deleted: one\n"),
        (&["cleanup", "-w", "/p"], "No snapshots needed cleanup.\n"),
        (&["cleanup", "-w", "/p", "--keep", "0"], "Removed 2 snapshot(s):\n  a\n  b\n"),
        (&["reload"], "Daemon reloaded configuration\n"),
        (&["recover", "-w", "/p", "--force"], "Recovered: /p\n"),
        (&["diff", "-w", "/p", "-f", "a", "-t", "b"], "No differences found.\n"),
        (&["list"], "No snapshots found.\n"),
        (&["list", "--format", "json"], "[]\n"),
        (&["diff", "-w", "/p", "-f", "a", "-t", "b", "--format", "json"], "[]\n"),
    ] {
        assert_eq!(daemon.run(line), ran(0, out, ""), "{line:?}");
    }
}

#[test]
fn a_format_that_does_not_exist_is_a_table_with_a_word_about_it() {
    let daemon = Fake::new(|_| WsCkptResponse::ListOk { snapshots: vec![] });
    let told = "Warning: no format is called ya\\u{1b}ml; this is a table\n";
    let ran_with = |format| daemon.run(&["list", "--format", format]);
    assert_eq!(ran_with("ya\u{1b}ml"), ran(0, "No snapshots found.\n", told));
    assert_eq!(ran_with("Table"), ran(0, "No snapshots found.\n", ""));
    assert_eq!(ran_with("JSON"), ran(0, "[]\n", ""));
}

#[test]
fn flags_become_the_fields_of_the_request() {
    let daemon = refusing(WsCkptErrorCode::InternalError, "enough");
    let here = std::env::current_dir().unwrap().to_str().unwrap().to_owned();
    daemon.run(&["checkpoint", "-w", ".", "--id=-x", "-m", "why", "--metadata", "{}", "--pin"]);
    daemon.run(&["delete", "-w", "ws-6d5aaa", "-s", "a", "--force"]);
    daemon.run(&["cleanup", "-w", "/p"]);
    daemon.run(&["status", "-w", "a/b"]);
    let expected = [
        WsCkptRequest::Checkpoint {
            workspace: here.clone(),
            id: "-x".into(),
            message: Some("why".into()),
            metadata: Some("{}".into()),
            pin: true,
        },
        WsCkptRequest::Delete { workspace: Some("ws-6d5aaa".into()), snapshot: "a".into(), force: true },
        WsCkptRequest::Cleanup { workspace: "/p".into(), keep: Some(20) },
        WsCkptRequest::Status { workspace: Some(format!("{here}/a/b")) },
    ];
    assert_eq!(daemon.asked(), expected);
}

#[test]
fn a_skipped_checkpoint_is_no_failure_and_says_so_beside_the_result() {
    let daemon = Fake::new(|_| WsCkptResponse::CheckpointSkipped {
        reason: "Empty workspace, no snapshot created.".into(),
    });
    let expected = ran(0, "", "Skipped: Empty workspace, no snapshot created.\n");
    assert_eq!(daemon.run(&["checkpoint", "-w", "/p", "-i", "a"]), expected);
}

#[test]
fn an_error_is_its_code_and_message_or_the_message_and_what_to_do() {
    use WsCkptErrorCode as Code;
    let checkpoint = &["checkpoint", "-w", "/p", "-i", "a"][..];
    for (code, message, line, expected) in [
        (Code::InternalError, "oh no", checkpoint, "Error [InternalError]: oh no\n"),
        (Code::WriteLockConflict, "busy", checkpoint, "Error [WriteLockConflict]: busy\n"),
        (
            Code::SnapshotAlreadyExists,
            "snapshot id 'a' already exists in workspace",
            checkpoint,
            "snapshot id 'a' already exists in workspace\n\
             Hint: choose another id, or remove that one: ws-ckpt delete -w <workspace> -s <id>\n",
        ),
        (
            Code::SnapshotNotFound,
            "snapshot not found: a",
            &["rollback", "-w", "/p", "-s", "a"],
            "snapshot not found: a\nHint: see which snapshots there are: ws-ckpt list -w <workspace>\n",
        ),
        (
            Code::WorkspaceNotFound,
            "workspace not found: /p",
            &["status", "-w", "/p"],
            "Error [WorkspaceNotFound]: workspace not found: /p\n",
        ),
    ] {
        assert_eq!(refusing(code, message).run(line), ran(1, "", expected), "{code}");
    }
    let full = refusing(Code::DiskSpaceInsufficient, "no space left").run(checkpoint);
    assert!(full.err.contains("insufficient"), "{full:?}");
}

#[test]
fn without_a_daemon_a_verb_fails_and_says_how_to_start_one() {
    let daemon = refusing(WsCkptErrorCode::InternalError, "");
    std::fs::write(daemon.dir.path().join("elsewhere"), "").unwrap();
    let elsewhere = daemon.dir.path().join("none.sock");
    let line = Line::try_parse_from(["client", "list", "--socket", elsewhere.to_str().unwrap()]);
    let Line { connection, verb } = line.unwrap_or_else(|error| panic!("{error}"));
    let (terminal, out, err) = terminal(Input::Piped(""));
    let invocation = Invocation::new("ws-ckpt", &connection, Environment::default(), terminal);
    assert_eq!(run_in(invocation, &verb), 1);
    assert_eq!(out.text(), "");
    assert!(err.text().contains("none.sock") && err.text().contains("cofferdam serve"), "{}", err.text());
}

/// A daemon in which one pinned snapshot is deleted only by force.
fn with_pinned() -> Fake {
    Fake::new(|request| match request {
        WsCkptRequest::Delete { force: true, .. } => WsCkptResponse::DeleteOk { target: "one".into() },
        _ => refuse(
            WsCkptErrorCode::ConfirmationRequired,
            "Snapshot is pinned, use --force to confirm deletion",
        ),
    })
}

#[test]
fn a_pinned_snapshot_is_deleted_after_a_yes_and_kept_after_anything_else() {
    let question = "Snapshot 'one' is pinned. Delete it anyway? [y/N] ";
    let line = &["delete", "-s", "one"];
    assert_eq!(with_pinned().run_with(line, Input::Typed("y\n")), ran(0, "Deleted: one\n", question));
    let declined = ran(0, "", &format!("{question}Kept.\n"));
    assert_eq!(with_pinned().run_with(line, Input::Typed("\n")), declined);
    let refusal = "Error [ConfirmationRequired]: Snapshot is pinned, use --force to confirm deletion\n";
    let nobody = ran(1, "", &format!("{question}\n{refusal}"));
    assert_eq!(with_pinned().run(line), nobody);
}

/// A daemon of three workspaces, the second of which cannot be recovered.
fn with_workspaces() -> Fake {
    Fake::new(|request| match request {
        WsCkptRequest::Status { .. } => {
            let workspaces = ["/a", "/b", "/c"].map(|path| WorkspaceInfo {
                ws_id: path.replace('/', "ws-"),
                path: path.to_owned(),
                snapshot_count: 1,
            });
            let report = StatusReport {
                uptime_secs: 0,
                workspaces: workspaces.to_vec(),
                fs_total_bytes: 0,
                fs_used_bytes: 0,
            };
            WsCkptResponse::StatusOk { report }
        }
        WsCkptRequest::Recover { workspace } if workspace != "ws-b" => {
            WsCkptResponse::RecoverOk { workspace: workspace.replace("ws-", "/") }
        }
        _ => refuse(WsCkptErrorCode::IoError, "the disk is sulking"),
    })
}

#[test]
fn recovering_all_does_what_it_can_and_does_not_call_the_rest_a_success() {
    let daemon = with_workspaces();
    let expected = ran(
        1,
        "Recovered: /a\nRecovered: /c\n",
        "Not recovered: /b: the disk is sulking\n1 of 3 workspace(s) were not recovered\n",
    );
    assert_eq!(daemon.run(&["recover", "--all", "--force"]), expected);
}

#[test]
fn recover_asks_first_and_does_nothing_where_nobody_answers() {
    for line in [&["recover", "--all"][..], &["recover", "-w", "/a"]] {
        let daemon = with_workspaces();
        let nobody = daemon.run(line);
        assert!(nobody.code == 1 && nobody.err.contains("--force"), "{nobody:?}");
        let declined = daemon.run_with(line, Input::Typed("no\n"));
        assert!(declined.code == 0 && declined.err.ends_with("Nothing was done.\n"), "{declined:?}");
        let recovered = |request: &WsCkptRequest| matches!(request, WsCkptRequest::Recover { .. });
        assert!(!daemon.asked().iter().any(recovered));
    }
}

#[test]
fn a_filling_disk_is_mentioned_after_a_success_and_not_after_a_failure() {
    let rule = |request: &WsCkptRequest| match request {
        WsCkptRequest::HealthAdvisory => WsCkptResponse::HealthAdvisoryOk {
            over_limit_workspace_count: 0,
            fs_total_bytes: 100,
            fs_used_bytes: 95,
        },
        WsCkptRequest::List { .. } => WsCkptResponse::ListOk { snapshots: vec![] },
        _ => refuse(WsCkptErrorCode::InternalError, "no"),
    };
    let expected = "Warning: the filesystem that holds the snapshots is 95% full\n";
    let daemon = Fake::new(rule);
    // The daemon here is a thread that may not get its 30 ms on a busy machine.
    let listed = (0..100).map(|_| daemon.run(&["list"])).find(|ran| !ran.err.is_empty());
    assert_eq!(listed, Some(ran(0, "No snapshots found.\n", expected)));
    assert_eq!(daemon.run(&["reload"]), ran(1, "", "Error [InternalError]: no\n"));
}

/// What rolling back to `one` prints where the control API says `last` of the newest rollback.
fn rolled_back_with(last: &serde_json::Value) -> Ran {
    let state = tempfile::tempdir().unwrap();
    std::fs::create_dir(state.path().join("run")).unwrap();
    let control = UnixListener::bind(state.path().join("run/control.sock")).unwrap();
    let last = last.to_string();
    let control = std::thread::spawn(move || {
        let mut stream = BufReader::new(control.accept().unwrap().0);
        let asked = stream.by_ref().lines().map(|line| line.unwrap()).take_while(|line| !line.is_empty());
        let asked: Vec<String> = asked.collect();
        write!(stream.get_mut(), "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{last}", last.len()).unwrap();
        asked.into_iter().next().unwrap()
    });
    let config = ConfigReport {
        mount_path: state.path().to_str().unwrap().to_owned(),
        socket_path: String::new(),
        log_level: String::new(),
        auto_cleanup: false,
        auto_cleanup_keep: CleanupRetention::Count(20),
        auto_cleanup_interval_secs: 0,
        health_check_interval_secs: 0,
        img_size: 0,
        img_max_percent: 0.0,
    };
    let daemon = Fake::new(move |request| match request {
        WsCkptRequest::Rollback { .. } => {
            WsCkptResponse::RollbackOk { from: "ws-6d5aaa".into(), to: "one".into() }
        }
        WsCkptRequest::Config => WsCkptResponse::ConfigOk { config: config.clone() },
        _ => refuse(WsCkptErrorCode::InternalError, "no"),
    });
    let ran = daemon.run(&["rollback", "-w", "/p", "-s", "o"]);
    // So that a control API that was not asked fails the test instead of hanging it.
    let _ = UnixStream::connect(state.path().join("run/control.sock"));
    let path = "/api/v1/ckpt/workspaces/ws%2D6d5aaa/last-rollback";
    assert_eq!(control.join().unwrap(), format!("GET {path} HTTP/1.1"));
    ran
}

#[test]
fn a_rollback_says_beside_its_result_what_it_changed_and_what_to_know() {
    let warning = |path: &str| serde_json::json!({"path": path, "kind": "late-write", "text": "was late"});
    let mut last = serde_json::json!({
        "snapshot": "one", "changed": 4, "warnings": [warning("a\u{1b}b")], "omitted": 0
    });
    let out = "Rolled back workspace ws-6d5aaa to snapshot: one\n";
    let err = "4 path(s) changed\nWarning: a\\u{1b}b: was late\n";
    assert_eq!(rolled_back_with(&last), ran(0, out, err));

    last["warnings"] = (0..12).map(|_| warning("x")).collect();
    last["omitted"] = 3.into();
    let told = rolled_back_with(&last).err;
    assert_eq!(told.matches("x: was late").count(), 10);
    assert!(told.ends_with("Warning: and 5 more\n"), "{told}");

    // An undo has come since.
    last["snapshot"] = serde_json::Value::Null;
    assert_eq!(rolled_back_with(&last), ran(0, out, ""));
}

#[test]
fn a_bad_value_is_refused_before_the_configuration_file_is_touched() {
    let daemon = Fake::new(|_| WsCkptResponse::ReloadConfigOk);
    let file = daemon.dir.path().join("config.toml");
    std::fs::write(&file, "# mine\nauto_cleanup = true\n").unwrap();
    let config = file.to_str().unwrap();
    let refused = daemon.run(&["config", "--config", config, "--img-max-percent", "200"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\nauto_cleanup = true\n");
    assert_eq!(daemon.asked(), []);

    let changed = daemon.run(&["config", "--config", config, "--disable-auto-cleanup"]);
    let expected = format!("Configuration written: {config}\nDaemon reloaded configuration\n");
    assert_eq!(changed, ran(0, &expected, ""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\nauto_cleanup = false\n");
    assert_eq!(daemon.asked(), [WsCkptRequest::ReloadConfig]);
}
