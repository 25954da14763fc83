//! One name in a directory, with everything a rollback has to give back.

use super::bytes::{Decoder, Encoder, Malformed};
use super::id::ObjectId;
use crate::ckpt::model::FileKind;
use crate::path::Name;

/// A file's time of last modification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since the epoch; negative before it.
    pub secs: i64,
    /// 0 to 999 999 999.
    pub nanos: u32,
}

/// Extended attributes by name, sorted: `user.*`, ACLs, capabilities, whatever the peer may read.
pub type Xattrs = Box<[(Box<[u8]>, Box<[u8]>)]>;

/// What every kind of file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Permission bits with set-user-id, set-group-id and sticky: `0o7777`. 0 for a symbolic link.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Time of last modification.
    pub mtime: Timestamp,
    /// Extended attributes, sorted by name, each name once.
    pub xattrs: Xattrs,
}

/// Where a regular file's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The file is empty and has no hole.
    Empty,
    /// One `Data` object.
    Whole(ObjectId),
    /// One `Extents` object: chunks and holes in order.
    Extents(ObjectId),
    /// It could not be read. A rollback neither restores nor removes such a file.
    Unread,
}

/// What kind of file it is, with what that kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Bytes, holes included.
        size: u64,
        /// Its bytes.
        content: Content,
    },
    /// A directory; `None` if it could not be listed (a rollback leaves its inside alone).
    Directory(Option<ObjectId>),
    /// A symbolic link and its target.
    Symlink(Box<[u8]>),
    /// A FIFO.
    Fifo,
    /// A bound unix socket.
    Socket,
    /// A character device: major, minor.
    CharDevice(u32, u32),
    /// A block device: major, minor.
    BlockDevice(u32, u32),
    /// A directory or file on which something is mounted. Only its name is stored; its [`Meta`] is the default,
    /// since what shows there belongs to the mount.
    MountPoint,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Name,
    /// Mode, owner, time, attributes.
    pub meta: Meta,
    /// The rest.
    pub kind: EntryKind,
}

impl EntryKind {
    /// The kind alone.
    pub fn file_kind(&self) -> FileKind {
        match self {
            Self::File { .. } => FileKind::File,
            Self::Directory(_) => FileKind::Directory,
            Self::Symlink(_) => FileKind::Symlink,
            Self::Fifo => FileKind::Fifo,
            Self::Socket => FileKind::Socket,
            Self::CharDevice(..) => FileKind::CharDevice,
            Self::BlockDevice(..) => FileKind::BlockDevice,
            Self::MountPoint => FileKind::MountPoint,
        }
    }
}

impl Meta {
    /// Appends the fields in order.
    pub fn encode(&self, out: &mut Encoder) {
        out.uint(self.mode.into()).uint(self.uid.into()).uint(self.gid.into());
        out.int(self.mtime.secs).uint(self.mtime.nanos.into());
        out.uint(self.xattrs.len() as u64);
        for (name, value) in &self.xattrs {
            out.bytes(name).bytes(value);
        }
    }

    /// Takes the fields in order.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let (mode, uid, gid) = (input.uint32()?, input.uint32()?, input.uint32()?);
        let mtime = Timestamp { secs: input.int()?, nanos: input.uint32()? };
        let mut xattrs = Vec::new();
        for _ in 0..input.uint()? {
            xattrs.push((input.bytes()?.into(), input.bytes()?.into()));
        }
        let meta = Self { mode, uid, gid, mtime, xattrs: xattrs.into() };
        if meta.is_sound() { Ok(meta) } else { Err(input.malformed()) }
    }

    fn is_sound(&self) -> bool {
        self.mode <= 0o7777
            && self.mtime.nanos <= 999_999_999
            && self.xattrs.iter().all(|(name, _)| !name.is_empty())
            && self.xattrs.is_sorted_by(|(before, _), (after, _)| before < after)
    }
}

impl Entry {
    /// Whether the entry is what its types say in words; nothing else decodes.
    pub(super) fn is_sound(&self) -> bool {
        let has_bytes = match self.kind {
            EntryKind::File { size, content: Content::Empty } => size == 0,
            EntryKind::File { size, content: Content::Whole(_) | Content::Extents(_) } => size > 0,
            _ => true,
        };
        has_bytes && self.meta.is_sound()
    }

    /// Appends the entry.
    pub fn encode(&self, out: &mut Encoder) {
        out.bytes(self.name.as_bytes());
        match &self.kind {
            EntryKind::File { size, content } => match content {
                Content::Empty => {
                    out.byte(0);
                }
                Content::Whole(id) => {
                    out.byte(1).uint(*size).id(id);
                }
                Content::Extents(id) => {
                    out.byte(2).uint(*size).id(id);
                }
                Content::Unread => {
                    out.byte(3).uint(*size);
                }
            },
            EntryKind::Directory(Some(node)) => {
                out.byte(4).id(node);
            }
            EntryKind::Directory(None) => {
                out.byte(5);
            }
            EntryKind::Symlink(target) => {
                out.byte(6).bytes(target);
            }
            EntryKind::Fifo => {
                out.byte(7);
            }
            EntryKind::Socket => {
                out.byte(8);
            }
            EntryKind::CharDevice(major, minor) => {
                out.byte(9).uint((*major).into()).uint((*minor).into());
            }
            EntryKind::BlockDevice(major, minor) => {
                out.byte(10).uint((*major).into()).uint((*minor).into());
            }
            EntryKind::MountPoint => {
                out.byte(11);
                return;
            }
        }
        self.meta.encode(out);
    }

    /// Takes an entry.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self, Malformed> {
        let name = Name::new(input.bytes()?).map_err(|_| input.malformed())?;
        let kind = match input.byte()? {
            0 => EntryKind::File { size: 0, content: Content::Empty },
            1 => EntryKind::File { size: input.uint()?, content: Content::Whole(input.id()?) },
            2 => EntryKind::File { size: input.uint()?, content: Content::Extents(input.id()?) },
            3 => EntryKind::File { size: input.uint()?, content: Content::Unread },
            4 => EntryKind::Directory(Some(input.id()?)),
            5 => EntryKind::Directory(None),
            6 => EntryKind::Symlink(input.bytes()?.into()),
            7 => EntryKind::Fifo,
            8 => EntryKind::Socket,
            9 => EntryKind::CharDevice(input.uint32()?, input.uint32()?),
            10 => EntryKind::BlockDevice(input.uint32()?, input.uint32()?),
            11 => return Ok(Self { name, meta: Meta::default(), kind: EntryKind::MountPoint }),
            _ => return Err(input.malformed()),
        };
        let entry = Self { name, meta: Meta::decode(input)?, kind };
        if entry.is_sound() { Ok(entry) } else { Err(input.malformed()) }
    }
}
