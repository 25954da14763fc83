//! Building everything new in the staging directories, and writing down what is going to change.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::journal::{Begin, How, MetaStep, Step, Switch};
use super::late;
use super::metadata::{Thing, apply};
use super::places::{Places, list};
use super::plan::{Plan, not_in_snapshot};
use super::preflight::Ready;
use super::rights::Rights;
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{
    Content, Entry, EntryKind, Extent, Extents, Meta, ObjectId, ObjectKind, ObjectSource, Tree,
};
use crate::ckpt::model::{Warning, WarningKind};
use crate::fs::{open_for_reading, stat_fd};
use crate::path::{Name, RelPath};

/// Up to so many files are made durable one by one; beyond that the whole filesystem at once is cheaper.
pub(super) const FEW: usize = 32;

/// As many bytes as a file can have.
const WHOLE: NonZeroU64 = NonZeroU64::new(i64::MAX as u64).expect("more than none");

/// Makes the staging directories and everything in them, durably.
pub(super) struct Stage<'a> {
    plan: &'a Plan,
    ready: &'a Ready,
    places: &'a Places<'a>,
    source: &'a dyn ObjectSource,
    rights: &'a Rights,
    begin: &'a Begin,
    /// Where the first name of each group of hard links lies: the directory, and the name in it.
    linked: HashMap<usize, (RelPath, Name)>,
    warnings: Vec<Warning>,
    switch: Switch,
    /// Files and directories that were made and are not durable yet, if there are few.
    unsynced: Vec<Rc<OwnedFd>>,
}

