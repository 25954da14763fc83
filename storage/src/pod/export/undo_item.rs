//! Undoes one file: looks whether everything is as the export left it, and puts back what was there before.

use std::io;

use rustix::io::Errno;

use super::backup;
use super::content::{Opened, Seen, in_words};
use super::ground::Dir;
use super::moves::{copy_whole, is_unknown, look, rename_exclusive};
use super::undo::{Hitch, Litter, Undo};
use crate::fs::stat;
use crate::path::{Name, RelPath};
use crate::sys::{Writers, writers};

/// A file that can be undone.
pub(super) struct Checked {
    pub dir: Dir,
    pub at: RelPath,
    pub name: Name,
    pub what: What,
}

/// What is left to do.
pub(super) enum What {
    /// An earlier undo got as far as that; some of its files are still there.
    Litter(Litter),
    /// Everything.
    All {
        /// The exported file.
        seen: Seen,
        /// Its hash, where it was looked at.
        hash: Option<String>,
        /// What is put back.
        backup: Option<Backup>,
    },
}

/// Where a backup is.
pub(super) struct Backup {
    dir: Dir,
    at: RelPath,
    name: Name,
}

type Found<T> = Result<T, Hitch>;

impl Undo<'_> {
    /// Whether an item can be undone.
    pub(super) fn check(&mut self, item: usize) -> Found<Checked> {
        let record = &self.record.items[item];
        let (dst, hash, existed) = (record.dst.clone(), record.hash.clone(), record.existed);
        let backup_path = record.backup_path.clone();
        if self.record.legacy && self.record.mode == cofferdam_protocol::pod::ExportMode::Move {
            return conflict("a move by an older version cannot be undone");
        }
        let base = match &mut self.base {
            Ok(base) => base,
            Err(error) => return unreached(&format!("the target cannot be opened: {}", in_words(error))),
        };
        let path = base.relative(&dst).filter(|path| path.starts_with(&self.target));
        let Some(path) = path else { return conflict("it does not lie in the target's directory") };
        let begun = self.begun.contains(&item);
        let (dir, at, name) = match base.open_parent(&path) {
            Ok(found) => found,
            Err(error) => return unreached(&format!("its directory cannot be opened: {}", in_words(&error))),
        };
        let backup = if backup_path.is_empty() { None } else { Some(self.backup(&path, &backup_path)?) };
        if begun && let Some(litter) = self.resume(item, &dir, &name, backup.as_ref())? {
            return Ok(Checked { dir, at, name, what: What::Litter(litter) });
        }

        let current = match Opened::at(&dir, name.as_bytes()) {
            Ok(current) => current,
            Err(error) => {
                return conflict(&format!("the exported file cannot be opened: {}", in_words(&error)));
            }
        };
        // What it writes next would be lost, though all is as it was when we looked.
        if self.verify && writers(&current.file) == Writers::Some {
            return conflict("another program has the exported file open for writing");
        }
        let mut found = None;
        if self.verify && !hash.is_empty() {
            found = Some(current.hash()?);
            if found.as_ref() != Some(&hash) {
                return conflict("the exported file was changed since");
            }
        }
        match &backup {
            Some(backup) => {
                let kept = Opened::at(&backup.dir, backup.name.as_bytes()).and_then(|kept| kept.hash());
                let expected = self.notes.backups.get(&item).map(|note| &note.hash);
                match kept {
                    Ok(kept) if expected.is_none_or(|hash| *hash == kept) => {}
                    Ok(_) => return conflict("its backup was changed, so the exported file stays"),
                    Err(error) => {
                        let why = in_words(&error);
                        return conflict(&format!(
                            "its backup cannot be used ({why}), so the exported file stays"
                        ));
                    }
                }
            }
            None if existed => return conflict("its backup is not known, so the exported file stays"),
            None => {}
        }
        let what = What::All { seen: current.seen(), hash: found, backup };
        Ok(Checked { dir, at, name, what })
    }

    /// Opens the directory of a backup.
    fn backup(&mut self, path: &RelPath, backup: &str) -> Found<Backup> {
        let Ok(base) = &mut self.base else { return conflict("the target cannot be opened") };
        let place = base.relative(backup);
        if place.is_none() || place != backup::place(&self.names, &self.target, path) {
            return conflict("its backup lies where none can be");
        }
        match base.open_parent(&place.unwrap_or_default()) {
            Ok((dir, at, name)) => Ok(Backup { dir, at, name }),
            Err(error) => unreached(&format!("its backup cannot be opened: {}", in_words(&error))),
        }
    }

    /// How far an undo got that was begun before; `None` if nothing has happened yet.
    fn resume(&self, item: usize, dir: &Dir, name: &Name, backup: Option<&Backup>) -> Found<Option<Litter>> {
        let hash = &self.record.items[item].hash;
        let aside = self.names.aside(item).into_bytes();
        let hash_of = |opened: &Option<Opened>| opened.as_ref().and_then(|file| file.hash().ok());
        let taken = Opened::at(dir, &aside).ok();
        let taken_hash = hash_of(&taken);
        let Some(backup) = backup else {
            if taken.is_none() && self.is_elsewhere {
                return unreached("another directory is at its target now; its drive may be away");
            }
            if taken.is_none() {
                return Ok(look(dir, name.as_bytes())?.is_none().then(Vec::new));
            }
            if !self.verify || taken_hash.as_ref() == Some(hash) {
                return Ok(Some(vec![(dir.clone(), aside)]));
            }
            // It was taken by mistake and could not be given back then.
            rename_exclusive(self.disk, (dir, &aside), (dir, name.as_bytes()))?;
            return Ok(None);
        };
        let Some(note) = self.notes.backups.get(&item) else { return Ok(None) };
        let unfinished = self.names.returning(item).into_bytes();
        if look(dir, &unfinished)?.is_some() {
            self.disk.unlink(dir, &*unfinished)?;
        }
        let current = Opened::at(dir, name.as_bytes()).ok();
        let kept = Opened::at(&backup.dir, backup.name.as_bytes()).ok();
        let is_note = |file: &Option<Opened>| file.as_ref().is_some_and(|file| file.stat.ino == note.ino);
        let has_backup = hash_of(&current).as_ref() == Some(&note.hash);
        // What was taken by mistake and could not be given back then is somebody's later work.
        let is_theirs = |found: &Option<String>| self.verify && found.as_ref() != Some(hash);
        let (here, there) = ((dir, name.as_bytes()), (&backup.dir, backup.name.as_bytes()));
        let kept_hash = hash_of(&kept);
        if has_backup && is_note(&current) && kept.is_some() && !is_note(&kept) && is_theirs(&kept_hash) {
            self.disk.exchange(there, here)?;
            return Ok(None);
        }
        if taken.is_some() && is_theirs(&taken_hash) && taken_hash.as_ref() != Some(&note.hash) {
            if !has_backup {
                let aside = self.names.aside(item);
                return conflict(&format!("a newer file is there; the one before it is kept as {aside}"));
            }
            self.disk.exchange((dir, &aside), here)?;
            self.disk.unlink(dir, &*aside)?;
            return Ok(None);
        }
        let is_back = has_backup
            && (kept.is_none()
                || (is_note(&current) && !is_note(&kept))
                || (kept_hash.as_ref() == Some(hash) && *hash != note.hash)
                || taken_hash.as_ref() == Some(hash));
        let mut litter = Vec::new();
        if taken.is_some() {
            litter.push((dir.clone(), aside.clone()));
        }
        if is_back {
            litter.push((backup.dir.clone(), backup.name.as_bytes().to_vec()));
            return Ok(Some(litter));
        }
        // A copy of the backup that did not get into its place.
        for (dir, name) in litter {
            self.disk.unlink(&dir, &*name)?;
        }
        Ok(None)
    }

    /// Puts back what was there before the export. The exported file is put aside, and goes later.
    pub(super) fn take_away(&mut self, item: usize, checked: Checked) -> Found<Litter> {
        let Checked { dir, at, name, what } = checked;
        let (seen, backup) = match what {
            What::Litter(litter) => return Ok(litter),
            What::All { seen, backup, .. } => (seen, backup),
        };
        let Ok(base) = &mut self.base else { return conflict("the target cannot be opened") };
        base.touch(&at, &dir);
        let (disk, name) = (self.disk, name.as_bytes());
        let aside = self.names.aside(item).into_bytes();
        let Some(backup) = backup else {
            rename_exclusive(disk, (&dir, name), (&dir, &aside))?;
            if !is(&dir, &aside, seen) {
                rename_exclusive(disk, (&dir, &aside), (&dir, name))?;
                return conflict("the exported file was changed meanwhile");
            }
            return Ok(vec![(dir, aside)]);
        };
        base.touch(&backup.at, &backup.dir);
        let kept = backup.name.as_bytes();
        let mut litter = self.second_copy(item, &dir);
        match disk.exchange((&backup.dir, kept), (&dir, name)) {
            Ok(()) if is(&backup.dir, kept, seen) => {
                litter.push((backup.dir, kept.to_vec()));
                return Ok(litter);
            }
            Ok(()) => {
                disk.exchange((&backup.dir, kept), (&dir, name))?;
                return conflict("the exported file was changed meanwhile");
            }
            Err(error) if is_unknown(&error) || Errno::from_io_error(&error) == Some(Errno::XDEV) => {}
            Err(error) => return Err(error.into()),
        }
        litter.extend(self.replace_by_copy(item, (&dir, name), &aside, &backup, seen)?);
        Ok(litter)
    }

    /// The replaced file beside its place, where the export could not remove it.
    fn second_copy(&self, item: usize, dir: &Dir) -> Litter {
        let name = self.names.new_file(item).into_bytes();
        let expected = self.notes.backups.get(&item).map(|note| &note.hash);
        let hash = Opened::at(dir, &name).and_then(|file| file.hash());
        let is_copy = hash.is_ok_and(|hash| Some(&hash) == expected);
        if is_copy { vec![(dir.clone(), name)] } else { Vec::new() }
    }

    /// Puts back a backup that cannot be moved there.
    fn replace_by_copy(
        &self,
        item: usize,
        (dir, name): (&Dir, &[u8]),
        aside: &[u8],
        backup: &Backup,
        seen: Seen,
    ) -> Found<Litter> {
        let disk = self.disk;
        let kept = Opened::at(&backup.dir, backup.name.as_bytes())?;
        // A name of its own until it is complete: whoever goes on from here must know what may be thrown away.
        let unfinished = self.names.returning(item).into_bytes();
        copy_whole(disk, &kept, dir, &unfinished)?;
        let thrown = |name: &[u8], why: io::Error| {
            let _ = disk.unlink(dir, name);
            Hitch::from(why)
        };
        disk.syncfs(dir).map_err(|why| thrown(&unfinished, why))?;
        rename_exclusive(disk, (dir, &unfinished), (dir, aside)).map_err(|why| thrown(&unfinished, why))?;
        let mut litter = vec![(backup.dir.clone(), backup.name.as_bytes().to_vec())];
        match disk.exchange((dir, aside), (dir, name)) {
            Ok(()) if is(dir, aside, seen) => litter.push((dir.clone(), aside.to_vec())),
            Ok(()) => {
                disk.exchange((dir, aside), (dir, name))?;
                let _ = disk.unlink(dir, aside);
                return conflict("the exported file was changed meanwhile");
            }
            Err(error) if is_unknown(&error) && is(dir, name, seen) => {
                disk.rename((dir, aside), (dir, name)).map_err(|why| thrown(aside, why))?;
            }
            Err(error) => return Err(thrown(aside, error)),
        }
        Ok(litter)
    }
}

fn unreached<T>(why: &str) -> Found<T> {
    Err(Hitch::Unreached(why.to_owned()))
}

fn conflict<T>(why: &str) -> Found<T> {
    Err(Hitch::Conflict(why.to_owned()))
}

fn is(dir: &Dir, name: &[u8], seen: Seen) -> bool {
    stat(dir, name).is_ok_and(|stat| Seen::of(&stat) == seen)
}
