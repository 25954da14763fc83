//! Time and identifiers come in from outside, so that tests decide what they are.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A wall-clock moment: nanoseconds since the Unix epoch. For display, ordering and ages, never for deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub i64);

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The wall-clock time; it may jump.
    fn wall(&self) -> WallTime;
    /// Time since some fixed moment; it never goes back.
    fn monotonic(&self) -> Duration;
}

/// Where fresh names come from.
pub trait IdGen: Send + Sync + 'static {
    /// A name no other call has returned: 32 lower-case hexadecimal digits.
    fn fresh(&self) -> String;
}

/// The machine's own clock.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    #[allow(clippy::disallowed_methods, reason = "the one module that asks the machine for the time")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one module that asks the machine for the time")]
    fn wall(&self) -> WallTime {
        // Before 1970 or after 2262 the clock is wrong anyway; such a time is shown as the nearest bound.
        let nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Err(_) => 0,
        };
        WallTime(nanos)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Random (version 4) UUIDs without their dashes.
#[derive(Debug, Default)]
pub struct RandomIds;

impl IdGen for RandomIds {
    fn fresh(&self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }
}
