//! Writes that came after the safety snapshot was captured, found in what the switch displaced.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::LateWrites;
use super::journal::{How, MetaStep, Step};
use super::places::{Places, Seen, under};
use super::plan::MOUNTED;
use super::switch::{Rule, parking};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{Entry, EntryKind, ObjectId, ObjectSource, Timestamp, Tree};
use crate::ckpt::model::{FileKind, Warning, WarningKind};
use crate::fs::{FileIdentity, Stat};
use crate::path::{Name, RelPath};
use crate::sys::{Writers, writers};

/// Looks through displaced things and gives what may be newer to the safety snapshot.
pub(super) struct Inspector<'a> {
    pub(super) places: &'a Places<'a>,
    pub(super) source: &'a dyn ObjectSource,
    pub(super) staging: &'a [RelPath],
    /// When the capture of the safety snapshot began.
    pub(super) captured_from: Timestamp,
    /// Files that stay in the tree and whose metadata we change: under whatever other name they are displaced, nothing
    /// of them is lost, and their times say nothing.
    pub(super) staying: HashSet<&'a FileIdentity>,
    pub(super) late: &'a mut dyn LateWrites,
    /// What was kept, and whether anything was.
    pub(super) warnings: Vec<Warning>,
}

/// Whether something is as a capture that began at `from` has it; times and size decide. A directory always is:
/// what counts is in it.
pub(super) fn as_captured(seen: &Seen, entry: &Entry, from: Timestamp) -> bool {
    let size = match entry.kind {
        EntryKind::File { size, .. } => size,
        _ => 0,
    };
    seen.kind == entry.kind.file_kind()
        && (seen.kind == FileKind::Directory
            || (seen.size == size && seen.mtime == entry.meta.mtime && !since(seen.ctime, from)))
}

/// Whether a change at `time` may have come after `from`. File times lag behind the clock by a tick, and on some
/// filesystems they count in steps of two seconds.
pub(super) fn since(time: Timestamp, from: Timestamp) -> bool {
    const TICK: i128 = 20_000_000;
    const COARSE: i128 = 2_000_000_000;
    let nanos = |time: Timestamp| i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
    nanos(time) + if time.nanos == 0 { COARSE } else { TICK } >= nanos(from)
}

