//! Time and identifiers come in from outside, so that tests decide what they are.

use std::sync::Arc;
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

/// The clock that this process's environment asks for (see [`crate::fault`]), and how many times faster than the
/// machine's its monotonic time runs: 1 but in tests.
#[cfg(not(feature = "fault-injection"))]
pub fn from_env() -> (Arc<dyn Clock>, u32) {
    (Arc::new(SystemClock::new()), 1)
}

#[cfg(feature = "fault-injection")]
pub use fast::from_env;

#[cfg(feature = "fault-injection")]
mod fast {
    use super::{Arc, Clock, Duration, SystemClock, WallTime};

    /// A clock whose monotonic time runs faster; wall time stays what it is.
    #[derive(Debug)]
    struct FastClock {
        machine: SystemClock,
        scale: u32,
    }

    impl Clock for FastClock {
        fn wall(&self) -> WallTime {
            self.machine.wall()
        }
        fn monotonic(&self) -> Duration {
            self.machine.monotonic().saturating_mul(self.scale)
        }
    }

    /// The clock that this process's environment asks for (see [`crate::fault`]), and how many times faster than the
    /// machine's its monotonic time runs. A number that cannot be read ends the process: a test must not wait in
    /// vain.
    pub fn from_env() -> (Arc<dyn Clock>, u32) {
        let scale = match std::env::var("COFFERDAM_TIME_SCALE") {
            Ok(text) if !text.is_empty() => parse(&text).unwrap_or_else(|| {
                tracing::error!(scale = text, "COFFERDAM_TIME_SCALE is not a number from 1 to 10000");
                std::process::abort()
            }),
            _ => 1,
        };
        (Arc::new(FastClock { machine: SystemClock::new(), scale }), scale)
    }

    fn parse(text: &str) -> Option<u32> {
        text.parse().ok().filter(|scale| (1..=10_000).contains(scale))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn monotonic_time_runs_as_much_faster_as_it_is_told_and_never_back() {
            let clock = FastClock { machine: SystemClock::new(), scale: 1000 };
            let machine = clock.machine.monotonic();
            let first = clock.monotonic();
            assert!(first >= machine * 1000, "{first:?} {machine:?}");
            assert!(clock.monotonic() >= first);
            assert!((clock.wall().0 - clock.machine.wall().0).abs() < 1_000_000_000);
        }

        #[test]
        fn a_scale_is_a_number_from_1_to_10000() {
            assert_eq!(["1", "60", "10000"].map(parse), [Some(1), Some(60), Some(10_000)]);
            assert_eq!(["0", "10001", "-1", "1.5", "x"].map(parse), [None; 5]);
        }
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
