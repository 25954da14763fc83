//! Undoes an export, the last file first.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{
    ExportItem, ExportItemStatus as Status, ExportMode, ExportRecord, ExportStatus, ExportUndone,
    UndoConflict,
};

use super::ExportLog;
use super::batch::is_open;
use super::content::in_words;
use super::forbidden::Forbidden;
use super::ground::{Dir, Ground};
use super::names::Names;
use super::notes::Notes;
use crate::disk::Disk;
use crate::fs::Root;
use crate::path::RelPath;
use crate::pod::error::{Error, Result};
use crate::pod::model::Change;
use crate::pod::place::TaskPlace;

/// How many files are undone together.
const BATCH: usize = 250;

/// Undoes what can be undone of a record that is complete with all of its items (spec §8). `notes` are those that were
/// saved with it. Unless `verify`, files are removed whatever they hold.
///
/// What is in conflict is said in its item and can be tried again. An error means that there is nothing to undo, or
/// that the record could not be saved; in the latter case another undo goes on where this one ended.
pub fn undo(
    disk: &Disk,
    record: ExportRecord,
    notes: &str,
    verify: bool,
    at: i64,
    log: &mut dyn ExportLog,
) -> Result<ExportUndone> {
    if record.status == ExportStatus::Running {
        return Err(nothing("RUNNING", "the export is still running; wait for its end"));
    }
    let open = open_items(&record);
    let unknown: Vec<usize> = (0..record.items.len()).filter(|at| is_open(&record.items[*at])).collect();
    let was_undone = record.items.iter().any(|item| item.status == Status::Undo);
    let mut undo = Undo::new(disk, record, notes, verify);
    for batch in open.chunks(BATCH) {
        undo.batch(batch, log)?;
    }
    undo.tidy();
    for at in unknown {
        let ExportItem { dst: path, message, .. } = &undo.record.items[at];
        undo.conflicts.push(UndoConflict { path: path.clone(), message: message.clone() });
    }
    let Undo { mut record, notes: kept, removed, restored, conflicts, .. } = undo;
    let mut changes = Vec::new();
    let kept = kept.text();
    if kept != notes && !record.legacy {
        changes.push(Change::PutExportNotes { export: record.id.clone(), notes: kept });
    }
    if !removed.is_empty() || !restored.is_empty() {
        record.undone_at = at;
        let (export, status) = (record.id.clone(), record.status);
        changes.push(Change::SettleExport { export, status, undone_at: at });
    }
    if !changes.is_empty() {
        log.save(changes)?;
    }
    if open.is_empty() && was_undone && conflicts.is_empty() {
        return Err(nothing("UNDONE", "everything of this export was undone before"));
    }
    Ok(ExportUndone { export: record, removed, restored, conflicts })
}

fn nothing(reason: &'static str, message: &str) -> Error {
    Error::UndoConflict { reason, message: message.to_owned() }
}

/// The items that can be undone, the last first.
fn open_items(record: &ExportRecord) -> Vec<usize> {
    let items = record.items.iter().enumerate().rev();
    let open = items.filter(|(_, item)| matches!(item.status, Status::Ok | Status::UndoConflict));
    open.map(|(at, _)| at).collect()
}

/// Why an item is not undone.
#[derive(Debug)]
pub(super) enum Hitch {
    /// Something is not as it should be; nothing was touched.
    Conflict(String),
    /// Its place cannot be reached, so that nobody can say how it is; nothing was touched.
    Unreached(String),
    /// The disk failed; the next undo goes on from here.
    Failed(String),
}

impl From<io::Error> for Hitch {
    fn from(error: io::Error) -> Self {
        Self::Failed(in_words(&error))
    }
}

/// A file that goes for good once what takes its place is durable.
pub(super) type Litter = Vec<(Dir, Vec<u8>)>;