impl Inspector<'_> {
    /// What a step displaced and did not put back. `suspect`: it was not what is on record, or nobody knows.
    pub(super) fn displaced(&mut self, step: &Step, suspect: bool, live: &ObjectId) -> Result<()> {
        let How::Move { slot, .. } = &step.how else { return Ok(()) };
        let parked = parking(slot).context(|| format!("look at what was at {}", step.path))?;
        [slot, &parked].into_iter().try_for_each(|name| self.displaced_as(name, step, suspect, live))
    }

    fn displaced_as(&mut self, slot: &Name, step: &Step, suspect: bool, live: &ObjectId) -> Result<()> {
        let How::Move { staging, old, new, suspect: before, .. } = &step.how else { return Ok(()) };
        let Some((area, path, found)) = self.find(*staging, slot, &step.path, new.as_ref())? else {
            return Ok(());
        };
        if found.kind == FileKind::Directory
            && let Some(Entry { kind: EntryKind::Directory(Some(node)), .. }) =
                Tree::new(self.source, *live).lookup(&step.path)?
        {
            return self.directory(&path, &step.path, node);
        }
        if found.kind == FileKind::Directory {
            find_mounts(self.places, &path)?;
        }
        let known = old.as_ref().is_some_and(|old| found.is(old) && found.holds(old));
        if suspect || *before || !known || may_write(writers_of(&area, slot, found.kind)) {
            self.keep(&step.path, &area, slot)?;
        }
        Ok(())
    }

    /// What a step displaced being taken back: the target's, for which the safety snapshot has at best another thing
    /// at that path. So a directory with anything newer in it is kept whole.
    pub(super) fn taken_back(&mut self, step: &Step, target: &ObjectId) -> Result<()> {
        let How::Move { staging, slot, new: Some(new), .. } = &step.how else { return Ok(()) };
        let Some((area, path, found)) = self.find(*staging, slot, &step.path, None)? else { return Ok(()) };
        if !found.is(new) {
            return Ok(());
        }
        let node = match found.kind {
            FileKind::Directory => Tree::new(self.source, *target).lookup(&step.path)?,
            _ => None,
        };
        let node = node.and_then(|entry| match entry.kind {
            EntryKind::Directory(node) => node,
            _ => None,
        });
        let newer = match (found.kind, node) {
            (FileKind::Directory, Some(node)) => {
                let mut newer = false;
                compare(self.places, self.source, &path, node, None, &mut |_, _, _| {
                    newer = true;
                    Ok(())
                })?;
                newer
            }
            _ => !found.holds(new) || do_write(writers_of(&area, slot, found.kind)),
        };
        if newer { self.keep(&step.path, &area, slot) } else { Ok(()) }
    }

    /// Something that stays where it is and gets other metadata.
    pub(super) fn in_place(&mut self, step: &MetaStep, rule: Rule) -> Result<()> {
        let what = || format!("look at {}", step.path);
        let Some((parent, name)) = step.path.split() else { return Ok(()) };
        let Some(dir) = self.places.dir(&parent).context(what)? else { return Ok(()) };
        let Some(now) = self.places.see(&*dir, &name).context(what)? else { return Ok(()) };
        // After a crash the time of change may be our own doing.
        if step.is_written(&now) || (rule == Rule::Displace && since(now.ctime, self.captured_from)) {
            if_readable(self.keep(&step.path, &dir, &name))?;
        }
        Ok(())
    }

    /// Something newer was left where it is.
    pub(super) fn left(&mut self, path: &RelPath) {
        self.warnings.push(Warning { path: path.clone(), kind: WarningKind::LateWrite });
    }

    /// The same, going forward: if it is a later state of what was there before the rollback, the safety snapshot takes
    /// it in. That may have the only copy of everything else that was there, so nothing takes the place of that.
    pub(super) fn left_forward(&mut self, step: &Step, live: &ObjectId) -> Result<()> {
        let path = &step.path;
        self.left(path);
        let what = || format!("look at {path}");
        let (Some((parent, name)), How::Move { staging, slot, new, .. }) = (path.split(), &step.how) else {
            return Ok(());
        };
        let captured = Tree::new(self.source, *live).lookup(path)?;
        let parked = parking(slot).context(what)?;
        if captured.is_some_and(|entry| entry.kind.file_kind() == FileKind::Directory)
            || self.find(*staging, slot, path, new.as_ref())?.is_some()
            || self.find(*staging, &parked, path, new.as_ref())?.is_some()
        {
            return Ok(());
        }
        let Some(dir) = self.places.dir(&parent).context(what)? else { return Ok(()) };
        if self.places.see(&*dir, &name).context(what)?.is_some() {
            if_readable(keep(self.late, path, &dir, &name))?;
        }
        Ok(())
    }

    /// Gives something to the safety snapshot; if that did not have it, the user is told.
    fn keep(&mut self, path: &RelPath, dir: &OwnedFd, name: &Name) -> Result<()> {
        if keep(self.late, path, dir, name)? {
            self.warnings.push(Warning { path: path.clone(), kind: WarningKind::LateWrite });
        }
        Ok(())
    }

    /// What lies in a staging directory, unless it is what belongs into the tree.
    fn find(
        &self,
        staging: usize,
        slot: &Name,
        path: &RelPath,
        new: Option<&Seen>,
    ) -> Result<Option<(std::rc::Rc<OwnedFd>, RelPath, Seen)>> {
        let what = || format!("look at what was at {path}");
        let Some(at) = self.staging.get(staging) else { return Ok(None) };
        let Some(area) = self.places.dir(at).context(what)? else { return Ok(None) };
        let found = self.places.see(&*area, slot).context(what)?;
        let found = found
            .filter(|found| !new.is_some_and(|new| found.is(new)) && !self.staying.contains(&found.identity));
        Ok(found.map(|found| (area, at.join(slot), found)))
    }

    /// A displaced directory that was captured: whatever in it is not as captured is kept.
    fn directory(&mut self, at: &RelPath, path: &RelPath, node: ObjectId) -> Result<()> {
        let mut kept = Vec::new();
        let (late, staying) = (&mut *self.late, &self.staying);
        let (places, source) = (self.places, self.source);
        let captured_from = self.captured_from;
        compare(places, source, at, node, Some(captured_from), &mut |below, dir, name| {
            let path = under(path, below);
            let found = places.see(dir, name).context(|| format!("look at what was at {path}"))?;
            if found.is_some_and(|found| staying.contains(&found.identity)) {
                return Ok(());
            }
            if keep(late, &path, dir, name)? {
                kept.push(Warning { path, kind: WarningKind::LateWrite });
            }
            Ok(())
        })?;
        self.warnings.extend(kept);
        Ok(())
    }
}

