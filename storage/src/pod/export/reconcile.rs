//! Finds out what became of an export that a crash ended.

use std::io;
use std::path::PathBuf;

use cofferdam_protocol::pod::{
    ExportItem, ExportItemStatus as Status, ExportMode, ExportRecord, ExportStatus,
};

use super::backup;
use super::batch::is_open;
use super::content::Opened;
use super::ground::{Dir, Ground, relative};
use super::moves::{look, rename_exclusive};
use super::names::Names;
use super::notes::Notes;
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::{Name, RelPath};

/// Finds out what became of an export that a crash ended, removes its temporary files, and says what is so.
/// The notes stay as they are.
pub fn reconcile(disk: &Disk, mut record: ExportRecord, notes: &str) -> ExportRecord {
    if record.status != ExportStatus::Running {
        return record;
    }
    let notes = Notes::read(notes);
    let base = PathBuf::from(&notes.base);
    let target = relative(&base, &record.target_dir).unwrap_or_default();
    let names = Names::of(&record.id);
    let ground =
        Root::open(&base).map(|root| Ground::new(disk, root, base.clone(), notes.target.clone(), Vec::new()));
    let mode = record.mode;
    match ground {
        Ok(ground) => {
            let mut work = Reconcile { disk, names, target, ground, notes: &notes };
            for (at, item) in record.items.iter_mut().enumerate().filter(|(_, item)| is_open(item)) {
                work.settle(at, item, mode);
            }
            work.ground.remove_made();
            let _ = work.ground.sync();
        }
        Err(_) => record.items.iter_mut().filter(|item| is_open(item)).for_each(unknown),
    }
    record.status = ExportStatus::Interrupted;
    record
}

struct Reconcile<'a> {
    disk: &'a Disk,
    names: Names,
    target: RelPath,
    ground: Ground<'a>,
    notes: &'a Notes,
}

/// Where an item's files are.
struct Place {
    path: RelPath,
    dir: Dir,
    name: Name,
}