/// What is still to be done for a directory in the staging area, given with its path there and in the target.
enum Todo {
    Fill(RelPath, RelPath, ObjectId),
    Finish(RelPath, RelPath, Meta),
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        ready: &'a Ready,
        places: &'a Places<'a>,
        source: &'a dyn ObjectSource,
        rights: &'a Rights,
        begin: &'a Begin,
    ) -> Self {
        let kept = plan.links.kept.iter().enumerate();
        let linked = kept.filter_map(|(group, path)| Some((group, path.as_ref()?.split()?))).collect();
        Self {
            plan,
            ready,
            places,
            source,
            rights,
            begin,
            linked,
            warnings: Vec::new(),
            switch: Switch::default(),
            unsynced: Vec::new(),
        }
    }

    /// Builds everything. When this returns it is durable, and what it returns is all that is left to do.
    pub(super) fn build(mut self) -> Result<(Switch, Vec<Warning>)> {
        for path in &self.begin.staging {
            self.make_staging(path).context(|| format!("make {path}"))?;
        }
        // Victims go first: a directory that ignores case would take a new name for an old one.
        let (gone, new): (Vec<_>, Vec<_>) =
            self.plan.changes.iter().partition(|(_, pair)| pair.new.is_none());
        let mut steps = Vec::with_capacity(self.plan.changes.len() + self.plan.emptied.len());
        for (path, _) in gone {
            steps.extend(self.step(path, None, steps.len())?);
        }
        for (path, meta) in self.plan.emptied.iter().rev() {
            steps.extend(self.emptied(path, meta)?);
        }
        for (path, pair) in new {
            steps.extend(self.step(path, pair.new.as_ref(), steps.len())?);
        }
        self.switch.steps = steps;
        self.metas()?;
        self.sync_made().context(|| "make what was restored durable".to_owned())?;
        for path in &self.begin.staging {
            self.sync(path).context(|| format!("make {path} durable"))?;
        }
        Ok((self.switch, self.warnings))
    }

    fn make_staging(&self, path: &RelPath) -> io::Result<()> {
        let Some((parent, name)) = path.split() else { return Ok(()) };
        let disk = self.places.disk;
        let parent = self.places.must(&parent)?;
        disk.mkdir(&parent, name.as_bytes(), Mode::RWXU)?;
        // What a parent directory hands down to new files must not reach what is built in here.
        let dir = open_for_reading(&parent, name.as_bytes())?;
        if !list(&dir)?.is_empty() {
            return Err(replaced());
        }
        self.places.know(path, &dir)?;
        for acl in [c"system.posix_acl_default", c"system.posix_acl_access"] {
            match disk.fremovexattr(&dir, acl) {
                Err(error)
                    if !matches!(Errno::from_io_error(&error), Some(Errno::NODATA | Errno::NOTSUP)) =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        disk.fchmod(&dir, Mode::RWXU)
    }

    /// Stages what a name gets, and records what stands there.
    fn step(&mut self, path: &RelPath, new: Option<&Entry>, index: usize) -> Result<Option<Step>> {
        let what = || format!("prepare {path}");
        let Some((parent, name)) = path.split() else { return Ok(None) };
        let staging = self.ready.staging_of.get(&parent).copied().unwrap_or_default();
        let area = &self.begin.staging[staging];
        let dir = self.places.must(area).context(what)?;
        let slot = Name::new(index.to_string().into_bytes()).map_err(|_| Error::Corrupt(what()))?;
        if let Some(entry) = new {
            self.make(&dir, area, &slot, path, entry)?;
        }
        let new = if new.is_some() { self.places.see(&*dir, &slot).context(what)? } else { None };
        // A directory that is emptied one by one is not there any more when its name is filled again.
        let old = if self.plan.emptied.contains_key(path) {
            None
        } else {
            let parent = self.places.must(&parent).context(what)?;
            self.places.see(&*parent, &name).context(what)?
        };
        let captured = self.plan.changes.get(path).and_then(|pair| pair.old.as_ref());
        let suspect = match (&old, captured) {
            (Some(old), Some(captured)) => !late::as_captured(old, captured, self.begin.captured_from),
            (old, captured) => old.is_some() != captured.is_some(),
        };
        let how = How::Move { staging, slot, old, new, suspect };
        Ok(Some(Step { path: path.clone(), how }))
    }

    fn emptied(&self, path: &RelPath, meta: &Meta) -> Result<Option<Step>> {
        let what = || format!("prepare {path}");
        let Some((parent, name)) = path.split() else { return Ok(None) };
        let parent = self.places.must(&parent).context(what)?;
        let Some(old) = self.places.see(&*parent, &name).context(what)? else { return Ok(None) };
        Ok(Some(Step {
            path: path.clone(),
            how: How::Remove { old, meta: meta.clone(), refilled: self.plan.changes.contains_key(path) },
        }))
    }

    /// Records everything that gets other metadata where it is.
    fn metas(&mut self) -> Result<()> {
        let plan = self.plan;
        let states: HashMap<_, _> = self.begin.dirs.iter().map(|state| (&state.path, state)).collect();
        let files = plan.metas.iter().map(|(path, pair)| (path, &pair.old.meta, &pair.new.meta));
        let dirs = plan.dirs.iter().rev().map(|(path, pair)| (path, &pair.old, &pair.new));
        for (path, old, new) in files.chain(dirs) {
            let what = || format!("prepare {path}");
            let seen = match path.split() {
                Some((parent, name)) => {
                    let parent = self.places.must(&parent).context(what)?;
                    self.places.see(&*parent, &name).context(what)?
                }
                None => self.places.see_root().context(what).map(Some)?,
            };
            // Whatever has vanished meanwhile needs nothing.
            let Some(mut seen) = seen else { continue };
            let mut old = old.clone();
            // Whether it is written to is told by what was captured of it.
            if let Some(EntryKind::File { size, .. }) = plan.metas.get(path).map(|pair| &pair.old.kind) {
                seen.size = *size;
            }
            if let Some(state) = states.get(path) {
                (old.mode, old.mtime) = (state.mode, state.mtime);
            }
            let (path, new) = (path.clone(), new.clone());
            self.switch.metas.push(MetaStep { path, seen, old: Some(old), new });
        }
        Ok(())
    }

    /// Makes `entry` of the target's `path` at a name in a directory of the staging area.
    fn make(
        &mut self,
        dir: &OwnedFd,
        area: &RelPath,
        slot: &Name,
        path: &RelPath,
        entry: &Entry,
    ) -> Result<()> {
        let EntryKind::Directory(node) = &entry.kind else {
            return self.make_leaf(dir, area, slot, path, entry);
        };
        let what = || format!("restore {path}");
        self.make_directory(dir, slot, path, *node).context(what)?;
        let mut ahead = vec![Todo::Finish(area.join(slot), path.clone(), self.attainable(path, entry))];
        ahead.extend(node.map(|node| Todo::Fill(area.join(slot), path.clone(), node)));
        while let Some(todo) = ahead.pop() {
            match todo {
                Todo::Fill(at, path, node) => self.fill(&at, &path, node, &mut ahead)?,
                Todo::Finish(at, of, mut meta) => {
                    let what = || format!("restore {of}");
                    let made = self.places.must(&at).context(what)?;
                    if of == *path {
                        // A directory must be writable to be moved, and on some filesystems that touches its time: so
                        // it gets everything once more after the move.
                        let seen = self.places.see(dir, slot).context(what)?;
                        self.switch.metas.extend(seen.map(|seen| MetaStep {
                            path: of.clone(),
                            seen,
                            old: None,
                            new: meta.clone(),
                        }));
                        meta.mode |= 0o700;
                    }
                    self.set(Thing::Open(made.as_fd()), &of, &meta)?;
                    self.sync_later(made);
                }
            }
        }
        Ok(())
    }

    /// Makes everything in a directory but what is in its directories.
    fn fill(&mut self, at: &RelPath, path: &RelPath, node: ObjectId, ahead: &mut Vec<Todo>) -> Result<()> {
        let dir = self.places.must(at).context(|| format!("restore {path}"))?;
        for entry in Tree::new(self.source, node).entries() {
            let entry = self.rights.view.show(entry?);
            let path = path.join(&entry.name);
            if let Some(kind) = not_in_snapshot(&entry.kind) {
                self.warn(&path, kind);
                continue;
            }
            let EntryKind::Directory(node) = &entry.kind else {
                self.make_leaf(&dir, at, &entry.name, &path, &entry)?;
                continue;
            };
            self.make_directory(&dir, &entry.name, &path, *node).context(|| format!("restore {path}"))?;
            let (at, meta) = (at.join(&entry.name), self.attainable(&path, &entry));
            ahead.push(Todo::Finish(at.clone(), path.clone(), meta));
            ahead.extend(node.map(|node| Todo::Fill(at, path, node)));
        }
        Ok(())
    }

    fn make_directory(
        &mut self,
        dir: &OwnedFd,
        name: &Name,
        path: &RelPath,
        node: Option<ObjectId>,
    ) -> io::Result<()> {
        if node.is_none() {
            self.warn(path, WarningKind::Unreadable);
        }
        self.places.disk.mkdir(dir, name.as_bytes(), Mode::RWXU)
    }

    fn make_leaf(
        &mut self,
        dir: &OwnedFd,
        at: &RelPath,
        name: &Name,
        path: &RelPath,
        entry: &Entry,
    ) -> Result<()> {
        let what = || format!("restore {path}");
        let disk = self.places.disk;
        let group = self.plan.links.group(path);
        if let Some(group) = group
            && self.link(group, dir, name).context(what)?
        {
            return Ok(());
        }
        let meta = self.attainable(path, entry);
        match &entry.kind {
            EntryKind::File { size, content } => {
                let flags = OFlags::WRONLY;
                let file = File::from(
                    disk.create(dir, name.as_bytes(), flags, Mode::RUSR | Mode::WUSR).context(what)?,
                );
                self.write(&file, path, *size, *content)?;
                self.set(Thing::Open(file.as_fd()), path, &meta)?;
                self.sync_later(Rc::new(file.into()));
            }
            EntryKind::Symlink(target) => {
                disk.symlink(&**target, dir, name.as_bytes()).context(what)?;
                self.set_made(dir, name, path, entry, &meta)?;
            }
            kind => {
                let (kind, device) = match kind {
                    EntryKind::Socket => (FileType::Socket, 0),
                    EntryKind::CharDevice(major, minor) => {
                        (FileType::CharacterDevice, rustix::fs::makedev(*major, *minor))
                    }
                    EntryKind::BlockDevice(major, minor) => {
                        (FileType::BlockDevice, rustix::fs::makedev(*major, *minor))
                    }
                    _ => (FileType::Fifo, 0),
                };
                disk.mknod(dir, name.as_bytes(), kind, Mode::RUSR | Mode::WUSR, device).context(what)?;
                self.set_made(dir, name, path, entry, &meta)?;
            }
        }
        if let Some(group) = group {
            self.linked.insert(group, (at.clone(), name.clone()));
        }
        Ok(())
    }

    /// Makes a name a link to the file of its group, if there is one yet.
    fn link(&mut self, group: usize, dir: &OwnedFd, name: &Name) -> io::Result<bool> {
        let Some((at, first)) = self.linked.get(&group) else { return Ok(false) };
        let Some(from) = self.places.dir(at)? else { return Ok(false) };
        match self.places.disk.link((&from, first.as_bytes()), (dir, name.as_bytes())) {
            Ok(()) => Ok(true),
            // It is gone, or on another filesystem by now: the next best thing is a file of its own.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::XDEV)) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a file's content; holes stay holes.
    fn write(&self, file: &File, path: &RelPath, size: u64, content: Content) -> Result<()> {
        let what = || format!("restore {path}");
        let disk = self.places.disk;
        let mut offset = 0;
        match content {
            Content::Empty | Content::Unread => {}
            Content::Whole(id) => {
                let bytes = self.source.get(ObjectKind::Data, &id)?;
                disk.write_all_at(file, &bytes, 0).context(what)?;
                offset = bytes.len() as u64;
            }
            Content::Extents(id) => {
                let bytes = self.source.get(ObjectKind::Extents, &id)?;
                let extents = Extents::decode(&bytes)
                    .map_err(|malformed| Error::Corrupt(format!("content of {path}: {malformed}")))?;
                if extents.0.iter().any(|extent| matches!(extent, Extent::Hole(_))) {
                    // First, or some filesystems would fill holes with space they set aside for appending.
                    disk.set_len(file, size).context(what)?;
                }
                for extent in &extents.0 {
                    offset += match extent {
                        Extent::Hole(len) => *len,
                        Extent::Data(_, id) => {
                            let bytes = self.source.get(ObjectKind::Data, id)?;
                            disk.write_all_at(file, &bytes, offset).context(what)?;
                            bytes.len() as u64
                        }
                    };
                }
            }
        }
        if offset == size {
            Ok(())
        } else {
            Err(Error::Corrupt(format!("content of {path}: {offset} bytes")))
        }
    }

    /// Gives something that was made by its name its metadata. A staging directory may be another user's to write to:
    /// what has the name by now must look like what was made, and be nothing that has another name too.
    fn set_made(
        &mut self,
        dir: &OwnedFd,
        name: &Name,
        path: &RelPath,
        entry: &Entry,
        meta: &Meta,
    ) -> Result<()> {
        let what = || format!("restore {path}");
        let (held, seen) =
            self.places.hold(dir, name).and_then(|held| held.ok_or_else(replaced)).context(what)?;
        let now = stat_fd(&held).context(what)?;
        let device = match entry.kind {
            EntryKind::CharDevice(major, minor) | EntryKind::BlockDevice(major, minor) => (major, minor),
            _ => (0, 0),
        };
        if (seen.kind, now.rdev) != (entry.kind.file_kind(), device) || now.nlink > 1 {
            return Err(Error::io(what(), replaced()));
        }
        self.set(Thing::Held(held.as_fd()), path, meta)
    }

    /// Gives something new its metadata.
    fn set(&mut self, thing: Thing<'_>, path: &RelPath, meta: &Meta) -> Result<()> {
        let less = apply(self.places.disk, thing, &[], meta).context(|| format!("restore {path}"))?;
        self.warn_if(less, path);
        Ok(())
    }

    /// The part of the target's metadata that we can give.
    fn attainable(&mut self, path: &RelPath, entry: &Entry) -> Meta {
        let program = !matches!(entry.kind, EntryKind::Directory(_));
        let (meta, less) = self.rights.attainable(&entry.meta, None, program);
        self.warn_if(less, path);
        meta
    }

    fn warn_if(&mut self, less: bool, path: &RelPath) {
        if less {
            self.warn(path, WarningKind::OwnerNotRestored);
        }
    }

    fn warn(&mut self, path: &RelPath, kind: WarningKind) {
        self.warnings.push(Warning { path: path.clone(), kind });
    }

    fn few(&self) -> bool {
        self.ready.to_make <= FEW as u64
    }

    fn sync_later(&mut self, made: Rc<OwnedFd>) {
        if self.few() {
            self.unsynced.push(made);
        }
    }

    /// Makes every single file and directory durable. Only now, and with all their bytes on the way already: then the
    /// first one takes the filesystem's journal with it, and the others find little to do.
    fn sync_made(&self) -> io::Result<()> {
        let disk = self.places.disk;
        for made in &self.unsynced {
            // Which only saves time.
            let _ = disk.begin_writeback(made, 0, WHOLE);
        }
        self.unsynced.iter().try_for_each(|made| disk.fsync(made))
    }

    /// Makes a staging area durable, its name included. With few files their own bytes already are.
    fn sync(&self, area: &RelPath) -> io::Result<()> {
        let disk = self.places.disk;
        let dir = self.places.must(area)?;
        if !self.few() {
            return disk.syncfs(&dir);
        }
        disk.fsync(&dir)?;
        match area.split() {
            Some((parent, _)) => disk.fsync(&*self.places.must(&parent)?),
            None => Ok(()),
        }
    }
}

/// Somebody else changes the staging directory.
fn replaced() -> io::Error {
    io::Error::other("what was made was replaced meanwhile; try again")
}
