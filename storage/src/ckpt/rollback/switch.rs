//! One change of a name, forward and back. Each acts only if the name holds what is on record.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::Mode;
use rustix::io::Errno;

use super::journal::{How, Step};
use super::metadata::{Thing, apply, mtime};
use super::places::{Places, Seen};
use crate::ckpt::FileKind;
use crate::ckpt::format::Meta;
use crate::disk::Disk;
use crate::path::{Name, RelPath};

/// What to do with something that stands at a name and is not on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Displace it as if it were: it appeared while the rollback was running, and its content is kept.
    Displace,
    /// Leave it where it is: it is the work of the days between a crash and this recovery.
    Leave,
}

/// What a step came upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// What is on record, unchanged.
    Expected,
    /// Something that may hold newer content; it lies in the staging directory now.
    Suspect,
    /// Something newer; it was left where it is.
    Newer,
}

/// Carries out single steps.
pub(super) struct Switcher<'a> {
    pub(super) places: &'a Places<'a>,
    pub(super) staging: &'a [RelPath],
    pub(super) rule: Rule,
}

/// Both ends of a move.
struct Ends<'a> {
    disk: &'a Disk,
    places: &'a Places<'a>,
    /// In the tree.
    dir: BorrowedFd<'a>,
    name: &'a Name,
    /// In a staging directory.
    area: BorrowedFd<'a>,
    slot: &'a Name,
    /// Whether the file was copied up for the move.
    copied_up: Cell<bool>,
}

/// How often a name may change between a look at it and the move.
const ATTEMPTS: usize = 100;

impl Switcher<'_> {
    /// Gives the name what the target has there.
    pub(super) fn forward(&self, step: &Step) -> io::Result<Found> {
        match &step.how {
            How::Move { staging, slot, old, new, .. } => {
                let new = new.as_ref();
                let settled = |now: Option<&Seen>| match (now, new) {
                    (None, None) => true,
                    (Some(now), Some(new)) => now.is(new),
                    _ => false,
                };
                self.moved(&step.path, *staging, slot, new.is_none(), settled, |ends| {
                    forward(ends, old.as_ref(), new, self.rule)
                })
            }
            How::Remove { old, refilled, .. } => self.removed(&step.path, old, *refilled),
        }
    }

    /// Gives the name back what it had.
    pub(super) fn backward(&self, step: &Step) -> io::Result<Found> {
        match &step.how {
            How::Move { staging, slot, new, .. } => {
                let new = new.as_ref();
                let settled = |now: Option<&Seen>| !holds_new(now, new);
                self.moved(&step.path, *staging, slot, true, settled, |ends| backward(ends, new))
            }
            How::Remove { meta, .. } => self.made_again(&step.path, meta),
        }
    }

    /// `goes`: the name is to be empty. `settled`: whether it has what it should have.
    fn moved(
        &self,
        path: &RelPath,
        staging: usize,
        slot: &Name,
        goes: bool,
        settled: impl FnOnce(Option<&Seen>) -> bool,
        step: impl FnOnce(&Ends<'_>) -> io::Result<Found>,
    ) -> io::Result<Found> {
        let (Some((parent, name)), Some(area)) = (path.split(), self.staging.get(staging)) else {
            return Ok(Found::Newer);
        };
        let Some(dir) = self.places.dir(&parent)? else { return self.replaced(goes) };
        let Some(area) = self.places.dir(area)? else {
            // Without what was staged, a name has what it should have, or it never will.
            return match settled(self.places.see(&*dir, &name)?.as_ref()) {
                true => Ok(Found::Expected),
                false => self.replaced(false),
            };
        };
        let places = self.places;
        let (disk, copied_up) = (places.disk, Cell::default());
        let ends = Ends { disk, places, dir: dir.as_fd(), name: &name, area: area.as_fd(), slot, copied_up };
        step(&ends)
    }

    /// The directory is not there. What should go from it is gone then.
    fn replaced(&self, goes: bool) -> io::Result<Found> {
        match self.rule {
            Rule::Displace => Err(io::Error::other("its directory was replaced meanwhile; try again")),
            Rule::Leave if goes => Ok(Found::Expected),
            Rule::Leave => Ok(Found::Newer),
        }
    }

    /// Removes a directory that has been emptied.
    fn removed(&self, path: &RelPath, old: &Seen, refilled: bool) -> io::Result<Found> {
        let Some((parent, name)) = path.split() else { return Ok(Found::Newer) };
        let Some(dir) = self.places.dir(&parent)? else { return self.replaced(true) };
        match self.places.see(&*dir, &name)? {
            None => return Ok(Found::Expected),
            Some(now) if now.kind == old.kind => {}
            // What it is now, the step that fills the name again will judge.
            Some(_) => return self.replaced(refilled),
        }
        self.places.forget();
        match self.places.disk.rmdir(&*dir, name.as_bytes()) {
            Err(error) if self.rule == Rule::Leave && error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Ok(Found::Newer)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(Found::Expected),
        }
    }

    fn made_again(&self, path: &RelPath, meta: &Meta) -> io::Result<Found> {
        let Some((parent, name)) = path.split() else { return Ok(Found::Newer) };
        let Some(dir) = self.places.dir(&parent)? else { return self.replaced(false) };
        let mut found = self.places.hold(&*dir, &name)?;
        if found.is_none() {
            self.places.disk.mkdir(&*dir, name.as_bytes(), Mode::RWXU)?;
            self.places.forget();
            found = self.places.hold(&*dir, &name)?;
        }
        let Some((made, _)) = found.filter(|(_, now)| now.kind == FileKind::Directory) else {
            return Ok(Found::Newer);
        };
        // It stays writable until everything in it is back.
        let meta = Meta { mode: meta.mode | 0o700, ..meta.clone() };
        apply(self.places.disk, Thing::Held(made.as_fd()), &[], &meta)?;
        Ok(Found::Expected)
    }
}

