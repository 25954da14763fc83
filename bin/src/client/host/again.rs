//! How long to wait before listening anew.

use std::time::Duration;

/// Waits that double, from a tenth of a second to five seconds.
#[derive(Debug, Default)]
pub(super) struct Again {
    tries: u32,
}

impl Again {
    /// The next wait.
    pub(super) fn delay(&mut self) -> Duration {
        let tenths = 1 << self.tries.min(6);
        self.tries += 1;
        Duration::from_millis((tenths * 100).min(5000))
    }

    /// How many waits there were since it last worked.
    pub(super) fn tries(&self) -> u32 {
        self.tries
    }

    /// It works.
    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_they_are_long_enough_and_begin_anew_once_it_works() {
        let mut again = Again::default();
        let mut tenths = |count| (0..count).map(|_| again.delay().as_millis() / 100).collect::<Vec<_>>();
        assert_eq!(tenths(8), [1, 2, 4, 8, 16, 32, 50, 50]);
        assert_eq!(again.tries(), 8);
        again.reset();
        assert_eq!(again.delay(), Duration::from_millis(100));
    }
}
