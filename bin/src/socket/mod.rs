//! The ws-ckpt socket: a frame becomes one message to the actors, and the answer one frame. No rule of the contract
//! lives here, but for what happens to bytes that are no request.

mod accept;
mod bind;
mod connection;
mod room;
mod translate;

pub(crate) use accept::{accept, trusted};
pub(crate) use bind::{Audience, BindError, Place, SocketFile, bind, note, noted};

use std::time::Duration;

/// What one client may take of the daemon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Open connections; the next ones wait in the kernel's backlog.
    pub(crate) connections: usize,
    /// Requests of more than [`SMALL_REQUEST`](Self::SMALL_REQUEST) bytes in memory at a time; others wait.
    pub(crate) large_requests: usize,
    /// MiB of answers of more than [`SMALL_ANSWER`](Self::SMALL_ANSWER) bytes in memory at a time; others are refused.
    pub(crate) large_answers: usize,
    /// Open connections of one user who is neither root nor the daemon's own.
    pub(crate) connections_per_stranger: usize,
    /// Of `large_requests`, what one such user may have.
    pub(crate) large_requests_per_stranger: usize,
    /// Of `large_answers`, what one such user may have; not less than one answer of the largest size.
    pub(crate) large_answers_per_stranger: usize,
    /// Between two requests.
    pub(crate) idle: Duration,
    /// From the first byte of a frame to its last.
    pub(crate) frame: Duration,
    /// For taking one answer.
    pub(crate) answer: Duration,
    /// For a client that was told to go to stop sending.
    pub(crate) linger: Duration,
    /// For requests in flight when the daemon stops.
    pub(crate) drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            large_requests: 8,
            large_answers: 256,
            connections_per_stranger: 64,
            large_requests_per_stranger: 2,
            large_answers_per_stranger: 64,
            idle: Duration::from_secs(60),
            frame: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            linger: Duration::from_secs(1),
            drain: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Up to this a request takes no part of the room for large ones.
    pub(crate) const SMALL_REQUEST: usize = 64 << 10;
    /// Up to this an answer takes no part of the room for large ones.
    pub(crate) const SMALL_ANSWER: usize = 256 << 10;

    /// The defaults, with no more connections than leave half of this process's descriptors to everything else.
    pub(crate) fn of_process() -> Self {
        let defaults = Self::default();
        Self { connections: connections(defaults.connections, 2), ..defaults }
    }
}

/// How many connections may be open: so many, but no more than one in `share` of the descriptors this process may have.
pub(crate) fn connections(most: usize, share: u64) -> usize {
    let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let part = open_files.map_or(usize::MAX, |limit| usize::try_from(limit / share).unwrap_or(usize::MAX));
    most.min(part.max(1))
}
