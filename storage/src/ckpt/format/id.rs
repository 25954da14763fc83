//! Object identifiers.

use std::fmt;

/// What an object's bytes are. The kind is hashed with them, so equal bytes of two kinds are two objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// A file's content, or a chunk of it.
    Data = 1,
    /// The extents of a file that is chunked or has holes.
    Extents = 2,
    /// A node of a directory's tree.
    Node = 3,
    /// The hard-link groups of a snapshot.
    HardLinks = 4,
    /// A snapshot.
    Manifest = 5,
}

impl ObjectKind {
    /// The kind whose number this is.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Data,
            2 => Self::Extents,
            3 => Self::Node,
            4 => Self::HardLinks,
            5 => Self::Manifest,
            _ => return None,
        })
    }
}

/// The BLAKE3 hash of an object's kind and bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 32]);

impl ObjectId {
    /// The id of an object.
    pub fn of(kind: ObjectKind, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[kind as u8]);
        hasher.update(bytes);
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", &self.to_string()[..12])
    }
}