impl Reconcile<'_> {
    fn settle(&mut self, at: usize, item: &mut ExportItem, mode: ExportMode) {
        let found = self.ground.relative(&item.dst).and_then(|path| {
            let (dir, _, name) = self.ground.open_parent(&path).ok()?;
            Some(Place { path, dir, name })
        });
        // A file that was in the way cannot be gone with its backup: its drive may be away.
        let Some(place) = found else {
            return if item.existed { unknown(item) } else { end(item, "interrupted") };
        };
        match self.is_done(at, item, &place) {
            Ok(true) => {
                item.status = Status::Ok;
                let left = mode == ExportMode::Move && std::fs::symlink_metadata(&item.src).is_ok();
                let message = if left { "interrupted; the source is still there" } else { "" };
                item.message = message.to_owned();
            }
            Ok(false) => self.take_back(at, item, &place),
            Err(error) => end(item, &format!("interrupted; what became of it cannot be found out: {error}")),
        }
    }

    /// Whether a file is in its place; if it is, what it replaced is in its backup's place only.
    fn is_done(&mut self, at: usize, item: &ExportItem, place: &Place) -> io::Result<bool> {
        let temporary = self.names.new_file(at).into_bytes();
        let current = Opened::at(&place.dir, place.name.as_bytes()).ok();
        let displaced = look(&place.dir, &temporary)?;
        let holds = |hash: &str, file: &Opened| file.hash().is_ok_and(|found| found == hash);
        if item.hash.is_empty() || !current.as_ref().is_some_and(|file| holds(&item.hash, file)) {
            return Ok(false);
        }
        let is_new = current.is_some_and(|file| self.notes.written.get(&at) == Some(&file.stat.ino));
        let has_backup = self.kept(&place.path).is_some();
        match displaced {
            None => Ok(is_new || !item.existed || has_backup),
            Some(_) if !is_new => Ok(false),
            Some(_) => {
                let old = Opened::at(&place.dir, &temporary)?;
                let kept = self.notes.backups.get(&at);
                if kept.is_some_and(|note| holds(&note.hash, &old)) {
                    let disk = self.disk;
                    let unlinked = self.ground.quietly(&place.dir, || disk.unlink(&place.dir, &*temporary));
                    unlinked.map(|()| true)
                } else {
                    // Somebody's newer file was replaced, which was not noticed any more.
                    let (new, old) = ((&*place.dir, place.name.as_bytes()), (&*place.dir, &*temporary));
                    self.disk.exchange(old, new).map(|()| false)
                }
            }
        }
    }

    /// Removes what was made for a file that is not in its place; what was there before is there again.
    fn take_back(&mut self, at: usize, item: &mut ExportItem, place: &Place) {
        let disk = self.disk;
        let temporary = self.names.new_file(at).into_bytes();
        let is_free = |dir: &Dir, name: &[u8]| look(dir, name).is_ok_and(|found| found.is_none());
        let is_away = is_free(&place.dir, place.name.as_bytes()) && is_free(&place.dir, &temporary);
        if item.existed && is_away && self.kept(&place.path).is_none() {
            return unknown(item);
        }
        let mut message = "interrupted".to_owned();
        if let Ok(new) = Opened::at(&place.dir, &temporary) {
            let is_ours = item.hash.is_empty()
                || self.notes.written.get(&at) == Some(&new.stat.ino)
                || new.hash().is_ok_and(|hash| {
                    hash == item.hash || self.notes.backups.get(&at).is_some_and(|note| note.hash == hash)
                });
            if is_ours {
                let _ = self.ground.quietly(&place.dir, || disk.unlink(&place.dir, &*temporary));
            } else {
                message = format!("interrupted; what was there is kept as {}", self.names.new_file(at));
            }
        }
        if let Some((dir, name)) = self.kept(&place.path) {
            let kept = (&*dir, name.as_bytes());
            let current = Opened::at(&place.dir, place.name.as_bytes());
            let gone = match current {
                Ok(current) => {
                    let hash = Opened::at(&dir, name.as_bytes()).and_then(|file| file.hash());
                    // If nothing was replaced, what was kept is nothing but a second copy.
                    let is_same = item.hash.is_empty()
                        || hash.is_ok_and(|hash| current.hash().is_ok_and(|current| current == hash));
                    is_same.then(|| disk.unlink(kept.0, kept.1))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Some(rename_exclusive(disk, kept, (&place.dir, place.name.as_bytes())))
                }
                Err(_) => None,
            };
            match gone {
                Some(Ok(())) => {}
                _ => {
                    message = "interrupted; what was there before is kept as its backup".to_owned();
                    item.backup_path = self.backup_path(&place.path);
                    item.status = Status::Fail;
                    item.message = message;
                    return;
                }
            }
        }
        end(item, &message);
    }

    fn backup_path(&self, path: &RelPath) -> String {
        let place = backup::place(&self.names, &self.target, path);
        place.map(|place| self.ground.absolute(&place)).unwrap_or_default()
    }

    /// What was kept of the file that was in the way, if it is there.
    fn kept(&mut self, path: &RelPath) -> Option<(Dir, Name)> {
        let place = backup::place(&self.names, &self.target, path)?;
        let (dir, _, name) = self.ground.open_parent(&place).ok()?;
        look(&dir, name.as_bytes()).ok()??;
        Some((dir, name))
    }
}

/// An item of which nothing can be found. If it was intended, an undo looks again, so what is known of it is kept.
fn unknown(item: &mut ExportItem) {
    if item.hash.is_empty() {
        return end(item, "interrupted");
    }
    item.status = Status::UndoConflict;
    item.message = "interrupted; nothing of it is found in the target".to_owned();
}

/// An item that is not exported, and of which nothing is left.
fn end(item: &mut ExportItem, message: &str) {
    item.status = Status::Fail;
    item.message = message.to_owned();
    item.hash.clear();
    item.backup_path.clear();
    item.existed = false;
}
