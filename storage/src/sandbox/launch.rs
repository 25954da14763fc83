//! Starts a supervisor, for a daemon.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio as ChildStdio};

use super::link::{Stdio, send_order};
use super::order::Order;
use super::pods;

/// The hidden subcommand of `cofferdam` that is a supervisor.
pub const SUBCOMMAND: &str = "pod-supervisor";

/// A supervisor that was given its order.
#[derive(Debug)]
pub struct Launched {
    /// The process, to be waited for: when it has ended, nothing of its sandbox runs and nothing private is left.
    pub supervisor: Child,
    /// Reports come out as lines, and end with the supervisor; [`CANCEL`](super::CANCEL) goes in. Closing it, or dying, kills
    /// everything at once. Blocking.
    pub link: UnixStream,
}

/// Starts `command`, which is the program `cofferdam` without arguments, as a supervisor. Its standard error is ours, unless the
/// command says otherwise: what it cannot report it says there. `files` hold what the order's home files hold
/// ([`home_file`](super::home_file)).
pub fn launch(mut command: Command, order: &Order, stdio: Stdio, files: &[OwnedFd]) -> io::Result<Launched> {
    let (link, theirs) = UnixStream::pair()?;
    command.arg(SUBCOMMAND).env_clear().current_dir("/");
    command.stdin(ChildStdio::from(OwnedFd::from(theirs))).stdout(ChildStdio::null());
    let mut supervisor = command.spawn()?;
    // Dropped now: the command holds the other end, and an end is to be seen.
    drop(command);
    // Before anything of it can run.
    if let Err(error) = pods::count(&supervisor).and_then(|()| send_order(&link, order, &stdio, files)) {
        drop(link);
        supervisor.wait()?;
        return Err(error);
    }
    Ok(Launched { supervisor, link })
}
