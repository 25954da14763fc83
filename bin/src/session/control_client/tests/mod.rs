//! The client against programs that play `cosh-core`: shell scripts, each in a directory of its own.

mod answers;
mod clearing;
mod endings;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cofferdam_protocol::session::{ListRequest, SessionId, Summary};
use cofferdam_storage::clock::{Clock, SystemClock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::*;

const ID: &str = "2d711642-b726-4b04-8d2a-8a0470f4ed24";

/// What every script can use. `take` keeps the request, `answer` prints one. `escape` starts a process that leaves the
/// group and holds on to what it inherits.
const PRELUDE: &str = r#"
    [ "$#" = 1 ] && [ "$1" = --session-control ] || exit 99
    taken=$(ls | grep -c '^request')
    take() { cat > "request.$taken"; }
    answer() { printf '%s\n' "$1"; }
    escape() {
        # What runs in the background gets another input unless it is given this one.
        exec 3<&0
        setsid sh -c 'echo $$ > escaped; exec sleep 60' <&3 &
        until [ -s escaped ]; do sleep 0.01; done
    }
"#;

/// A program that plays `cosh-core`, and the directory in which it runs.
struct Core {
    dir: tempfile::TempDir,
}

impl Core {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("core");
        let script = format!("#!/bin/sh\ncd '{}' || exit 98\n{PRELUDE}\n{script}\n", dir.path().display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    /// One that takes a request and prints this.
    fn answering(text: &str) -> Self {
        Self::new(&format!("take; answer '{text}'"))
    }

    fn client(&self) -> SessionControlClient {
        SessionControlClient::new(self.dir.path().join("core"))
    }

    /// A client whose calls may take that long.
    fn hurried(&self, ms: u64) -> SessionControlClient {
        self.client().with_timeout(Duration::from_millis(ms))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What it was asked, in order.
    fn requests(&self) -> Vec<String> {
        (0..).map_while(|at| std::fs::read_to_string(self.path(&format!("request.{at}"))).ok()).collect()
    }

    fn request(&self) -> Value {
        let requests = self.requests();
        assert_eq!(requests.len(), 1);
        serde_json::from_str(&requests[0]).unwrap()
    }

    /// The process that has left the group.
    fn escaped(&self) -> Option<Pid> {
        let text = std::fs::read_to_string(self.path("escaped")).ok()?;
        Pid::from_raw(text.trim().parse().unwrap())
    }

    /// Its processes that run, but for the one that has left the group.
    fn running(&self) -> Vec<String> {
        let is_ours = |process: &Path| {
            let dir = self.dir.path();
            let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let runs_it = String::from_utf8_lossy(&command).contains(dir.to_str().unwrap());
            runs_it || std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == dir)
        };
        let escaped = self.escaped().map(|pid| pid.as_raw_nonzero().to_string());
        std::fs::read_dir("/proc")
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| is_ours(&entry.path()))
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|pid| Some(pid) != escaped.as_ref())
            .collect()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(escaped) = self.escaped() {
            let _ = kill_process(escaped, Signal::KILL);
        }
    }
}

/// The text of an error that the client itself has made.
#[track_caller]
fn transport<T: std::fmt::Debug>(result: Result<T, ClientError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code, ClientError::TRANSPORT, "{error}");
    assert!(error.hint.unwrap().contains("try again"));
    error.message
}

/// How long a call takes, and what it gives.
fn timed<T>(call: impl FnOnce() -> T) -> (Duration, T) {
    let clock = SystemClock::new();
    let result = call();
    (clock.monotonic(), result)
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("00000000-0000-4000-8000-{at:012}")).collect()
}

fn protected(count: usize) -> Vec<SessionId> {
    ids(count).into_iter().map(|id| SessionId::new(id).unwrap()).collect()
}
