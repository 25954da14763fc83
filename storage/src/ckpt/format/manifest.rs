//! A snapshot as an object: the packs alone are enough to find it again.

use super::bytes::{Decoder, Encoder, Malformed};
use super::entry::Meta;
use super::id::{ObjectId, ObjectKind};
use super::{ObjectSource, damaged};
use crate::ckpt::error;
use crate::ckpt::model::{Warning, WarningKind};
use crate::path::RelPath;

/// One captured tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Mode, owner, times and attributes of the root directory.
    pub root_meta: Meta,
    /// The root directory's node.
    pub root: ObjectId,
    /// The [`HardLinks`] object, if the tree has groups.
    pub hard_links: Option<ObjectId>,
    /// Files, directories and everything else below the root.
    pub entries: u64,
    /// Bytes of all regular files, holes included.
    pub bytes: u64,
    /// What was not captured faithfully, sorted by path.
    pub warnings: Vec<Warning>,
}

/// Which paths of a snapshot are names of one file. A table per snapshot, not inode numbers in nodes: else equal
/// trees would hash differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HardLinks {
    /// Groups of two or more paths, each sorted, the groups sorted by their first path.
    pub groups: Vec<Vec<RelPath>>,
}

const MANIFEST_VERSION: u64 = 1;

impl Manifest {
    /// The object's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.uint(MANIFEST_VERSION);
        self.root_meta.encode(&mut out);
        out.id(&self.root);
        match &self.hard_links {
            Some(id) => out.byte(1).id(id),
            None => out.byte(0),
        };
        out.uint(self.entries).uint(self.bytes).uint(self.warnings.len() as u64);
        for warning in &self.warnings {
            out.byte(warning_byte(warning.kind)).bytes(warning.path.as_bytes());
        }
        out.finish()
    }

    /// Reads an object's bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Decoder::new("manifest", bytes);
        if input.uint()? != MANIFEST_VERSION {
            return Err(input.malformed());
        }
        let root_meta = Meta::decode(&mut input)?;
        let root = input.id()?;
        let hard_links = match input.byte()? {
            0 => None,
            1 => Some(input.id()?),
            _ => return Err(input.malformed()),
        };
        let (entries, bytes) = (input.uint()?, input.uint()?);
        let mut warnings = Vec::new();
        for _ in 0..input.uint()? {
            let kind = warning_from(input.byte()?).ok_or(input.malformed())?;
            let path = RelPath::new(input.bytes()?).map_err(|_| input.malformed())?;
            warnings.push(Warning { path, kind });
        }
        input.end()?;
        Ok(Self { root_meta, root, hard_links, entries, bytes, warnings })
    }

    /// Reads the object.
    pub fn load(source: &dyn ObjectSource, id: &ObjectId) -> error::Result<Self> {
        Self::decode(&source.get(ObjectKind::Manifest, id)?).map_err(damaged(id))
    }
}

impl HardLinks {
    /// The object's bytes.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.is_sound(), "what is written could not be read again");
        let mut out = Encoder::new();
        out.uint(self.groups.len() as u64);
        for group in &self.groups {
            out.uint(group.len() as u64);
            for path in group {
                out.bytes(path.as_bytes());
            }
        }
        out.finish()
    }

    /// Reads an object's bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Decoder::new("hard links", bytes);
        let mut groups = Vec::new();
        for _ in 0..input.uint()? {
            let mut group = Vec::new();
            for _ in 0..input.uint()? {
                group.push(RelPath::new(input.bytes()?).map_err(|_| input.malformed())?);
            }
            groups.push(group);
        }
        input.end()?;
        let links = Self { groups };
        if links.is_sound() { Ok(links) } else { Err(input.malformed()) }
    }

    /// Reads the object.
    pub fn load(source: &dyn ObjectSource, id: &ObjectId) -> error::Result<Self> {
        Self::decode(&source.get(ObjectKind::HardLinks, id)?).map_err(damaged(id))
    }

    fn is_sound(&self) -> bool {
        self.groups.iter().all(|group| {
            group.len() >= 2 && !group[0].is_root() && group.is_sorted_by(|before, after| before < after)
        }) && self.groups.is_sorted_by(|before, after| before[0] < after[0])
    }
}

fn warning_byte(kind: WarningKind) -> u8 {
    match kind {
        WarningKind::Unreadable => 0,
        WarningKind::ChangedWhileRead => 1,
        WarningKind::MountPoint => 2,
        WarningKind::LateWrite => 3,
        WarningKind::OwnerNotRestored => 4,
    }
}

fn warning_from(byte: u8) -> Option<WarningKind> {
    Some(match byte {
        0 => WarningKind::Unreadable,
        1 => WarningKind::ChangedWhileRead,
        2 => WarningKind::MountPoint,
        3 => WarningKind::LateWrite,
        4 => WarningKind::OwnerNotRestored,
        _ => return None,
    })
}
