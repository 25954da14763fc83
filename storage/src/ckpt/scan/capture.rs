//! From a live tree to a manifest.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;

use super::cache::StatCache;
use crate::ckpt::error::Result;
use crate::ckpt::format::{Entry, Manifest, ObjectId, ObjectSink};
use crate::clock::Clock;
use crate::fs::Root;
use crate::path::{Name, RelPath};
use crate::peer::Peer;

/// What a capture works on.
pub struct Capture<'a> {
    /// The workspace.
    pub root: &'a Root,
    /// Whose rights the walk has.
    pub peer: &'a Peer,
    /// Where new objects go.
    pub sink: &'a dyn ObjectSink,
    /// The wall clock of the filesystem's timestamps.
    pub clock: &'a dyn Clock,
    /// Names a journal owns: staging directories, here and in workspaces inside this one. Not captured.
    pub ignore: &'a HashSet<RelPath>,
}

/// A captured tree; its objects are in the sink, not yet durable.
#[derive(Clone, Debug)]
pub struct Captured {
    /// What was captured.
    pub manifest: Manifest,
    /// The manifest's own id.
    pub id: ObjectId,
}

/// Walks the tree with two threads, reads what is not provably unchanged, and stores what is new.
///
/// Changes nothing in the tree, no access time either. Fails only if the root itself cannot be read or the sink
/// fails; whatever else cannot be read becomes a warning.
pub fn capture(_work: &Capture<'_>, _cache: &mut StatCache) -> Result<Captured> {
    todo!()
}

/// Captures one name of a directory, everything beneath it included, without a cache. `None` if it is gone.
pub fn capture_entry(_work: &Capture<'_>, _dir: BorrowedFd<'_>, _name: &Name) -> Result<Option<Entry>> {
    todo!()
}
