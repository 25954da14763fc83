//! The end of a connection whose other side does not read.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Ends a connection over a unix socket, whatever its server waits for. The kernel does that of its own accord where a TCP
/// connection has a time limit, and never here.
#[derive(Clone, Debug)]
pub struct Hangup(Arc<UnixStream>);

impl Hangup {
    /// Of this connection. Belongs into its data (`HttpServer::on_connect`). Holds a descriptor as long as the connection is
    /// there.
    pub fn of(connection: impl AsFd) -> io::Result<Self> {
        let held: OwnedFd = connection.as_fd().try_clone_to_owned()?;
        Ok(Self(Arc::new(UnixStream::from(held))))
    }

    /// Ends it.
    pub(crate) fn now(&self) {
        // One that is over already needs no end.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
