//! Finds out what became of an export that a crash ended.

use std::io;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{ExportItem, ExportItemStatus as Status, ExportMode, ExportStatus};

use super::backup;
use super::batch::is_open;
use super::content::Opened;
use super::forbidden::Forbidden;
use super::ground::{Dir, Ground, relative};
use super::moves::{look, rename_exclusive};
use super::names::Names;
use super::notes::{Intent, Notes};
use super::plan::AWAY;
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::{Name, RelPath};
use crate::pod::model::KeptExport;

/// Whether it is known what became of everything of an export, and nothing of its own is left to be removed.
pub fn is_settled(kept: &KeptExport) -> bool {
    kept.record.status != ExportStatus::Running && !Notes::read(&kept.notes).unfinished
}

/// Finds out what became of an export that a crash ended, removes its temporary files, and says what is so. What cannot
/// be found out, since the target's drive is away, is left for another time.
pub fn reconcile(disk: &Disk, kept: KeptExport) -> KeptExport {
    if is_settled(&kept) {
        return kept;
    }
    let KeptExport { mut record, notes } = kept;
    let mut notes = Notes::read(&notes);
    let base = PathBuf::from(&notes.base);
    let target = relative(&base, &record.target_dir).unwrap_or_default();
    let mode = record.mode;
    recall(&mut record.items, &mut notes, &Names::of(&record.id), &base, &target);
    match Root::open(&base) {
        Ok(root) => {
            let is_elsewhere = notes.is_elsewhere(&root);
            let ground = Ground::new(disk, root, base, notes.target.clone(), Forbidden::default());
            let names = Names::of(&record.id);
            let mut work = Reconcile { disk, names, target, ground, is_elsewhere, notes: &mut notes };
            for (at, item) in record.items.iter_mut().enumerate().filter(|(_, item)| is_open(item)) {
                work.settle(at, item, mode);
            }
            if !is_elsewhere {
                work.ground.sweep(&mut work.notes.left);
                work.ground.remove_made();
            }
            let _ = work.ground.sync();
        }
        Err(_) => record.items.iter_mut().filter(|item| is_open(item)).for_each(away),
    }
    if record.status == ExportStatus::Running {
        record.status = ExportStatus::Interrupted;
    }
    notes.unfinished = !notes.left.is_empty() || record.items.iter().any(is_open);
    KeptExport { record, notes: notes.text() }
}

/// Completes the items that were about to get into their places.
fn recall(items: &mut [ExportItem], notes: &mut Notes, names: &Names, base: &Path, target: &RelPath) {
    for (at, Intent { hash, bytes, dst }) in std::mem::take(&mut notes.intended) {
        let Some(item) = items.get_mut(at).filter(|item| is_open(item)) else { continue };
        if notes.backups.contains_key(&at) {
            let kept = relative(base, &dst).and_then(|path| backup::place(names, target, &path));
            item.existed = true;
            item.backup_path =
                kept.map(|kept| base.join(kept.as_path()).to_string_lossy().into_owned()).unwrap_or_default();
        }
        (item.hash, item.bytes, item.dst) = (hash, bytes, dst);
    }
}

struct Reconcile<'a> {
    disk: &'a Disk,
    names: Names,
    target: RelPath,
    ground: Ground<'a>,
    /// Whether the base is another directory than it was, so that what is missing says nothing.
    is_elsewhere: bool,
    notes: &'a mut Notes,
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
            return match (self.is_elsewhere, item.existed) {
                (true, _) => away(item),
                (false, true) => unknown(item),
                (false, false) => end(item, "interrupted"),
            };
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
                    self.throw_away(place, &self.names.new_file(at), old.stat.ino);
                    Ok(true)
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
        let is_away = is_free(&place.dir, &temporary) && self.kept(&place.path).is_none();
        if is_away && self.is_elsewhere {
            return away(item);
        }
        if item.existed && is_away && is_free(&place.dir, place.name.as_bytes()) {
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
                if let Some(left) = self.throw_away(place, &self.names.new_file(at), new.stat.ino) {
                    message = format!("interrupted; {left}");
                }
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

    fn throw_away(&mut self, place: &Place, name: &str, ino: u64) -> Option<String> {
        let at = place.path.split().map(|(at, _)| at).unwrap_or_default();
        self.ground.throw_away(&mut self.notes.left, (&at, &place.dir), name, ino)
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

/// An item of which nothing can be found out now: it stays open.
fn away(item: &mut ExportItem) {
    item.message = AWAY.to_owned();
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
