//! Who reads packs: a pack that was condemned goes only when nobody is left who may have looked up objects in it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The readings going on, by the epoch in which they began.
#[derive(Debug, Default)]
pub(super) struct Readers {
    epochs: Mutex<Epochs>,
}

#[derive(Debug, Default)]
struct Epochs {
    now: u64,
    reading: BTreeMap<u64, usize>,
}

/// While it lives, nothing that could be read when it was made is removed.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    readers: &'a Readers,
    epoch: u64,
}

impl Readers {
    /// Begins to read.
    pub(super) fn begin(&self) -> Reading<'_> {
        let mut epochs = self.epochs();
        let epoch = epochs.now;
        *epochs.reading.entry(epoch).or_default() += 1;
        Reading { readers: self, epoch }
    }

    /// Ends the current epoch and returns it. To be called after packs were condemned.
    pub(super) fn advance(&self) -> u64 {
        let mut epochs = self.epochs();
        epochs.now += 1;
        epochs.now - 1
    }

    /// Whether everybody who began in that epoch or before is done.
    pub(super) fn are_past(&self, epoch: u64) -> bool {
        self.epochs().reading.keys().next().is_none_or(|oldest| *oldest > epoch)
    }

    fn epochs(&self) -> MutexGuard<'_, Epochs> {
        // The counts are whole between any two statements.
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut epochs = self.readers.epochs();
        if let Some(count) = epochs.reading.get_mut(&self.epoch) {
            *count -= 1;
            if *count == 0 {
                epochs.reading.remove(&self.epoch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_past_when_the_last_who_began_in_it_is_done() {
        let readers = Readers::default();
        let before = readers.begin();
        let epoch = readers.advance();
        let after = readers.begin();
        assert!(!readers.are_past(epoch));
        drop(before);
        assert!(readers.are_past(epoch));
        drop(after);
        assert!(readers.are_past(readers.advance()));
    }
}
