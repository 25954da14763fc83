//! A built program that is spoken with over its standard input and output, line by line.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::PidfdFlags;

use crate::process::end;
use crate::wire::PATIENCE;

/// A program that runs. Killed when dropped.
#[derive(Debug)]
pub struct LineProgram {
    /// What a failing test calls it.
    name: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    /// Until somebody listens.
    stdout: Option<ChildStdout>,
    lines: Option<Receiver<Vec<u8>>>,
    stderr: Option<JoinHandle<String>>,
}

impl LineProgram {
    /// Starts a program whose output is read from now on.
    #[track_caller]
    pub fn spawn(command: &mut Command, name: &'static str) -> Self {
        let mut program = Self::spawn_unheard(command, name);
        program.listen();
        program
    }

    /// Starts a program whose output nobody reads before [`LineProgram::listen`].
    #[track_caller]
    pub fn spawn_unheard(command: &mut Command, name: &'static str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Self { name, child, stdin, stdout, lines: None, stderr: Some(stderr) }
    }

    /// Reads its output from now on.
    pub fn listen(&mut self) {
        let mut output = BufReader::new(self.stdout.take().unwrap());
        let (lines, received) = channel();
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match output.read_until(b'\n', &mut line) {
                    // The test may have lost interest.
                    Ok(read) if read > 0 => drop(lines.send(line)),
                    _ => return,
                }
            }
        });
        self.lines = Some(received);
    }

    /// Closes the other end of its output, of which nothing was read.
    pub fn hang_up(&mut self) {
        drop(self.stdout.take().unwrap());
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes and a newline.
    pub fn send_line(&mut self, line: impl AsRef<[u8]>) {
        self.send_bytes([line.as_ref(), b"\n"].concat());
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdin.as_mut().unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// The other end of its input, for a thread that writes without reading.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    /// Says that nothing more will be sent.
    pub fn end(&mut self) {
        drop(self.stdin.take());
    }

    /// The next line it prints, with its newline; `None` if its output has ended.
    #[track_caller]
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        match self.lines.as_ref().unwrap().recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => panic!("{} says nothing", self.name),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    /// Whether it has ended within `time` from now.
    pub fn ends_within(&self, time: Duration) -> bool {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let process = rustix::process::pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let time = Timespec::try_from(time).unwrap();
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&time)).unwrap() == 1
    }

    /// Waits until it has ended; returns its exit code (negative: a signal) and what it logged to stderr.
    #[track_caller]
    pub fn wait(&mut self) -> (i32, String) {
        assert!(self.ends_within(PATIENCE), "{} does not end", self.name);
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().map(|reader| reader.join().unwrap()).unwrap_or_default();
        (status.code().or(status.signal().map(|signal| -signal)).unwrap(), stderr)
    }
}

impl Drop for LineProgram {
    fn drop(&mut self) {
        end(&mut self.child, self.stderr.take(), self.name);
    }
}
