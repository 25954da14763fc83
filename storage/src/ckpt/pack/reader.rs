//! Reading objects.

use std::sync::Arc;

use super::{ObjectIndex, PackId, PackStorage};
use crate::ckpt::error::Result;
use crate::ckpt::format::{ObjectId, ObjectKind, ObjectSource};

/// Finds objects by the index, reads them from packs and proves them: a block by its checksum, an object by its
/// id. Keeps some decompressed blocks and open files.
#[allow(dead_code, reason = "skeleton")]
pub struct ObjectReader {
    storage: Arc<dyn PackStorage>,
    index: Arc<dyn ObjectIndex>,
}

impl ObjectReader {
    /// Reads objects that `index` knows from packs in `storage`.
    pub fn new(storage: Arc<dyn PackStorage>, index: Arc<dyn ObjectIndex>) -> Self {
        Self { storage, index }
    }

    /// Closes a pack that is about to be removed and forgets its blocks.
    pub fn forget(&self, _pack: &PackId) {}
}

impl ObjectSource for ObjectReader {
    fn get(&self, _kind: ObjectKind, _id: &ObjectId) -> Result<Arc<[u8]>> {
        todo!()
    }

    fn has(&self, _id: &ObjectId) -> Result<bool> {
        todo!()
    }
}