/// An undo at work.
pub(super) struct Undo<'a> {
    pub disk: &'a Disk,
    pub record: ExportRecord,
    pub names: Names,
    pub verify: bool,
    /// The target beneath the base.
    pub target: RelPath,
    pub base: io::Result<Ground<'a>>,
    /// Whether the base is another directory than the export wrote to: its drive may be away.
    pub is_elsewhere: bool,
    /// The task's directory, of a move.
    pub source: Option<Ground<'a>>,
    pub notes: Notes,
    /// Items whose undo was begun before.
    pub begun: BTreeSet<usize>,
    pub removed: Vec<String>,
    pub restored: Vec<String>,
    pub conflicts: Vec<UndoConflict>,
}

impl<'a> Undo<'a> {
    fn new(disk: &'a Disk, record: ExportRecord, notes: &str, verify: bool) -> Self {
        let mut notes = Notes::read(notes);
        if notes.base.is_empty() {
            notes.base.clone_from(&record.target_dir);
        }
        let base = PathBuf::from(&notes.base);
        let target = super::ground::relative(&base, &record.target_dir).unwrap_or(RelPath::ROOT);
        let dirs = notes.target.clone();
        let root = Root::open(&base);
        let is_elsewhere = root.as_ref().is_ok_and(|root| notes.is_elsewhere(root));
        let mut base = root.map(|root| Ground::new(disk, root, base, dirs, Forbidden::default()));
        let mut source = None;
        if record.mode == ExportMode::Move && !record.legacy {
            source = open_source(disk, &notes);
        }
        let there = base.iter_mut().filter(|_| !is_elsewhere);
        there.chain(&mut source).for_each(Ground::look_for_changes);
        let (names, begun) = (Names::of(&record.id), notes.undoing.clone());
        let (removed, restored, conflicts) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            disk,
            record,
            names,
            verify,
            target,
            base,
            is_elsewhere,
            source,
            notes,
            begun,
            removed,
            restored,
            conflicts,
        }
    }

    /// Undoes some items.
    fn batch(&mut self, items: &[usize], log: &mut dyn ExportLog) -> Result<()> {
        self.notes.undoing.extend(items);
        self.save(log, &[])?;
        self.step("undo.begun")?;

        let mut ready = Vec::new();
        for at in items {
            match self.check(*at) {
                Ok(checked) => ready.push((*at, checked)),
                Err(hitch) => self.hitch(*at, hitch),
            }
        }
        if self.record.mode == ExportMode::Move {
            ready = self.sift(ready, |undo, at, checked| undo.bring_back(at, &checked).map(|()| checked));
            let durable = self.source.as_ref().map_or(Ok(()), Ground::sync);
            ready = self.sift(ready, |_, _, checked| still(&durable).map(|()| checked));
        }
        self.step("undo.returned")?;

        let taken = self.sift(ready, Self::take_away);
        let durable =
            self.base.as_ref().map_or(Ok(()), |base| if taken.is_empty() { Ok(()) } else { base.sync() });
        self.step("undo.replaced")?;
        let gone = self.sift(taken, |undo, _, litter| {
            still(&durable)?;
            litter.iter().try_for_each(|(dir, name)| undo.throw_away(dir, name))
        });
        let durable =
            self.base.as_ref().map_or(Ok(()), |base| if gone.is_empty() { Ok(()) } else { base.sync() });
        let gone = self.sift(gone, |_, _, ()| still(&durable));
        self.step("undo.removed")?;

        for (at, ()) in gone {
            self.done(at);
        }
        self.base.iter_mut().chain(&mut self.source).for_each(Ground::settle);
        self.save(log, items)?;
        self.step("undo.saved")
    }

    /// Goes on with the items that have no hitch.
    fn sift<T, U>(
        &mut self,
        items: Vec<(usize, T)>,
        mut next: impl FnMut(&mut Self, usize, T) -> std::result::Result<U, Hitch>,
    ) -> Vec<(usize, U)> {
        let mut on = Vec::with_capacity(items.len());
        for (at, item) in items {
            match next(self, at, item) {
                Ok(item) => on.push((at, item)),
                Err(hitch) => self.hitch(at, hitch),
            }
        }
        on
    }

    fn hitch(&mut self, at: usize, hitch: Hitch) {
        let message = match hitch {
            Hitch::Failed(message) => format!("{message}; try again"),
            // What was begun is gone on with once the drive is there again.
            Hitch::Unreached(message) if self.begun.contains(&at) => message,
            Hitch::Conflict(message) | Hitch::Unreached(message) => {
                self.notes.undoing.remove(&at);
                message
            }
        };
        let item = &mut self.record.items[at];
        item.status = Status::UndoConflict;
        item.message.clone_from(&message);
        self.conflicts.push(UndoConflict { path: item.dst.clone(), message });
    }

    fn done(&mut self, at: usize) {
        self.notes.undoing.remove(&at);
        self.notes.backups.remove(&at);
        let item = &mut self.record.items[at];
        item.status = Status::Undo;
        item.message.clear();
        let list = if item.backup_path.is_empty() { &mut self.removed } else { &mut self.restored };
        list.push(item.dst.clone());
        if self.record.mode == ExportMode::Move {
            self.restored.push(item.src.clone());
        }
    }

    fn throw_away(&self, dir: &Dir, name: &[u8]) -> std::result::Result<(), Hitch> {
        match self.disk.unlink(dir, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(Hitch::from),
        }
    }

    /// Removes directories that the export made, makes again those that it removed, and puts back times.
    fn tidy(&mut self) {
        let open = open_items(&self.record);
        if let Ok(base) = &mut self.base
            && !self.is_elsewhere
        {
            base.sweep(&mut self.notes.left);
            self.notes.unfinished &= !self.notes.left.is_empty() || self.record.items.iter().any(is_open);
            // The next undo looks there for what became of its items.
            if self.notes.undoing.is_empty() {
                base.remove_made();
            }
            let paths = open.iter().filter_map(|at| base.relative(&self.record.items[*at].dst));
            let paths: Vec<RelPath> = paths.collect();
            base.put_back(|dir| paths.iter().any(|path| path.starts_with(dir)));
            self.notes.target = base.dirs.clone();
        }
        if let Some(source) = &mut self.source {
            if open.is_empty() {
                source.make_emptied();
            }
            let paths = open.iter().filter_map(|at| source.relative(&self.record.items[*at].src));
            let paths: Vec<RelPath> = paths.collect();
            source.put_back(|dir| paths.iter().any(|path| path.starts_with(dir)));
            self.notes.source = source.dirs.clone();
        }
    }

    fn save(&mut self, log: &mut dyn ExportLog, items: &[usize]) -> Result<()> {
        if let Ok(base) = &self.base {
            self.notes.target = base.dirs.clone();
        }
        if let Some(source) = &self.source {
            self.notes.source = source.dirs.clone();
        }
        let export = &self.record.id;
        let mut changes = vec![Change::PutExportNotes { export: export.clone(), notes: self.notes.text() }];
        if !items.is_empty() {
            let items = items.iter().map(|at| (*at, self.record.items[*at].clone())).collect();
            changes.push(Change::PutExportItems { export: export.clone(), items });
        }
        log.save(changes)
    }

    fn step(&self, name: &str) -> Result<()> {
        self.disk.step(name).map_err(|error| Error::io(name, error))
    }
}

/// The task's directory; `None` if it is gone.
fn open_source<'a>(disk: &'a Disk, notes: &Notes) -> Option<Ground<'a>> {
    let dir = Path::new(&notes.task_dir);
    if !dir.is_absolute() {
        return None;
    }
    let place = TaskPlace { root: notes.root.as_ref().map(PathBuf::from), dir: dir.to_owned() };
    let root = place.open().ok()??;
    Some(Ground::new(disk, root, place.dir, notes.source.clone(), Forbidden::default()))
}

/// Whether what was written is durable.
fn still(durable: &io::Result<()>) -> std::result::Result<(), Hitch> {
    durable.as_ref().map(drop).map_err(|error| {
        Hitch::Failed(format!("what was put back could not be made durable: {}", in_words(error)))
    })
}