fn forward(ends: &Ends<'_>, old: Option<&Seen>, new: Option<&Seen>, rule: Rule) -> io::Result<Found> {
    let mut half_way = false;
    if rule == Rule::Leave && ends.parked()?.is_some() {
        half_way = true;
        if ends.now()?.is_some_and(|now| new.is_some_and(|new| now.is(new))) {
            ends.unpark(ends.area, ends.slot)?;
        }
    }
    for _ in 0..ATTEMPTS {
        let now = ends.now()?;
        let moved = match (&now, new) {
            (None, None) => return Ok(Found::Expected),
            (Some(now), Some(new)) if now.is(new) => return Ok(Found::Expected),
            (Some(now), _) if now.kind == FileKind::MountPoint => {
                return match rule {
                    Rule::Displace => Err(Errno::BUSY.into()),
                    Rule::Leave => Ok(Found::Newer),
                };
            }
            (Some(now), _) if rule == Rule::Leave && !old.is_some_and(|old| now.holds(old)) => {
                return Ok(Found::Newer);
            }
            // Removed since; or a staging directory was, with what the name should get.
            (None, Some(_)) if rule == Rule::Leave && old.is_some() && !half_way => return Ok(Found::Newer),
            // Or it has been displaced already, and what stands there was put there since.
            (_, Some(_)) if rule == Rule::Leave && !holds_new(ends.staged()?.as_ref(), new) => {
                return Ok(Found::Newer);
            }
            (_, None) if rule == Rule::Leave && ends.staged()?.is_some() => return Ok(Found::Newer),
            (Some(_), Some(_)) => ends.exchange(),
            (Some(_), None) => ends.move_out(),
            (None, Some(_)) => ends.move_in(),
        };
        match moved {
            Ok(()) => {
                if half_way {
                    ends.unpark(ends.area, ends.slot)?;
                }
                let same = now.as_ref() == old || (half_way && now.is_none());
                let expected = same && !ends.copied_up.get();
                return Ok(if expected { Found::Expected } else { Found::Suspect });
            }
            Err(error) if changed_meanwhile(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("the name keeps changing; try again"))
}

fn backward(ends: &Ends<'_>, new: Option<&Seen>) -> io::Result<Found> {
    let is_new = |seen: &Option<Seen>| holds_new(seen.as_ref(), new);
    let now = ends.now()?;
    if ends.parked()?.is_some() {
        if is_new(&now) {
            ends.move_out()?;
        } else if now.is_some() {
            return Ok(Found::Newer);
        }
        ends.unpark(ends.dir, ends.name)?;
        return Ok(Found::Expected);
    }
    let staged = ends.staged()?;
    match (&now, &staged) {
        // It has not happened, or was taken back already.
        (_, None) if !is_new(&now) => Ok(Found::Expected),
        (_, Some(_)) if is_new(&staged) => Ok(Found::Expected),
        (Some(_), Some(_)) if is_new(&now) => ends.exchange().map(|()| Found::Expected),
        (Some(_), None) => ends.move_out().map(|()| Found::Expected),
        (None, _) => ends.move_in().map(|()| Found::Expected),
        // What was displaced cannot have its name back.
        (Some(_), Some(_)) => Ok(Found::Newer),
    }
}

impl Ends<'_> {
    fn now(&self) -> io::Result<Option<Seen>> {
        self.places.see(self.dir, self.name)
    }

    fn staged(&self) -> io::Result<Option<Seen>> {
        self.places.see(self.area, self.slot)
    }

    fn parked(&self) -> io::Result<Option<Seen>> {
        self.places.see(self.area, &parking(self.slot)?)
    }

    fn unpark(&self, dir: BorrowedFd<'_>, name: &Name) -> io::Result<()> {
        self.exclusively((self.area, &parking(self.slot)?), (dir, name))
    }

    fn move_out(&self) -> io::Result<()> {
        self.or_copied_up(|| self.exclusively((self.dir, self.name), (self.area, self.slot)))
    }

    fn move_in(&self) -> io::Result<()> {
        self.exclusively((self.area, self.slot), (self.dir, self.name))
    }

    fn exchange(&self) -> io::Result<()> {
        self.or_copied_up(|| self.exchange_once())
    }

    /// Moves a file out of the tree. An overlay that copies up metadata alone (`metacopy=on`) refuses that for a file
    /// whose content is in a lower layer and whose path is long, since it notes the path: then the content comes first.
    fn or_copied_up(&self, moved: impl Fn() -> io::Result<()>) -> io::Result<()> {
        match moved() {
            Err(error) if self.places.overlay && Errno::from_io_error(&error) == Some(Errno::XDEV) => {
                let Some((held, seen)) = self.places.hold(self.dir, self.name)? else { return Err(error) };
                if seen.kind != FileKind::File || self.disk.copy_up(&held).is_err() {
                    return Err(error);
                }
                // That counts as writing, so from now on nothing tells whether somebody writes.
                self.copied_up.set(true);
                self.disk.set_times_held(held, &mtime(seen.mtime))?;
                moved()
            }
            done => done,
        }
    }

    fn exchange_once(&self) -> io::Result<()> {
        match self.disk.exchange((self.area, self.slot.as_bytes()), (self.dir, self.name.as_bytes())) {
            Err(error) if unsupported(&error) => {
                self.exclusively((self.dir, self.name), (self.area, &parking(self.slot)?))?;
                self.move_in()?;
                self.unpark(self.area, self.slot)
            }
            done => done,
        }
    }

    /// Moves a name to one that nothing has.
    fn exclusively(&self, from: (BorrowedFd<'_>, &Name), to: (BorrowedFd<'_>, &Name)) -> io::Result<()> {
        let (source, target) = ((from.0, from.1.as_bytes()), (to.0, to.1.as_bytes()));
        match self.disk.rename_exclusive(source, target) {
            Err(error) if unsupported(&error) => {}
            done => return done,
        }
        if self.places.see(to.0, to.1)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        self.disk.rename(source, target)?;
        // Of two names of one file a rename keeps both, and says that it is done.
        match self.places.see(from.0, from.1)? {
            None => Ok(()),
            Some(_) => Err(Errno::EXIST.into()),
        }
    }
}

fn holds_new(seen: Option<&Seen>, new: Option<&Seen>) -> bool {
    seen.zip(new).is_some_and(|(seen, new)| seen.is(new))
}

/// Where a victim waits while its name is being given away, on filesystems that cannot exchange names.
pub(super) fn parking(slot: &Name) -> io::Result<Name> {
    Name::new([slot.as_bytes(), b"-old"].concat()).map_err(io::Error::other)
}

/// Whether another program changed one of the names between our look and our move.
fn changed_meanwhile(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::EXIST | Errno::NOENT))
}

/// Whether the filesystem does not know this kind of rename.
fn unsupported(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP))
}
