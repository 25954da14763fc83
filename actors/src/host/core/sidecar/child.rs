//! The sidecar's process: its pipes, and its end.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::session::process::{Permit, Processes};

/// How long it may take to end when it is asked to, before it is killed.
pub(super) const LINGER: Duration = Duration::from_secs(2);

/// A process that was started.
pub(super) struct Child {
    // Before the process, so that where all of it is dropped the process sees the end of its input first.
    pub(super) stdin: pipe::Sender,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
    pub(super) process: Process,
}

impl Child {
    /// Starts it, in a session of its own, so that no terminal reaches it. Blocks until the program runs; must be called
    /// within a runtime.
    pub(super) fn start(program: &Path, state_dir: Option<&Path>) -> io::Result<Self> {
        let mut command = Command::new(program);
        if let Some(state_dir) = state_dir {
            command.env("COFFERDAM_STATE_DIR", state_dir);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (permit, starter) = Processes::default().permit();
        let mut running = starter.start(command)?;
        let child = &mut running.child;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let pid = child.id();
        let (stdin, stdout, stderr) = (OwnedFd::from(stdin), OwnedFd::from(stdout), OwnedFd::from(stderr));
        let stdin = pipe::Sender::from_owned_fd(stdin)?;
        let stdout = pipe::Receiver::from_owned_fd(stdout)?;
        let stderr = pipe::Receiver::from_owned_fd(stderr)?;

        let (told, ended) = oneshot::channel();
        let (reaping, reaped) = mpsc::channel::<Infallible>();
        running.end_in_time_and(move |status| {
            // Nobody may want to know.
            let _ = told.send(match status {
                Ok(status) => format!("it has ended ({status})"),
                Err(error) => format!("it has ended, nobody knows how: {error}"),
            });
            drop(reaping);
        })?;
        let process = Process { pid, permit: Some(permit), ended, how: None, reaped };
        Ok(Self { stdin, stdout, stderr, process })
    }
}

/// A process that runs, or has ended.
pub(super) struct Process {
    pid: u32,
    /// Given up to kill it, and everything it has started.
    permit: Option<Permit>,
    ended: oneshot::Receiver<String>,
    how: Option<String>,
    /// Breaks when it has been reaped.
    reaped: mpsc::Receiver<Infallible>,
}

impl Process {
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has ended; says how.
    pub(super) async fn ended(&mut self) -> String {
        match &self.how {
            Some(how) => how.clone(),
            None => {
                let how = (&mut self.ended).await.unwrap_or_else(|_| "it has ended".to_owned());
                self.how.insert(how).clone()
            }
        }
    }

    /// Waits until it has ended, and kills it if that takes too long. Says how it has ended, and whether by itself.
    pub(super) async fn end_within(&mut self, patience: Duration) -> (String, bool) {
        match timeout(patience, self.ended()).await {
            Ok(how) => (how, true),
            Err(_) => {
                self.permit = None;
                (self.ended().await, false)
            }
        }
    }
}

impl Drop for Process {
    /// Returns at once but where the runtime ends, and with it the task that would have waited. The process is not left
    /// behind then: its thread waits here until it is gone.
    fn drop(&mut self) {
        if self.reaped.recv_timeout(LINGER) == Err(RecvTimeoutError::Timeout) {
            self.permit = None;
            // One that cannot be killed is not waited for.
            let _ = self.reaped.recv_timeout(LINGER);
        }
    }
}
