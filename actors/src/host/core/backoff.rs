//! How long to wait before something that failed is tried again: 1, 2, 4 … 30 s.

use std::time::Duration;

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Counts failures in a row.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    /// How many times shorter the waits are: 1 but in tests.
    faster: u32,
}

impl Backoff {
    pub(super) fn new(faster: u32) -> Self {
        Self { failures: 0, faster: faster.max(1) }
    }

    /// It has failed; says how long to wait.
    pub(super) fn next(&mut self) -> Duration {
        let wait = Duration::from_secs(1) * 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1).min(u32::BITS - 1);
        wait.min(LONGEST) / self.faster
    }

    /// It works, or somebody wants it tried at once.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_30_s_until_it_works_again() {
        let mut backoff = Backoff::new(1);
        let mut seconds = |count| (0..count).map(|_| backoff.next().as_secs()).collect::<Vec<_>>();
        assert_eq!(seconds(8), [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(seconds(100), [30; 100], "also after many");
        backoff.reset();
        assert_eq!(backoff.next(), Duration::from_secs(1));
    }

    #[test]
    fn where_time_runs_faster_waits_are_shorter() {
        let mut backoff = Backoff::new(100);
        assert_eq!([backoff.next(), backoff.next()], [Duration::from_millis(10), Duration::from_millis(20)]);
        assert_eq!(Backoff::new(0).next(), Duration::from_secs(1));
    }
}
