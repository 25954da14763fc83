//! The journal of one rollback: what it is about to do, durable before it does it.
//!
//! A file `<op>.journal` with a magic and a version, then up to three records: [`Begin`], written before anything is
//! touched; [`Switch`], written when all that is new is staged and durable; and a [`Verdict`], for which the second
//! record leaves room, so that a full disk cannot keep a rollback from ending. A record that is torn counts as absent,
//! since what needs it was not begun. After one that is damaged nobody knows how far the rollback came, so whatever it
//! has displaced stays.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use cofferdam_protocol::ckpt::WorkspaceId;
use rustix::fs::{Mode, OFlags};

use super::places::Seen;
use super::records::{self, FRAME, Found, Kind, record};
use crate::ckpt::FileKind;
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{Decoder, Encoder, Malformed, Meta, ObjectId, Timestamp};
use crate::disk::Disk;
use crate::fs::FileIdentity;
use crate::path::{Name, RelPath};
use crate::peer::Peer;

const MAGIC: &[u8; 8] = b"COFFROLL";
const VERSION: u32 = 1;
const HEADER: usize = MAGIC.len() + 4;
const SUFFIX: &[u8] = b".journal";

/// What is known before anything is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) workspace: WorkspaceId,
    pub(super) path: PathBuf,
    /// The workspace's root directory.
    pub(super) root: FileIdentity,
    /// Whose rights the work in the tree has.
    pub(super) peer: Peer,
    /// The root nodes of safety snapshot and target.
    pub(super) live: ObjectId,
    pub(super) target: ObjectId,
    /// When the capture of the safety snapshot began.
    pub(super) captured_from: Timestamp,
    /// The staging directories; each is alone on its filesystem.
    pub(super) staging: Vec<RelPath>,
    /// Every directory that stays and is touched.
    pub(super) dirs: Vec<DirState>,
}

/// A directory before the rollback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirState {
    pub(super) path: RelPath,
    pub(super) identity: FileIdentity,
    pub(super) mode: u32,
    pub(super) mtime: Timestamp,
    /// Whether it is made writable for the time being.
    pub(super) widen: bool,
}

/// Everything that changes the tree, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) steps: Vec<Step>,
    /// What stays where it is, with the metadata it had and the metadata it gets. Directories last, deepest first.
    pub(super) metas: Vec<MetaStep>,
}

/// One change of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) path: RelPath,
    pub(super) how: How,
}

/// How a name changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// What stands at the name and what lies in a staging directory change places; either may be nothing.
    Move {
        /// Index of the staging directory.
        staging: usize,
        /// The name in it.
        slot: Name,
        old: Option<Seen>,
        new: Option<Seen>,
        /// Whether what stood there had already changed since it was captured.
        suspect: bool,
    },
    /// A directory that cannot be moved is removed, all that was in it having been moved out one by one.
    Remove {
        old: Seen,
        /// To make it again.
        meta: Meta,
        /// Whether the name gets something else in a later step.
        refilled: bool,
    },
}

/// A change of metadata in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetaStep {
    pub(super) path: RelPath,
    /// What it is for; the size is that of what was captured.
    pub(super) seen: Seen,
    /// `None`: it is new, and going back removes it.
    pub(super) old: Option<Meta>,
    pub(super) new: Meta,
}

impl MetaStep {
    /// Whether this is still the file that was captured; part of its metadata may have been set already.
    /// `owner`: of what is there. On an overlay filesystem changing a file makes it another, so what looks as if it had
    /// the same content and owner counts as the same there.
    pub(super) fn is_for(&self, now: &Seen, owner: (u32, u32), overlay: bool) -> bool {
        let metas = [&self.new, self.old.as_ref().unwrap_or(&self.new)];
        let alike = || match now.kind {
            FileKind::Directory => self.seen.kind == FileKind::Directory,
            _ => !self.is_written(now) && metas.iter().any(|meta| (meta.uid, meta.gid) == owner),
        };
        now.is(&self.seen) || (overlay && alike())
    }