/// Gives something to the safety snapshot. True if that did not have it.
fn keep(late: &mut dyn LateWrites, path: &RelPath, dir: &OwnedFd, name: &Name) -> Result<bool> {
    late.keep(path, dir.as_fd(), name).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            Error::io(format!("keep what was written to {path} meanwhile; make it readable"), source)
        }
        other => other,
    })
}

/// What stays in the tree needs no copy if it cannot be read.
fn if_readable<T: Default>(kept: Result<T>) -> Result<T> {
    match kept {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Ok(T::default()),
        kept => kept,
    }
}

/// Calls `newer` for everything in a directory that is not as a stored one has it, or that somebody may be writing to;
/// for something not in it at all, once for all that is in that. `None` for `captured_from`: the directory was made by
/// this rollback, so times of change tell nothing, and only a writer that is seen counts.
fn compare(
    places: &Places<'_>,
    source: &dyn ObjectSource,
    at: &RelPath,
    node: ObjectId,
    captured_from: Option<Timestamp>,
    newer: &mut dyn FnMut(&RelPath, &OwnedFd, &Name) -> Result<()>,
) -> Result<()> {
    // Directories ahead with their nodes, and the entries of the one that is being looked at.
    let mut nodes = HashMap::from([(RelPath::ROOT, node)]);
    let mut entries = HashMap::new();
    let mut entries_of = None;
    places.walk(at, &mut |below, dir, name, stat| {
        let parent = below.split().map(|(parent, _)| parent).unwrap_or_default();
        if entries_of.as_ref() != Some(&parent) {
            entries.clear();
            if let Some(node) = nodes.remove(&parent) {
                for entry in Tree::new(source, node).entries() {
                    let Entry { name, meta, kind } = entry?;
                    entries.insert(name, (meta.mtime, kind));
                }
            }
            entries_of = Some(parent);
        }
        check_mount(&under(at, below), stat)?;
        match entries.get(name) {
            Some((_, EntryKind::Directory(node))) if stat.kind == FileKind::Directory => {
                nodes.extend(node.map(|node| (below.clone(), node)));
                return Ok(node.is_some());
            }
            Some((mtime, kind))
                if unchanged(stat, *mtime, kind, captured_from) && {
                    let writers = writers_of(dir, name, stat.kind);
                    if captured_from.is_some() { !may_write(writers) } else { !do_write(writers) }
                } => {}
            _ => {
                newer(below, dir, name)?;
                if stat.kind == FileKind::Directory {
                    find_mounts(places, &under(at, below))?;
                }
            }
        }
        Ok(false)
    })
}

/// Fails if something is mounted anywhere beneath a directory.
fn find_mounts(places: &Places<'_>, at: &RelPath) -> Result<()> {
    places.walk(at, &mut |below, _, _, stat| check_mount(&under(at, below), stat).map(|()| true))
}

/// What was mounted after the checks is an error: nothing under a mount is ever moved or deleted.
fn check_mount(path: &RelPath, stat: &Stat) -> Result<()> {
    match stat.kind {
        FileKind::MountPoint => Err(Error::io(format!("{path}: {MOUNTED}"), Errno::BUSY.into())),
        _ => Ok(()),
    }
}

fn unchanged(stat: &Stat, mtime: Timestamp, kind: &EntryKind, captured_from: Option<Timestamp>) -> bool {
    let same_size = !matches!(kind, EntryKind::File { size, .. } if *size != stat.size);
    let since = captured_from.is_some_and(|from| since(stat.ctime, from));
    stat.kind == kind.file_kind() && same_size && stat.mtime == mtime && !since
}

/// Who has a regular file open for writing. Nobody writes to anything else.
fn writers_of(dir: &OwnedFd, name: &Name, kind: FileKind) -> Writers {
    if kind != FileKind::File {
        return Writers::None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name.as_bytes(), flags, Mode::empty()).map_or(Writers::Unknown, writers)
}

fn may_write(writers: Writers) -> bool {
    writers != Writers::None
}

fn do_write(writers: Writers) -> bool {
    writers == Writers::Some
}
