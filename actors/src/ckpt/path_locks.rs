//! One lock per path, so that what is done to it is done one after another.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The locks that somebody holds or waits for.
#[derive(Default)]
pub(super) struct PathLocks(HashMap<PathBuf, Weak<Mutex<()>>>);

impl PathLocks {
    /// The turn at a path, when it comes; in the order in which it was asked for.
    pub(super) fn lock(&mut self, path: PathBuf) -> impl Future<Output = OwnedMutexGuard<()>> + use<> {
        self.0.retain(|_, lock| lock.strong_count() > 0);
        let lock = self.0.get(&path).and_then(Weak::upgrade).unwrap_or_else(|| {
            let lock = Arc::default();
            self.0.insert(path, Arc::downgrade(&lock));
            lock
        });
        lock.lock_owned()
    }
}
