//! Standard input and output, unbuffered. They may be shared with other processes, so whether they block is not ours to
//! change: where somebody has made them non-blocking, waiting is done here.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A descriptor that the process was started with.
pub(crate) struct Inherited<F>(pub(crate) F);

impl<F: AsFd> Read for Inherited<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.0, &mut *bytes).map_err(io::Error::from) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.0, PollFlags::IN, None)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => return read,
            };
        }
    }
}

impl<F: AsFd> Write for Inherited<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.0, bytes).map_err(io::Error::from) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.0, PollFlags::OUT, None)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                written => return written,
            };
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: AsFd> Inherited<F> {
    /// Writes what can be written without waiting for a reader, and forgets the rest.
    pub(crate) fn offer(&self, bytes: &[u8]) {
        // A pipe that takes anything takes this much in one piece.
        const PIPE_BUF: usize = 4096;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        for piece in bytes.chunks(PIPE_BUF) {
            let writable = wait(&self.0, PollFlags::OUT, Some(&now)).unwrap_or(false);
            if !writable || rustix::io::write(&self.0, piece).is_err() {
                return;
            }
        }
    }
}

/// Waits until a descriptor is ready, or in trouble, which the next call on it reports. Says whether it is ready yet.
pub(crate) fn wait(fd: impl AsFd, what: PollFlags, limit: Option<&Timespec>) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(&fd, what)], limit) {
            Err(rustix::io::Errno::INTR) => continue,
            ready => return Ok(ready? > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn a_descriptor_that_somebody_made_non_blocking_is_waited_for() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let sent = vec![7; 1 << 20];
        let expected = sent.clone();
        let writing = thread::spawn(move || Inherited(writer).write_all(&sent).unwrap());
        let mut got = Vec::new();
        Inherited(reader).read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        assert_eq!(got, expected);
    }

    #[test]
    fn what_nobody_reads_is_offered_without_waiting() {
        let (reader, writer) = pipe_with(PipeFlags::empty()).unwrap();
        let writer = Inherited(writer);
        writer.offer(&vec![7; 10 << 20]);
        drop(reader);
        writer.offer(b"nobody is there");
    }
}
