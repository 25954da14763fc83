//! One budget of time for all the waits of a call.

use std::io;
use std::time::Duration;

use cofferdam_storage::clock::{Clock, SystemClock};

/// How long a call may take in all; its clock starts with it.
pub(crate) struct Deadline {
    clock: SystemClock,
    limit: Option<Duration>,
}

impl Deadline {
    /// One that is over after `limit`, or never.
    pub(crate) fn after(limit: Option<Duration>) -> Self {
        Self { clock: SystemClock::new(), limit }
    }

    /// How long the call may take.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// What is left for the next wait: `None` is for ever, and nothing left is an error.
    pub(crate) fn remaining(&self) -> io::Result<Option<Duration>> {
        match self.limit {
            None => Ok(None),
            Some(limit) => match limit.checked_sub(self.clock.monotonic()) {
                Some(rest) if !rest.is_zero() => Ok(Some(rest)),
                _ => Err(io::ErrorKind::TimedOut.into()),
            },
        }
    }
}
