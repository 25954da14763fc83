//! Removes what was kept for an undo.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::backup;
use super::content::Opened;
use super::forbidden::Forbidden;
use super::ground::{Ground, relative};
use super::moves::look;
use super::names::{Names, UNDO_DIR, below};
use super::notes::{Dirs, Notes};
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::{Root, Stat, remove_tree, stat};
use crate::path::{Name, RelPath};
use crate::pod::error::{Error, Result};
use crate::pod::model::KeptExport;

/// Refuses where [`discard`] would leave something. Where nothing can be looked at nothing is removed either.
pub fn check_discard(kept: &KeptExport) -> Result<()> {
    if let Some(path) = put_aside(kept) {
        return Err(Error::UndoConflict {
            reason: "UNDO_UNFINISHED",
            message: format!(
                "an undo of the export ended midway, and {} is what it put aside; undo the export again first",
                path.display()
            ),
        });
    }
    let Ok(Some(backups)) = Backups::open(kept) else { return Ok(()) };
    let found = backups.look().unwrap_or_default();
    let Some(path) = found.theirs.first() else { return Ok(()) };
    let path = Path::new(&kept.record.target_dir).join(path.as_path());
    Err(Error::UndoConflict {
        reason: "NEWER_WORK",
        message: format!(
            "{} is newer than the export, and would go with its backups; undo the export, which puts it back, or move \
             it away",
            path.display()
        ),
    })
}

/// Removes an export's backups; no exported file, and nothing that it did not keep itself. The error says what is left.
pub fn discard(disk: &Disk, kept: &KeptExport) -> Result<()> {
    sweep(disk, kept);
    let record = &kept.record;
    let has_backups = record.items.iter().any(|item| !item.backup_path.is_empty());
    let left = |error: io::Error| {
        Error::io(format!("the backups of {} below {:?} are left", record.id, record.target_dir), error)
    };
    let backups = match Backups::open(kept) {
        // Where nothing was kept, nothing is left.
        Err(_) if !has_backups => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound && Path::new(&record.target_dir).is_dir() => {
            None
        }
        opened => opened.map_err(left)?,
    };
    if let Some(backups) = backups {
        backups.remove(disk).map_err(left)?;
    }
    match put_aside(kept) {
        Some(path) => {
            let path = path.display();
            Err(left(io::Error::other(format!(
                "{path} was put aside by an undo that ended midway, and stays"
            ))))
        }
        None => Ok(()),
    }
}

/// An exported file that lost its name to an undo which ended midway: nobody but its undo can tell what it is.
fn put_aside(kept: &KeptExport) -> Option<PathBuf> {
    let target_dir = Path::new(&kept.record.target_dir);
    let (names, target) = (Names::of(&kept.record.id), Root::open(target_dir).ok()?);
    Notes::read(&kept.notes).undoing.into_iter().find_map(|at| {
        let (dir, _) = relative(target_dir, &kept.record.items.get(at)?.dst)?.split()?;
        let path = dir.join(&Name::new(names.aside(at).as_bytes()).ok()?);
        let (dir, name) = target.open_parent(&path).ok()??;
        look(&dir, name.as_bytes()).ok()??;
        Some(target_dir.join(path.as_path()))
    })
}

/// Removes what the export could not when it should have.
fn sweep(disk: &Disk, kept: &KeptExport) {
    let mut notes = Notes::read(&kept.notes);
    if let Ok(base) = Root::open(Path::new(&notes.base))
        && !notes.is_elsewhere(&base)
    {
        let mut ground =
            Ground::new(disk, base, notes.base.clone().into(), Dirs::new(), Forbidden::default());
        ground.sweep(&mut notes.left);
    }
}

/// The directory of an export's backups.
struct Backups<'a> {
    kept: &'a KeptExport,
    notes: Notes,
    target: Root,
    /// Below the target.
    path: RelPath,
    /// Where each item's backup is, below the target.
    places: HashMap<RelPath, usize>,
}

