//! The files in which objects lie.
//!
//! The new objects of one operation go to one pack: a file of compressed blocks, written once and never changed,
//! with an index of its objects at its end. Which objects there are is answered by the catalog, through
//! [`ObjectIndex`]; a pack alone is enough to fill a catalog again, by [`read_index`].
//!
//! - [`PackWriter`] gathers objects into blocks and makes the pack durable;
//! - [`ObjectReader`] finds, reads and proves objects;
//! - [`PackStorage`] is where packs are kept.

mod block;
mod layout;
mod lru;
mod reader;
mod storage;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use reader::ObjectReader;
pub use storage::{DirPacks, NewPackFile, PackFile, PackStorage};
pub use verify::{PackCheck, read_index, verify};
pub use writer::{NewPack, PackWriter, Written};

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::Result;
use super::format::{ObjectId, ObjectKind};

/// The name of a pack: 16 random bytes, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackId(pub [u8; 16]);

impl PackId {
    /// Reads exactly 32 lower-case hexadecimal digits, such as [`IdGen::fresh`](crate::clock::IdGen) gives.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
        let mut id = [0; 16];
        if pairs.len() != id.len() {
            return None;
        }
        for (byte, [high, low]) in id.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Its pack.
    pub pack: PackId,
    /// Where its block begins in the pack's file.
    pub block: u64,
    /// Where it begins in the decompressed block.
    pub offset: u32,
    /// Its bytes.
    pub len: u32,
}

/// An object of a known pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedObject {
    /// The object.
    pub id: ObjectId,
    /// What it is.
    pub kind: ObjectKind,
    /// Where its block begins in the pack's file.
    pub block: u64,
    /// Where it begins in the decompressed block.
    pub offset: u32,
    /// Its bytes.
    pub len: u32,
}

impl PackedObject {
    /// Where it is, if this is its pack.
    pub fn location(&self, pack: PackId) -> Location {
        Location { pack, block: self.block, offset: self.offset, len: self.len }
    }
}

/// Who knows which pack an object is in: the catalog. Called from several threads, some of them with a peer's
/// rights (see [`crate::peer`]).
pub trait ObjectIndex: Send + Sync {
    /// Where the object is, in whatever pack.
    fn find(&self, id: &ObjectId) -> Result<Option<Location>>;

    /// The same for a writer that would rather not store the object once more: packs about to be removed do
    /// not count. The publishing transaction checks [`Written::reused`] again.
    fn find_reusable(&self, id: &ObjectId) -> Result<Option<Location>>;
}

/// What these mutexes guard is whole after every step, so a panic elsewhere does not make it unusable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
