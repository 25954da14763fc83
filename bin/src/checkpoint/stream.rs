//! A connection on which all reads and writes together have one deadline.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::deadline::Deadline;

/// A connected stream whose every wait counts against one budget.
pub(super) struct DeadlineStream {
    stream: UnixStream,
    deadline: Deadline,
}

impl DeadlineStream {
    /// Connects. The wait for a daemon whose backlog is full counts, too: a unix socket's `connect` obeys the send
    /// timeout, which the standard library can set only once it is connected.
    pub(super) fn connect(path: &Path, limit: Option<Duration>) -> io::Result<Self> {
        let deadline = Deadline::after(limit);
        let address = SocketAddrUnix::new(path)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Send, deadline.remaining()?)?;
        connect(&socket, &address)?;
        Ok(Self { stream: UnixStream::from(socket), deadline })
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.deadline.remaining()?)?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.deadline.remaining()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
