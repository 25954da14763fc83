//! Writing a pack.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{ObjectReader, PackId, PackedObject};
use crate::ckpt::error::Result;
use crate::ckpt::format::{ObjectId, ObjectKind, ObjectSink, ObjectSource};

/// Gathers the new objects of one operation into one pack. Shared by the threads of a capture.
///
/// Objects are readable through the writer as soon as they are put. Unless [`PackWriter::finish`] succeeds nothing
/// remains: dropping the writer removes the file.
#[allow(dead_code, reason = "skeleton")]
pub struct PackWriter {
    reader: Arc<ObjectReader>,
    id: PackId,
}

/// A finished pack, durable but not yet in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPack {
    /// Its name.
    pub id: PackId,
    /// The length of its file.
    pub bytes: u64,
    /// The length of all its objects.
    pub raw_bytes: u64,
    /// What is in it.
    pub objects: Vec<PackedObject>,
}

/// What an operation has to publish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The pack; `None` if every object was known.
    pub pack: Option<NewPack>,
    /// Packs that hold objects which were put and not stored again.
    pub reused: BTreeSet<PackId>,
}

impl PackWriter {
    /// A pack named `id` in the reader's storage; what the reader's index has is not stored again. The file is
    /// made when the first block is full.
    pub fn new(reader: Arc<ObjectReader>, id: PackId) -> Self {
        Self { reader, id }
    }

    /// Writes what is left and the index, and makes the pack durable: one fsync of the file, one of its directory.
    pub fn finish(self) -> Result<Written> {
        todo!()
    }
}

impl ObjectSink for PackWriter {
    fn put(&self, _kind: ObjectKind, _bytes: &[u8]) -> Result<ObjectId> {
        todo!()
    }
}

impl ObjectSource for PackWriter {
    fn get(&self, _kind: ObjectKind, _id: &ObjectId) -> Result<Arc<[u8]>> {
        todo!()
    }

    fn has(&self, _id: &ObjectId) -> Result<bool> {
        todo!()
    }
}
