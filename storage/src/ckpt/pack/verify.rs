//! Reading whole packs: to rebuild a catalog, and to find damage.

use super::{PackId, PackStorage, PackedObject};
use crate::ckpt::error::Result;

/// What reading every byte of a pack found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackCheck {
    /// Objects in its index.
    pub objects: u64,
    /// Bytes read.
    pub bytes: u64,
    /// One line for each damaged thing; empty means sound.
    pub damage: Vec<String>,
}

/// The objects of a pack, in the order in which they lie there. `Error::Corrupt` if the index is damaged or the pack
/// was not finished.
pub fn read_index(_storage: &dyn PackStorage, _pack: &PackId) -> Result<Vec<PackedObject>> {
    todo!()
}

/// Reads every byte of a pack and proves every block and object. An error only if the pack cannot be opened.
pub fn verify(_storage: &dyn PackStorage, _pack: &PackId) -> Result<PackCheck> {
    todo!()
}
