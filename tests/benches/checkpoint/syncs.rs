//! How often a process makes something durable, counted by strace.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Counts from now on; `None` where there is no strace.
pub(crate) struct Syncs(Child);

impl Syncs {
    pub(crate) fn count(pid: u32) -> Option<Self> {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=fsync,fdatasync,syncfs,sync_file_range", "-p", &pid.to_string()]);
        let mut strace = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        // It says so when it has attached to every thread there is.
        let mut said = BufReader::new(strace.stderr.take()?);
        let mut line = String::new();
        while !line.contains("attached") {
            line.clear();
            if said.read_line(&mut line).unwrap() == 0 {
                return None;
            }
        }
        strace.stderr = Some(said.into_inner());
        Some(Self(strace))
    }

    /// How many there were.
    pub(crate) fn stop(self) -> usize {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT).unwrap();
        let said = self.0.wait_with_output().unwrap().stderr;
        String::from_utf8_lossy(&said)
            .lines()
            .filter(|line| line.contains("sync") && line.contains("("))
            .count()
    }
}