    /// Whether it was written to since it was captured.
    pub(super) fn is_written(&self, now: &Seen) -> bool {
        let times = [&self.new, self.old.as_ref().unwrap_or(&self.new)].map(|meta| meta.mtime);
        (now.kind, now.size) != (self.seen.kind, self.seen.size)
            || (now.kind != FileKind::Directory && !times.contains(&now.mtime))
    }
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The tree is the target, durably; what is staged may go.
    Done,
    /// It is being taken back.
    Back,
}

/// What a journal file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) begin: Begin,
    pub(super) switch: Option<Switch>,
    pub(super) verdict: Option<Verdict>,
}

/// A journal that is being written.
pub(super) struct Journal {
    disk: Disk,
    file: File,
    end: u64,
}

impl Journal {
    /// Creates the journal of `op`, durable when this returns. If it fails nothing is left of it.
    pub(super) fn create(disk: &Disk, dir: BorrowedFd<'_>, op: &str, begin: &Begin) -> io::Result<Self> {
        let name = file_name(op);
        let file = File::from(disk.create(dir, &*name, OFlags::RDWR, Mode::from_raw_mode(0o600))?);
        let mut bytes = Vec::from(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend(record(Kind::Begin, &begin.encode()));
        let written = disk
            .write_all_at(&file, &bytes, 0)
            .and_then(|()| disk.fsync(&file))
            .and_then(|()| disk.fsync(dir));
        if let Err(error) = written {
            // If this fails too, recovery finds a rollback that has touched nothing.
            let _ = disk.unlink(dir, &*name);
            return Err(error);
        }
        Ok(Self { disk: disk.clone(), file, end: bytes.len() as u64 })
    }

    /// Takes a journal up again, to write its verdict.
    pub(super) fn reopen(
        disk: &Disk,
        dir: BorrowedFd<'_>,
        op: &str,
        contents: &Contents,
    ) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(dir, &*file_name(op), flags, Mode::empty())?);
        let mut end = HEADER + record(Kind::Begin, &contents.begin.encode()).len();
        if let Some(switch) = &contents.switch {
            end += record(Kind::Switch, &switch.encode()).len();
        }
        Ok(Self { disk: disk.clone(), file, end: end as u64 })
    }

    /// From now on the rollback goes forward after a crash. If this fails, it may be on record all the same: whether it
    /// may be is the second answer.
    pub(super) fn switch(&mut self, switch: &Switch) -> (io::Result<()>, bool) {
        let mut bytes = record(Kind::Switch, &switch.encode());
        let (start, end) = (self.end, self.end + bytes.len() as u64);
        bytes.resize(bytes.len() + FRAME, 0);
        let written =
            self.disk.write_all_at(&self.file, &bytes, start).and_then(|()| self.disk.fsync(&self.file));
        if written.is_err() {
            // Which takes no space, should that be what is missing.
            let withdrawn = self.disk.set_len(&self.file, start).and_then(|()| self.disk.fsync(&self.file));
            if withdrawn.is_ok() {
                return (written, false);
            }
        }
        self.end = end;
        (written, true)
    }

    /// Decides how it ends. A verdict that could not be made durable can be replaced by the other one.
    pub(super) fn decide(&self, verdict: Verdict) -> io::Result<()> {
        let kind = match verdict {
            Verdict::Done => Kind::Done,
            Verdict::Back => Kind::Back,
        };
        self.disk.write_all_at(&self.file, &record(kind, &[]), self.end)?;
        self.disk.fsync(&self.file)
    }
}

