//! The nodes of a directory's tree: their bytes, and where one ends and the next begins.
//!
//! A leaf (level 0) holds entries; a node of level N holds the last name, the id and the number of entries of
//! nodes of level N - 1. Whether a node ends behind an item is decided by the item's own name, so a change in a
//! directory of any size moves no boundary but those beside it, and equal directories are equal nodes whatever
//! their history.

use super::bytes::{Decoder, Encoder, Malformed};
use super::entry::Entry;
use super::id::{ObjectId, ObjectKind};
use super::{ObjectSource, damaged};
use crate::ckpt::error;
use crate::path::Name;

/// No node but the last of its level has fewer items. Also what makes levels shrink, whatever the names are.
const MIN_ITEMS: usize = 16;
/// No node has more items.
const MAX_ITEMS: usize = 4096;
/// A node ends with the item that takes it past so many bytes: extended attributes can be long.
const MAX_BYTES: usize = 1 << 20;
/// 2^64 entries in nodes of [`MIN_ITEMS`] need no more levels.
pub(super) const MAX_LEVEL: u8 = 16;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// Entries, sorted by name.
    Leaf(Vec<Entry>),
    /// Nodes of the level below, sorted by last name; never empty.
    Inner(u8, Vec<Child>),
}

/// A node as the level above it knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Child {
    /// The name of the last entry below it.
    pub(super) last: Name,
    /// The node.
    pub(super) id: ObjectId,
    /// How many entries are below it.
    pub(super) entries: u64,
}

impl Child {
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.bytes(self.last.as_bytes()).id(&self.id).uint(self.entries);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let last = Name::new(input.bytes()?).map_err(|_| input.malformed())?;
        let (id, entries) = (input.id()?, input.uint()?);
        if entries == 0 {
            return Err(input.malformed());
        }
        Ok(Self { last, id, entries })
    }
}

/// Whether a node of `level` that has `items` items in `bytes` bytes ends with the one whose last name is `last`.
pub(super) fn ends_node(level: u8, items: usize, bytes: usize, last: &[u8]) -> bool {
    items >= MAX_ITEMS || bytes >= MAX_BYTES || (items >= MIN_ITEMS && is_boundary(level, last))
}

/// One name in 256, others on each level.
fn is_boundary(level: u8, name: &[u8]) -> bool {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[level]);
    hasher.update(name);
    hasher.finalize().as_bytes()[0] == 0
}

impl Node {
    /// Reads a node's bytes: the level, then items up to the end.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Decoder::new("node", bytes);
        let level = input.byte()?;
        if level == 0 {
            let mut entries: Vec<Entry> = Vec::new();
            while !input.is_empty() {
                let entry = Entry::decode(&mut input)?;
                if entries.last().is_some_and(|before| before.name >= entry.name) {
                    return Err(input.malformed());
                }
                entries.push(entry);
            }
            return Ok(Self::Leaf(entries));
        }
        let mut children: Vec<Child> = Vec::new();
        while !input.is_empty() {
            let child = Child::decode(&mut input)?;
            if children.last().is_some_and(|before| before.last >= child.last) {
                return Err(input.malformed());
            }
            children.push(child);
        }
        if level > MAX_LEVEL || children.is_empty() {
            return Err(input.malformed());
        }
        Ok(Self::Inner(level, children))
    }

    pub(super) fn load(source: &dyn ObjectSource, id: &ObjectId) -> error::Result<Self> {
        Self::decode(&source.get(ObjectKind::Node, id)?).map_err(damaged(id))
    }

    pub(super) fn level(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Inner(level, _) => *level,
        }
    }

    /// How many entries are below it; `None` if the numbers cannot be true.
    pub(super) fn entries(&self) -> Option<u64> {
        match self {
            Self::Leaf(entries) => Some(entries.len() as u64),
            Self::Inner(_, children) => {
                children.iter().try_fold(0u64, |sum, child| sum.checked_add(child.entries))
            }
        }
    }

    /// A name that no name below it is less than, or for an inner node that of its first child's last entry.
    pub(super) fn first(&self) -> Option<&Name> {
        match self {
            Self::Leaf(entries) => entries.first().map(|entry| &entry.name),
            Self::Inner(_, children) => children.first().map(|child| &child.last),
        }
    }

    /// The last name below it.
    pub(super) fn last(&self) -> Option<&Name> {
        match self {
            Self::Leaf(entries) => entries.last().map(|entry| &entry.name),
            Self::Inner(_, children) => children.last().map(|child| &child.last),
        }
    }
}
