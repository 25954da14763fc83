//! The client beside scripted sidecars: real processes, in the machine's time. Tests wait for what happens, never for time.

mod calls;
mod endings;
mod handshake;
mod starts;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cofferdam_protocol::pod::{Config, Initialized};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::SidecarParts;
use crate::host::core::Keeper;
use crate::host::core::testing::Fixture;

/// How long nothing that is waited for takes, on however busy a machine.
const EVER: Duration = Duration::from_secs(120);

/// What each script begins with. `DIR` is the test's directory.
const PRELUDE: &str = r#"#!/usr/bin/env python3
import json, os, signal, sys, time
DIR = os.path.dirname(os.path.abspath(__file__))
INITIALIZED = json.loads(open(DIR + "/initialized.json").read())

def note(name, text):
    with open(DIR + "/" + name, "a") as file:
        file.write(text + "\n")

def put(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

def say(value):
    put(json.dumps(value))

def answer(request, result):
    say({"id": request["id"], "result": result})

def refuse(request, code, message="m", data=None):
    say({"id": request["id"], "error": {"code": code, "message": message, "data": data}})

def event(**params):
    say({"method": "event", "params": params})

def requests():
    for line in sys.stdin:
        yield json.loads(line)

def initialize(**other):
    request = next(requests())
    note("initialize", json.dumps(request))
    answer(request, {**INITIALIZED, **other})

def health(request, initialized=True):
    answer(request, {"protocol": 1, "schemaVersion": 1, "coreVersion": "0.2.0", "pid": os.getpid(),
                     "initialized": initialized})

def deleted(request):
    answer(request, {"ok": True, "taskId": request["params"]["taskId"]})

def serve(**methods):
    "Answers what is named, and health, deletions and shutdown besides."
    for request in requests():
        method = request["method"].replace(".", "_")
        if method in methods:
            methods[method](request)
        elif method == "health":
            health(request)
        elif method == "task_delete":
            deleted(request)
        elif method == "shutdown":
            answer(request, {"ok": True})
            sys.exit(0)
    note("ended", "input")

START = 1
if os.path.exists(DIR + "/starts"):
    START += len(open(DIR + "/starts").readlines())
note("starts", str(time.monotonic_ns()))
"#;

/// A scripted sidecar in a directory of its own.
struct Script {
    dir: TempDir,
    parts: SidecarParts,
}

impl Script {
    fn new(body: &str) -> Self {
        let script = Self::missing();
        script.write(body);
        script
    }

    /// One that is not there yet.
    fn missing() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let initialized = Initialized {
            protocol: 1,
            core_version: "0.2.0".to_owned(),
            schema_version: 1,
            db_path: "/pod.db".to_owned(),
            config: Config::default(),
            tasks: Vec::new(),
            exports: Vec::new(),
            diagnostics: Vec::new(),
            truncated: false,
        };
        let initialized = serde_json::to_vec(&initialized).unwrap();
        std::fs::write(dir.path().join("initialized.json"), initialized).unwrap();
        let parts = SidecarParts { faster: 100, ..SidecarParts::new(dir.path().join("core")) };
        Self { dir, parts: SidecarParts { patience: EVER, ..parts } }
    }

    /// Through another process: one that this one starts meanwhile would have the file open for writing for an instant,
    /// and such a file is not executed.
    fn write(&self, body: &str) {
        let mut writer = Command::new("sh")
            .args(["-c", r#"cat > "$0.tmp" && chmod 755 "$0.tmp" && mv "$0.tmp" "$0""#])
            .arg(&self.parts.program)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // As if it stood at the beginning of the line.
        let body: Vec<_> = body.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).collect();
        let text = format!("{PRELUDE}\n{}\n", body.join("\n"));
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
    }

    fn patience(mut self, patience: Duration) -> Self {
        self.parts.patience = patience;
        self
    }

    fn start(&self) -> Fixture {
        Fixture::start("/pod.db".into(), Keeper::Sidecar(self.parts.clone()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The lines that the script has noted there.
    fn noted(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// A process, held, so that its number is nobody else's.
struct Watched(std::os::fd::OwnedFd);

impl Watched {
    fn new(pid: u32) -> Self {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        Self(pidfd_open(pid, PidfdFlags::empty()).unwrap())
    }

    /// Waits until it has ended.
    async fn ended(self) {
        let wait = move || {
            let limit = Timespec { tv_sec: EVER.as_secs() as i64, tv_nsec: 0 };
            poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit)).unwrap()
        };
        assert_eq!(spawn_blocking(wait).await.unwrap(), 1, "it still runs");
    }
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
