//! The store's format: what an object is and how its bytes look. Version 1.
//!
//! Objects are addressed by the BLAKE3 hash of their kind and their bytes. A directory is a Merkle tree of
//! [`node`]s; a snapshot is a [`manifest`].

mod bytes;
mod diff;
mod entry;
mod extents;
mod id;
mod manifest;
mod node;
mod references;
mod rewrite;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tree;
mod writer;

pub use bytes::{Decoder, Encoder, Malformed};
pub use diff::{Delta, Visit, diff_trees};
pub use entry::{Content, Entry, EntryKind, Meta, Timestamp, Xattrs};
pub use extents::{Extent, Extents};
pub use id::{ObjectId, ObjectKind};
pub use manifest::{HardLinks, Manifest};
pub use references::references;
pub use rewrite::rewrite_tree;
pub use tree::Tree;
pub use writer::NodeWriter;

use std::sync::Arc;

use super::error::{Error, Result};

/// The version that every file of the store names in its header.
pub const FORMAT_VERSION: u32 = 1;

/// Where new objects go.
pub trait ObjectSink: Sync {
    /// Stores an object unless the store has it. When this returns the object can be read through the matching
    /// [`ObjectSource`], but it is durable only once its pack is.
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId>;
}

/// Where objects come from.
pub trait ObjectSource: Sync {
    /// An object's bytes, proven against its id. `Error::Corrupt` if it is gone or damaged.
    fn get(&self, kind: ObjectKind, id: &ObjectId) -> Result<Arc<[u8]>>;

    /// Whether the object is on record, without reading it.
    fn has(&self, id: &ObjectId) -> Result<bool>;
}

/// An object whose bytes hash to its id and yet are not what its kind says.
fn damaged(id: &ObjectId) -> impl FnOnce(Malformed) -> Error {
    move |malformed| Error::Corrupt(format!("object {id}: {malformed}"))
}
