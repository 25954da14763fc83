//! The line between a daemon and its supervisor: one socket, on which the order and the program's three descriptors go in,
//! commands after them, and reports come out. Its end means that the other side is gone.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::home_files::MAX_HOME_FILES;
use super::order::{MAX_ORDER, Order};

/// What becomes the program's standard input, output and error.
#[derive(Debug)]
pub struct Stdio {
    /// Standard input.
    pub input: OwnedFd,
    /// Standard output.
    pub output: OwnedFd,
    /// Standard error.
    pub error: OwnedFd,
}

/// The most descriptors that go with an order.
const MAX_FDS: usize = 3 + MAX_HOME_FILES;

/// Sends an order, and what its home files hold. `link` must be blocking.
pub(super) fn send_order(
    link: &UnixStream,
    order: &Order,
    stdio: &Stdio,
    files: &[OwnedFd],
) -> io::Result<()> {
    if files.len() != order.home_files.len() || files.len() > MAX_HOME_FILES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the order's home files are not these"));
    }
    let mut line = serde_json::to_vec(order)?;
    if line.len() > MAX_ORDER {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the program's arguments and environment are too long",
        ));
    }
    line.push(b'\n');
    let mut fds = vec![stdio.input.as_fd(), stdio.output.as_fd(), stdio.error.as_fd()];
    fds.extend(files.iter().map(AsFd::as_fd));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !rights.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // The descriptors go with the first bytes; the rest may take several calls.
    let sent = sendmsg(link, &[IoSlice::new(&line)], &mut rights, SendFlags::NOSIGNAL)?;
    (&mut &*link).write_all(&line[sent..])
}

/// What came from a daemon.
pub(super) struct Received {
    pub(super) order: Order,
    pub(super) stdio: Stdio,
    /// What the order's home files hold.
    pub(super) files: Vec<OwnedFd>,
    /// What was sent behind it so far.
    pub(super) lines: Lines,
}

/// Receives an order.
pub(super) fn receive_order(link: &UnixStream) -> io::Result<Received> {
    let mut fds = Vec::new();
    let mut lines = Lines::default();
    let mut bytes = vec![0; 64 * 1024];
    let line = loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = match recvmsg(link, &mut [IoSliceMut::new(&mut bytes)], &mut rights, flags) {
            Err(rustix::io::Errno::INTR) => continue,
            got => got?,
        };
        for message in rights.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                fds.extend(more);
            }
        }
        if got.bytes == 0 || got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        lines.0.extend_from_slice(&bytes[..got.bytes]);
        if let Some(line) = lines.next() {
            break line;
        }
        if lines.0.len() > MAX_ORDER {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the order is too long"));
        }
    };
    let order: Order = serde_json::from_slice(&line)?;
    let mut fds = fds.into_iter();
    match (fds.next(), fds.next(), fds.next()) {
        (Some(input), Some(output), Some(error)) if fds.len() == order.home_files.len() => {
            let stdio = Stdio { input, output, error };
            Ok(Received { order, stdio, files: fds.collect(), lines })
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the order came without the program's three descriptors, or without those of its home files",
        )),
    }
}

/// Bytes that become lines.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<u8>);

/// What a reading found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Got {
    Something,
    End,
}

impl Lines {
    /// Takes what there is from a descriptor that has something.
    pub(super) fn fill(&mut self, mut from: impl Read) -> Got {
        let mut bytes = [0; 4096];
        match from.read(&mut bytes) {
            Ok(0) => Got::End,
            Ok(count) => {
                self.0.extend_from_slice(&bytes[..count]);
                Got::Something
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                Got::Something
            }
            Err(_) => Got::End,
        }
    }

    /// The next whole line, without its end.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.0.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.0.drain(..=end).collect();
        line.pop();
        Some(line)
    }
}
