//! One rollback on its way: forward to the target, or back to what was there.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, AtFlags, Mode, OFlags};

use super::journal::{Begin, DirState, MetaStep, Switch};
use super::late::Inspector;
use super::metadata::{Thing, Xattr, apply, mtime};
use super::places::Places;
use super::stage::FEW;
use super::switch::{Found, Rule, Switcher};
use super::{LateWrites, Outcome};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{Meta, ObjectSource, Timestamp};
use crate::ckpt::model::{FileKind, Warning, WarningKind};
use crate::disk::Disk;
use crate::fs::{FileIdentity, Root, Stat, remove_tree, stat, stat_fd};
use crate::path::{Name, RelPath};
use crate::peer::PeerRights;

/// What a rollback that has a journal works with.
pub(super) struct Operation<'a> {
    pub(super) begin: &'a Begin,
    pub(super) places: Places<'a>,
    pub(super) source: &'a dyn ObjectSource,
    /// How to treat what is not on record.
    pub(super) rule: Rule,
}

impl<'a> Operation<'a> {
    /// Directories must be those of the journal; those that are removed and made again may be others.
    pub(super) fn new(
        disk: &'a Disk,
        root: &'a Root,
        source: &'a dyn ObjectSource,
        begin: &'a Begin,
        made_again: impl IntoIterator<Item = RelPath>,
        rule: Rule,
    ) -> Result<Self> {
        let mut known: HashMap<_, _> =
            begin.dirs.iter().map(|dir| (dir.path.clone(), dir.identity.clone())).collect();
        for path in made_again {
            known.remove(&path);
        }
        let places = Places::new(disk, root, known).context(|| "look at the workspace".to_owned())?;
        Ok(Self { begin, places, source, rule })
    }

    /// Makes directories of our own writable for the time being.
    pub(super) fn widen(&self) -> Result<()> {
        let _rights = self.enter()?;
        let mut dirs = self.begin.dirs.iter().filter(|dir| dir.widen);
        dirs.try_for_each(|dir| self.widen_one(&dir.path, &dir.identity))
    }