/// Removes the journal of `op`.
pub(super) fn remove(disk: &Disk, dir: BorrowedFd<'_>, op: &str) -> io::Result<()> {
    match disk.unlink(dir, &*file_name(op)) {
        // It is gone already, perhaps not durably.
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    disk.fsync(dir)
}

/// The operations that have a journal, sorted.
pub(super) fn operations(dir: BorrowedFd<'_>) -> io::Result<Vec<String>> {
    let fd = crate::fs::open_for_reading(dir, c".")?;
    let mut found: Vec<String> = super::places::list(&fd)?
        .iter()
        .filter_map(|name| str::from_utf8(name.as_bytes().strip_suffix(SUFFIX)?).ok().map(str::to_owned))
        .collect();
    found.sort();
    Ok(found)
}

/// What the journal of `op` says; `None` if it was cut short before anything was touched.
pub(super) fn read(dir: BorrowedFd<'_>, op: &str) -> Result<Option<Contents>> {
    let what = || format!("the journal of rollback {op}");
    let name = Name::new(file_name(op)).map_err(|_| Error::Corrupt(format!("name of {}", what())))?;
    let read = crate::durable::read(dir, &name, u64::MAX - 1).context(|| format!("read {}", what()))?;
    let Some(bytes) = read else { return Ok(None) };
    let Some((header, _)) = bytes.split_at_checked(HEADER) else { return Ok(None) };
    let (magic, version) = header.split_at(MAGIC.len());
    let version = version.try_into().map(u32::from_le_bytes).unwrap_or_default();
    if magic == MAGIC && version != VERSION {
        return Err(Error::NewerFormat { what: what(), found: version, known: VERSION });
    }
    let damaged = || {
        Error::Corrupt(format!(
            "{}: what it has put aside stays in the workspace, in .cofferdam-{op}; take from there what is needed, \
             remove {op}.journal from the state directory, and after a restart the tree before it is in the trash",
            what()
        ))
    };
    let (begin, at) = match records::find(&bytes, HEADER) {
        Found::Sound(Kind::Begin, begin, end) if magic == MAGIC => (begin, end),
        Found::Torn => return Ok(None),
        _ => return Err(damaged()),
    };
    let begin = Begin::decode(begin).map_err(|_| damaged())?;
    let (switch, at) = match records::find(&bytes, at) {
        Found::Sound(Kind::Switch, switch, end) => (switch, end),
        Found::Torn => return Ok(Some(Contents { begin, switch: None, verdict: None })),
        _ => return Err(damaged()),
    };
    let switch = Switch::decode(switch).map_err(|_| damaged())?;
    let verdict = match records::verdict(&bytes, at) {
        Found::Sound(Kind::Done, ..) => Some(Verdict::Done),
        Found::Sound(Kind::Back, ..) => Some(Verdict::Back),
        Found::Torn => None,
        _ => return Err(damaged()),
    };
    Ok(Some(Contents { begin, switch: Some(switch), verdict }))
}

fn file_name(op: &str) -> Vec<u8> {
    [op.as_bytes(), SUFFIX].concat()
}

impl Begin {
    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.bytes(self.workspace.as_str().as_bytes()).bytes(self.path.as_os_str().as_bytes());
        out.bytes(self.root.as_bytes());
        out.uint(self.peer.uid.into()).uint(self.peer.gid.into()).uint(self.peer.groups.len() as u64);
        self.peer.groups.iter().for_each(|gid| {
            out.uint((*gid).into());
        });
        out.id(&self.live).id(&self.target);
        put_time(&mut out, self.captured_from);
        out.uint(self.staging.len() as u64);
        self.staging.iter().for_each(|path| {
            out.bytes(path.as_bytes());
        });
        out.uint(self.dirs.len() as u64);
        for dir in &self.dirs {
            out.bytes(dir.path.as_bytes()).bytes(dir.identity.as_bytes()).uint(dir.mode.into());
            put_time(&mut out, dir.mtime);
            out.byte(dir.widen.into());
        }
        out.finish()
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, Malformed> {
        let mut input = Decoder::new("begin record", bytes);
        let input = &mut input;
        let workspace = str::from_utf8(input.bytes()?).map_err(|_| input.malformed())?;
        let workspace = WorkspaceId::new(workspace).map_err(|_| input.malformed())?;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(input.bytes()?));
        let root = FileIdentity::from_bytes(input.bytes()?);
        let (uid, gid) = (input.uint32()?, input.uint32()?);
        let groups = take_list(input, |input| input.uint32())?;
        let (live, target) = (input.id()?, input.id()?);
        let captured_from = take_time(input)?;
        let staging = take_list(input, take_path)?;
        let dirs = take_list(input, |input| {
            Ok(DirState {
                path: take_path(input)?,
                identity: FileIdentity::from_bytes(input.bytes()?),
                mode: input.uint32()?,
                mtime: take_time(input)?,
                widen: take_flag(input)?,
            })
        })?;
        input.end()?;
        let peer = Peer { uid, gid, groups };
        Ok(Self { workspace, path, root, peer, live, target, captured_from, staging, dirs })
    }
}

