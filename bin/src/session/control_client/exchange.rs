//! One run of the program: the request into it, what it prints out of it, until it has ended or its time is up.
//!
//! One thread waits for everything at once, and no read or write of it blocks. So nobody is stranded, whoever else holds
//! the other ends of the pipes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use cofferdam_protocol::session::limits;
use cofferdam_storage::sys::in_new_session;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::error::TransportError;
use super::leader::{Leader, pause, wait_for};
use crate::deadline::Deadline;

/// The most of what the program says to people.
const STDERR: usize = 256 << 10;
/// How often a program is tried that somebody has open for writing, as while it is being installed.
const BUSY_TRIES: u32 = 50;
/// How long after one try the next follows.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// What a program has printed.
#[derive(Debug)]
pub(super) struct Printed {
    /// The answer.
    pub(super) stdout: Vec<u8>,
    /// What it said to people.
    pub(super) stderr: Vec<u8>,
}

/// Runs a command for one request. However this ends, the program and its group have ended, too.
pub(super) fn run(command: Command, request: &[u8], deadline: &Deadline) -> Result<Printed, TransportError> {
    let mut run = Run::start(command, request, deadline)?;
    loop {
        if run.wait(deadline)? {
            return run.finish();
        }
        run.write()?;
        run.stdout.read()?;
        run.stderr.read()?;
    }
}

/// A running program. What is dropped first is what it reads from, so that it sees the end before it is asked to end.
struct Run<'a> {
    /// Where the request goes, and what of it is still to be written; none once all is.
    stdin: Option<(OwnedFd, &'a [u8])>,
    leader: Leader,
    stdout: Stream,
    stderr: Stream,
}

impl<'a> Run<'a> {
    fn start(mut command: Command, request: &'a [u8], deadline: &Deadline) -> Result<Self, TransportError> {
        let program = PathBuf::from(command.get_program());
        let failed = |source| TransportError::Run { program: program.clone(), source };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        in_new_session(&mut command);
        let mut tries = 1;
        let mut child = loop {
            remaining(deadline)?;
            match command.spawn() {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                    tries += 1;
                    pause(BUSY_PAUSE);
                }
                spawned => break spawned.map_err(failed)?,
            }
        };
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let leader = Leader::new(child).map_err(TransportError::Watch)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        // An end of a pipe is an open file of its own: the program's ends stay as they are.
        let ours = |end: OwnedFd| match rustix::io::ioctl_fionbio(&end, true) {
            Ok(()) => Ok(end),
            Err(error) => Err(TransportError::Watch(error.into())),
        };
        Ok(Self {
            stdin: Some((ours(stdin.into())?, request)),
            leader,
            stdout: Stream::new("stdout", limits::RESPONSE, ours(stdout.into())?),
            stderr: Stream::new("stderr", STDERR, ours(stderr.into())?),
        })
    }

    /// Waits until there is something to do; says whether the program has ended.
    fn wait(&self, deadline: &Deadline) -> Result<bool, TransportError> {
        let mut ready = vec![PollFd::from_borrowed_fd(self.leader.ended(), PollFlags::IN)];
        ready.extend(self.stdin.iter().map(|(pipe, _)| PollFd::new(pipe, PollFlags::OUT)));
        let outputs = [&self.stdout, &self.stderr].into_iter().filter_map(|stream| stream.pipe.as_ref());
        ready.extend(outputs.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        wait_for(&mut ready, remaining(deadline)?).map_err(TransportError::Watch)?;
        Ok(!ready[0].revents().is_empty())
    }

    /// Writes what can be written now.
    fn write(&mut self) -> Result<(), TransportError> {
        let Some((pipe, rest)) = &mut self.stdin else { return Ok(()) };
        while !rest.is_empty() {
            match rustix::io::write(&*pipe, rest) {
                Ok(0) => return Err(TransportError::Write(io::ErrorKind::WriteZero.into())),
                Ok(written) => *rest = &rest[written..],
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(TransportError::Write(error.into())),
            }
        }
        // The end of the request is what the program waits for.
        self.stdin = None;
        Ok(())
    }

    /// What a program that has ended leaves: the answer, and nothing else.
    fn finish(mut self) -> Result<Printed, TransportError> {
        self.leader.reap();
        // What can be read now is all there is; who still holds the other end is not waited for.
        self.stdout.read()?;
        self.stderr.read()?;
        match self.stdin {
            None => Ok(Printed { stdout: self.stdout.bytes, stderr: self.stderr.bytes }),
            Some(_) => Err(TransportError::NotConsumed),
        }
    }
}

/// One of the program's outputs.
struct Stream {
    name: &'static str,
    /// How many bytes it may have.
    max: usize,
    /// None once it has ended.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl Stream {
    fn new(name: &'static str, max: usize, pipe: impl Into<OwnedFd>) -> Self {
        Self { name, max, pipe: Some(pipe.into()), bytes: Vec::new() }
    }

    /// Reads what can be read now.
    fn read(&mut self) -> Result<(), TransportError> {
        let mut buffer = [0; 16 << 10];
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe.as_fd(), &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) if self.bytes.len() + read > self.max => {
                    return Err(TransportError::TooMuch { stream: self.name, max: self.max });
                }
                Ok(read) => self.bytes.extend_from_slice(&buffer[..read]),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(TransportError::Read { stream: self.name, source: error.into() }),
            }
        }
        Ok(())
    }
}

/// What is left of the time; the error of none.
fn remaining(deadline: &Deadline) -> Result<Option<Duration>, TransportError> {
    deadline.remaining().map_err(|_| TransportError::TimedOut(deadline.limit().unwrap_or_default()))
}
