//! The store's format: what an object is and how its bytes look. Version 1.
//!
//! Objects are addressed by the BLAKE3 hash of their kind and their bytes. A directory is a Merkle tree of
//! [`node`]s; a snapshot is a [`manifest`].

mod bytes;
mod entry;
mod extents;
mod id;
mod manifest;
mod node;

pub use bytes::{Decoder, Encoder, Malformed};
pub use entry::{Content, Entry, EntryKind, Meta, Timestamp, Xattrs};
pub use extents::{Extent, Extents};
pub use id::{ObjectId, ObjectKind};
pub use manifest::{HardLinks, Manifest};
pub use node::{Delta, NodeWriter, Tree, Visit, diff_trees, rewrite_tree};

use std::sync::Arc;

use super::error::Result;

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