impl Switch {
    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.uint(self.steps.len() as u64);
        for step in &self.steps {
            out.bytes(step.path.as_bytes());
            match &step.how {
                How::Move { staging, slot, old, new, suspect } => {
                    out.byte(0).uint(*staging as u64).bytes(slot.as_bytes());
                    put_seen(&mut out, old.as_ref());
                    put_seen(&mut out, new.as_ref());
                    out.byte((*suspect).into());
                }
                How::Remove { old, meta, refilled } => {
                    out.byte(1);
                    put_seen(&mut out, Some(old));
                    meta.encode(&mut out);
                    out.byte((*refilled).into());
                }
            }
        }
        out.uint(self.metas.len() as u64);
        for step in &self.metas {
            out.bytes(step.path.as_bytes());
            put_seen(&mut out, Some(&step.seen));
            out.byte(step.old.is_some().into());
            if let Some(old) = &step.old {
                old.encode(&mut out);
            }
            step.new.encode(&mut out);
        }
        out.finish()
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, Malformed> {
        let mut input = Decoder::new("switch record", bytes);
        let input = &mut input;
        let steps = take_list(input, |input| {
            let path = take_path(input)?;
            let how = match input.byte()? {
                0 => How::Move {
                    staging: usize::try_from(input.uint()?).map_err(|_| input.malformed())?,
                    slot: Name::new(input.bytes()?).map_err(|_| input.malformed())?,
                    old: take_seen(input)?,
                    new: take_seen(input)?,
                    suspect: take_flag(input)?,
                },
                1 => How::Remove {
                    old: take_seen(input)?.ok_or(input.malformed())?,
                    meta: Meta::decode(input)?,
                    refilled: take_flag(input)?,
                },
                _ => return Err(input.malformed()),
            };
            Ok(Step { path, how })
        })?;
        let metas = take_list(input, |input| {
            Ok(MetaStep {
                path: take_path(input)?,
                seen: take_seen(input)?.ok_or(input.malformed())?,
                old: if take_flag(input)? { Some(Meta::decode(input)?) } else { None },
                new: Meta::decode(input)?,
            })
        })?;
        input.end()?;
        Ok(Self { steps, metas })
    }
}

/// Their numbers are part of the format.
const KINDS: [FileKind; 8] = [
    FileKind::File,
    FileKind::Directory,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
    FileKind::MountPoint,
];

fn put_seen(out: &mut Encoder, seen: Option<&Seen>) {
    let Some(seen) = seen else {
        out.byte(0);
        return;
    };
    let kind = KINDS.iter().position(|kind| *kind == seen.kind).unwrap_or_default();
    out.byte(1 + kind as u8).bytes(seen.identity.as_bytes()).uint(seen.size);
    put_time(out, seen.mtime);
    put_time(out, seen.ctime);
}

fn take_seen(input: &mut Decoder<'_>) -> std::result::Result<Option<Seen>, Malformed> {
    let Some(kind) = usize::from(input.byte()?).checked_sub(1) else { return Ok(None) };
    Ok(Some(Seen {
        kind: *KINDS.get(kind).ok_or(input.malformed())?,
        identity: FileIdentity::from_bytes(input.bytes()?),
        size: input.uint()?,
        mtime: take_time(input)?,
        ctime: take_time(input)?,
    }))
}

fn put_time(out: &mut Encoder, time: Timestamp) {
    out.int(time.secs).uint(time.nanos.into());
}

fn take_time(input: &mut Decoder<'_>) -> std::result::Result<Timestamp, Malformed> {
    Ok(Timestamp { secs: input.int()?, nanos: input.uint32()? })
}

fn take_flag(input: &mut Decoder<'_>) -> std::result::Result<bool, Malformed> {
    match input.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(input.malformed()),
    }
}

fn take_path(input: &mut Decoder<'_>) -> std::result::Result<RelPath, Malformed> {
    RelPath::new(input.bytes()?).map_err(|_| input.malformed())
}

fn take_list<'a, T>(
    input: &mut Decoder<'a>,
    mut item: impl FnMut(&mut Decoder<'a>) -> std::result::Result<T, Malformed>,
) -> std::result::Result<Vec<T>, Malformed> {
    let count = input.uint()?;
    (0..count).map(|_| item(input)).collect()
}