/// What there is among the backups, by path below the target; directories before what is in them.
#[derive(Default)]
struct Content {
    dirs: Vec<RelPath>,
    ours: Vec<RelPath>,
    theirs: Vec<RelPath>,
}

impl<'a> Backups<'a> {
    /// `None` if no export of this id can have any.
    fn open(kept: &'a KeptExport) -> io::Result<Option<Self>> {
        let names = Names::of(&kept.record.id);
        let Ok(path) = names.backups() else { return Ok(None) };
        let dir = Path::new(&kept.record.target_dir);
        let target = Root::open(dir)?;
        target.open_dir(&path)?;
        let places = kept.record.items.iter().enumerate().filter_map(|(at, item)| {
            let path = relative(dir, &item.dst)?;
            Some((backup::place(&names, &RelPath::ROOT, &path)?, at))
        });
        let places = places.collect();
        Ok(Some(Self { kept, notes: Notes::read(&kept.notes), target, path, places }))
    }

    /// Tells what the export kept from what it did not: an undo that failed midway can have left newer work here.
    fn look(&self) -> io::Result<Content> {
        let mut content = Content::default();
        let mut open = vec![self.path.clone()];
        while let Some(path) = open.pop() {
            let dir = Root::held(self.target.open_dir(&path)?)?;
            for entry in rustix::fs::Dir::read_from(dir.as_fd())? {
                let Ok(name) = Name::new(entry?.file_name().to_bytes()) else { continue };
                let (at, found) = (path.join(&name), stat(&dir, name.as_bytes())?);
                match found.kind {
                    FileKind::Directory => open.push(at),
                    FileKind::File if self.is_ours(&dir, &name, &at, &found) => content.ours.push(at),
                    _ => content.theirs.push(at),
                }
            }
            content.dirs.push(path);
        }
        Ok(content)
    }

    fn is_ours(&self, dir: &Root, name: &Name, path: &RelPath, found: &Stat) -> bool {
        let base = relative(Path::new(&self.notes.base), &self.kept.record.target_dir);
        let below_base = below(&base.unwrap_or_default(), path);
        if self.notes.left.iter().any(|left| left.is(&below_base, found.ino)) {
            return true;
        }
        let Some(at) = self.places.get(path) else { return false };
        let item = &self.kept.record.items[*at];
        let Some(note) = self.notes.backups.get(at) else {
            // Older versions noted nothing.
            return self.kept.record.legacy && !item.backup_path.is_empty();
        };
        // A file that was exported can be here since its undo put the backup into its place.
        let is_known = |hash: String| hash == note.hash || hash == item.hash;
        note.is(found) || Opened::at(dir, name.as_bytes()).and_then(|file| file.hash()).is_ok_and(is_known)
    }

    fn remove(&self, disk: &Disk) -> io::Result<()> {
        let Content { dirs, ours, theirs } = self.look()?;
        let parent = Name::new(UNDO_DIR.as_bytes()).map_err(|_| io::ErrorKind::InvalidFilename)?;
        match self.target.open_parent(&self.path)? {
            Some((above, name)) if theirs.is_empty() => remove_tree(disk, &above, &name)?,
            _ => self.remove_ours(disk, &ours, &dirs)?,
        }
        // Those of other exports may be in there.
        let _ = disk.rmdir(self.target.open_dir(&RelPath::ROOT)?, parent.as_bytes());
        match theirs.first() {
            Some(path) => Err(io::Error::other(format!("{path} is newer than the export, and stays"))),
            None => Ok(()),
        }
    }

    fn remove_ours(&self, disk: &Disk, files: &[RelPath], dirs: &[RelPath]) -> io::Result<()> {
        for path in files {
            if let Some((dir, name)) = self.target.open_parent(path)? {
                disk.unlink(&dir, name.as_bytes())?;
            }
        }
        for path in dirs.iter().rev() {
            if let Some((dir, name)) = self.target.open_parent(path)? {
                // One that still holds something stays.
                let _ = disk.rmdir(&dir, name.as_bytes());
            }
        }
        Ok(())
    }
}
