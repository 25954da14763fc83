//! What the tests of these actors share.

use std::sync::Arc;

use cofferdam_storage::clock::{IdGen, SystemClock};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::session::config::Places;

use super::Parts;

/// Names that nobody looks at.
struct NoIds;

impl IdGen for NoIds {
    fn fresh(&self) -> String {
        "0".repeat(32)
    }
}

/// What actors work with that touch no disk.
pub(super) fn parts() -> Parts {
    Parts {
        disk: Disk::default(),
        clock: Arc::new(SystemClock::new()),
        ids: Arc::new(NoIds),
        places: Places::default(),
    }
}
