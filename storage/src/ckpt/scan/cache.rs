//! The stat cache: what every file of a workspace looked like when it was last read.

use std::path::Path;

use crate::ckpt::error::Result;
use crate::ckpt::format::ObjectId;
use crate::disk::Disk;

/// The stat cache of one workspace: a record per directory in an append-only, checksummed file that is never
/// fsynced. Losing it costs a full read and nothing else.
#[derive(Debug)]
pub struct StatCache {}

impl StatCache {
    /// Opens or creates the cache. Its records are used only if the cache was last committed for `base`, the
    /// manifest that the catalog protects from collection: every object a record refers to is reachable from it.
    pub fn open(_disk: &Disk, _file: &Path, _base: Option<&ObjectId>) -> Result<Self> {
        todo!()
    }

    /// The records of the last [`capture`](super::capture) hold from now on: its manifest `base` is published.
    /// Without this call they are forgotten. Rewrites the file when more than half of it is stale.
    pub fn commit(&mut self, _base: &ObjectId) -> Result<()> {
        todo!()
    }
}