    /// Makes a directory writable, if it is the one on record.
    fn widen_one(&self, path: &RelPath, identity: &FileIdentity) -> Result<()> {
        let what = || format!("make {path} writable");
        match self.places.dir(path) {
            Ok(Some(dir)) if self.places.is(&dir, identity).context(what)? => {
                widen(self.places.disk, &dir).context(what)
            }
            Ok(_) => Ok(()),
            // One that may not even be listed.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let Some((parent, name)) = path.split() else { return Err(Error::io(what(), error)) };
                let Some(dir) = self.places.dir(&parent).context(what)? else { return Ok(()) };
                match self.places.hold(&*dir, &name).context(what)? {
                    Some((held, now))
                        if now.kind == FileKind::Directory
                            && self.places.is(&held, identity).context(what)? =>
                    {
                        self.places.disk.chmod_held(held, Mode::RWXU).context(what)
                    }
                    _ => Ok(()),
                }
            }
            Err(error) => Err(Error::io(what(), error)),
        }
    }

    /// Carries out everything on record, and makes it durable.
    pub(super) fn go_forward(&self, switch: &Switch, late: &mut dyn LateWrites) -> Result<Vec<Warning>> {
        let disk = self.places.disk;
        let rights = self.enter()?;
        self.places.forget();
        let switcher = self.switcher(self.rule);
        let mut inspector = self.inspector(switch, late);
        // After a crash nobody knows what the things displaced before it were like.
        let mut suspects = vec![self.rule == Rule::Leave; switch.steps.len()];
        for (step, suspect) in switch.steps.iter().zip(&mut suspects) {
            let what = || format!("replace {}", step.path);
            disk.step("rollback.switching").context(what)?;
            match switcher.forward(step).context(what)? {
                Found::Expected => {}
                Found::Suspect => *suspect = true,
                Found::Newer => inspector.left_forward(step, &self.begin.live)?,
            }
        }
        disk.step("rollback.switched").context(|| "switch".to_owned())?;
        self.places.forget();
        for (step, suspect) in switch.steps.iter().zip(suspects) {
            inspector.displaced(step, suspect, &self.begin.live)?;
        }
        for step in switch.metas.iter().filter(|step| step.seen.kind != FileKind::Directory) {
            inspector.in_place(step, self.rule)?;
        }
        let mut warnings = inspector.warnings;
        drop(rights);
        late.publish()?;
        let rights = self.enter()?;
        for step in &switch.metas {
            let had = step.old.as_ref().map_or(&[][..], |old| &old.xattrs);
            if self.set(step, had, &step.new)? {
                warnings.push(Warning { path: step.path.clone(), kind: WarningKind::OwnerNotRestored });
            }
        }
        disk.step("rollback.metadata").context(|| "set metadata".to_owned())?;
        self.sync(switch)?;
        // Whoever was on the way into a directory as it was displaced has arrived by now.
        self.places.forget();
        let mut inspector = self.inspector(switch, late);
        for step in &switch.steps {
            inspector.displaced(step, false, &self.begin.live)?;
        }
        warnings.extend(inspector.warnings);
        drop(rights);
        late.publish()?;
        Ok(warnings)
    }

    /// Takes back whatever has been carried out of what is on record, and makes that durable.
    pub(super) fn go_back(&self, switch: &Switch, late: &mut dyn LateWrites) -> Result<Vec<Warning>> {
        let rights = self.enter()?;
        self.places.forget();
        // What was set already may forbid to go back. Outer ones first: they may forbid to go on.
        let dirs = self.begin.dirs.iter().map(|dir| (&dir.path, &dir.identity));
        let made = switch.metas.iter().filter(|step| step.old.is_none());
        for (path, identity) in dirs.chain(made.map(|step| (&step.path, &step.seen.identity))) {
            self.widen_one(path, identity)?;
        }
        // Whatever is not on record stays as it is: there is no third way.
        let switcher = self.switcher(Rule::Leave);
        let mut inspector = self.inspector(switch, late);
        for step in switch.steps.iter().rev() {
            let what = || format!("take back {}", step.path);
            if switcher.backward(step).context(what)? == Found::Newer {
                inspector.left(&step.path);
            }
        }
        self.places.forget();
        for step in &switch.steps {
            inspector.displaced(step, true, &self.begin.live)?;
            inspector.taken_back(step, &self.begin.target)?;
        }
        let warnings = inspector.warnings;
        drop(rights);
        late.publish()?;
        let _rights = self.enter()?;
        for step in &switch.metas {
            if let Some(old) = &step.old {
                self.set(step, &step.new.xattrs, old)?;
            }
        }
        self.sync(switch)?;
        Ok(warnings)
    }

    /// Removes the staging directories and gives the directories around them, or all that were touched, their last
    /// touch.
    pub(super) fn clean_up(&self, switch: Option<&Switch>, outcome: Outcome) -> Result<()> {
        let _rights = self.enter()?;
        self.places.forget();
        let mut hosts = HashSet::new();
        for area in &self.begin.staging {
            let Some((parent, name)) = area.split() else { continue };
            let what = || format!("remove {area}");
            let Some(dir) = self.places.dir(&parent).context(what)? else { continue };
            if self.places.see(&*dir, &name).context(what)?.is_some() {
                widen(self.places.disk, &dir).context(what)?;
                remove_tree(self.places.disk, &*dir, &name).context(what)?;
            }
            hosts.insert(parent);
        }
        let each = outcome == Outcome::Finished || !self.is_much();
        // Deepest first: a mode can forbid to go on.
        for state in self.begin.dirs.iter().rev() {
            let of = |step: &&MetaStep| step.path == state.path;
            let wanted = match outcome {
                // Without a switch nothing was done to the others but that some were made writable.
                Outcome::TakenBack if switch.is_none() && !hosts.contains(&state.path) => match state.widen {
                    true => (state.mode, None),
                    false => continue,
                },
                Outcome::TakenBack => (state.mode, Some(state.mtime)),
                Outcome::Finished if !hosts.contains(&state.path) => continue,
                Outcome::Finished => match switch.and_then(|switch| switch.metas.iter().find(of)) {
                    Some(MetaStep { new, .. }) => (new.mode, Some(new.mtime)),
                    None => continue,
                },
            };
            let (mode, time) = wanted;
            self.restore(state, mode, time, each).context(|| format!("restore {}", state.path))?;
        }
        if !each {
            return self.places.disk.syncfs(self.places.root).context(|| "make it durable".to_owned());
        }
        Ok(())
    }

    fn enter(&self) -> Result<PeerRights> {
        self.begin.peer.enter().context(|| "take the user's rights".to_owned())
    }

    fn switcher(&self, rule: Rule) -> Switcher<'_> {
        Switcher { places: &self.places, staging: &self.begin.staging, rule }
    }

    fn inspector<'b>(&'b self, switch: &'b Switch, late: &'b mut dyn LateWrites) -> Inspector<'b> {
        let staying = switch.metas.iter().filter(|step| step.seen.kind != FileKind::Directory);
        Inspector {
            places: &self.places,
            source: self.source,
            staging: &self.begin.staging,
            captured_from: self.begin.captured_from,
            staying: staying.map(|step| &step.seen.identity).collect(),
            late,
            warnings: Vec::new(),
        }
    }

    /// Sets metadata, if the name still holds what is on record; of what was written to since, all but the time.
    fn set(&self, step: &MetaStep, had: &[Xattr], wanted: &Meta) -> Result<bool> {
        let what = || format!("set the metadata of {}", step.path);
        let disk = self.places.disk;
        if step.seen.kind == FileKind::Directory {
            match self.places.dir(&step.path) {
                Ok(Some(fd)) if self.places.is(&fd, &step.seen.identity).context(what)? => {
                    return apply(disk, Thing::Open(fd.as_fd()), had, wanted).context(what);
                }
                Ok(_) => return Ok(false),
                // A directory we may not list can be held all the same.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(Error::io(what(), error)),
            }
        }
        let Some((parent, name)) = step.path.split() else { return Ok(false) };
        let Some(dir) = self.places.dir(&parent).context(what)? else { return Ok(false) };
        let Some((held, now)) = self.places.hold(&*dir, &name).context(what)? else { return Ok(false) };
        let Stat { uid, gid, .. } = stat_fd(&held).context(what)?;
        if !step.is_for(&now, (uid, gid), self.places.overlay) {
            return Ok(false);
        }
        let mtime = if step.is_written(&now) { now.mtime } else { wanted.mtime };
        let wanted = Meta { mtime, ..wanted.clone() };
        apply(disk, Thing::Held(held.as_fd()), had, &wanted).context(what)
    }

    /// Gives a directory its mode and perhaps its time, and perhaps makes that durable.
    fn restore(&self, state: &DirState, mode: u32, time: Option<Timestamp>, durably: bool) -> io::Result<()> {
        let disk = self.places.disk;
        let Some(fd) = self.places.dir(&state.path)? else { return Ok(()) };
        let now = stat_fd(&fd)?;
        if now.mode != mode {
            disk.fchmod(&*fd, Mode::from_raw_mode(mode))?;
        }
        if let Some(time) = time.filter(|time| *time != now.mtime) {
            disk.set_times_held(&*fd, &mtime(time))?;
        }
        if durably { disk.fsync(&*fd) } else { Ok(()) }
    }

    /// Whether syncing a whole filesystem is cheaper than single directories.
    fn is_much(&self) -> bool {
        self.begin.dirs.len() > FEW
    }

    /// Makes everything that was switched durable.
    fn sync(&self, switch: &Switch) -> Result<()> {
        let few = !self.is_much() && switch.metas.len() <= FEW;
        self.sync_each(few.then_some(switch)).context(|| "make the switch durable".to_owned())
    }

    /// Syncs directories and files one by one; the whole filesystem if there are too many, or one cannot be opened.
    fn sync_each(&self, switch: Option<&Switch>) -> io::Result<()> {
        let Places { disk, root, .. } = self.places;
        let Some(switch) = switch else { return disk.syncfs(root) };
        let dirs = self.begin.dirs.iter().map(|dir| &dir.path).chain(&self.begin.staging);
        let metas = switch.metas.iter().map(|step| &step.path);
        let mut synced = HashSet::new();
        for path in dirs.chain(metas) {
            if !synced.insert(path) {
                continue;
            }
            let opened = match path.split() {
                Some((parent, name)) => match self.places.dir(&parent) {
                    Ok(Some(parent)) => open_for_sync(&parent, &name),
                    Ok(None) => continue,
                    Err(error) => Err(error),
                },
                None => self.places.root.open_dir(path),
            };
            match opened {
                Ok(file) => disk.fsync(file)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return disk.syncfs(root),
            }
        }
        Ok(())
    }
}

/// Opens a regular file or a directory; fails for anything else, without waiting for a reader or a device.
fn open_for_sync(dir: &OwnedFd, name: &Name) -> io::Result<OwnedFd> {
    let kind = stat(dir, name.as_bytes())?.kind;
    if !matches!(kind, FileKind::File | FileKind::Directory) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name.as_bytes(), flags, Mode::empty())?)
}

/// Makes a directory writable if it is ours and is not.
fn widen(disk: &Disk, dir: &OwnedFd) -> io::Result<()> {
    if rustix::fs::accessat(dir, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok() {
        return Ok(());
    }
    let mode = stat_fd(dir)?.mode | 0o700;
    disk.fchmod(dir, Mode::from_raw_mode(mode))
}
