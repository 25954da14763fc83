//! Writes a batch of files: all of them beside their places first, then, once that is durable, each into its place.

use std::collections::HashSet;
use std::fs::File;
use std::io;

use cofferdam_protocol::pod::{ConflictMode, ExportItem, ExportItemStatus as Status, ExportMode};
use rustix::fs::{Mode, OFlags};

use super::ExportLog;
use super::ahead::Sources;
use super::backup::{Kept, keep, place};
use super::content::{MAX_FILE, Opened, Seen, Source, dress, in_words, kind_in_words};
use super::ground::{Dir, FEW, Ground, Place};
use super::left::Left;
use super::moves::{is_unknown, look, rename_exclusive};
use super::names::{MOST_TRIES, Names, numbered};
use super::notes::{Intent, Notes, time};
use super::plan::{NOT_WRITTEN, PlannedFile, RENAMED};
use super::source::MAX_BYTES;
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::{stat, stat_fd};
use crate::path::{Name, RelPath};
use crate::pod::error::{Error, Result};
use crate::pod::model::Change;

/// How an item ends before it is written.
type Settled = (Status, String);

/// An export that is being carried out.
pub(super) struct Work<'a> {
    pub disk: &'a Disk,
    pub id: String,
    pub mode: ExportMode,
    pub names: &'a Names,
    /// Where the target is beneath the base.
    pub target: RelPath,
    pub base: Ground<'a>,
    pub source: Ground<'a>,
    pub notes: Notes,
    pub items: Vec<ExportItem>,
    /// Files that this export has written: on a filesystem that folds case they can be in the way of its others.
    pub written: HashSet<Place>,
    /// Items that are done, of which the record does not say so yet.
    pub unsaved: Vec<usize>,
    /// How many bytes were written.
    pub bytes: u64,
}

/// A file that waits beside its place.
struct Staged {
    item: usize,
    from: RelPath,
    /// The source, as it was copied.
    seen: Seen,
    at: RelPath,
    dir: Dir,
    /// Held open if it is made durable by itself.
    new: Option<File>,
    ino: Place,
    wanted: Name,
    name: Name,
    number: u32,
    conflict: ConflictMode,
    kept: Option<Kept>,
}

impl Work<'_> {
    /// Writes some files. What cannot be written is said in its item; an error means that the record could not be
    /// saved. `copied` is called after each file. How they ended is saved with whatever is saved next.
    pub(super) fn batch(
        &mut self,
        files: &[PlannedFile],
        log: &mut dyn ExportLog,
        copied: &mut dyn FnMut(),
    ) -> Result<()> {
        let mut staged = Vec::new();
        std::thread::scope(|threads| {
            let mut sources = Sources::open(threads, self.disk, self.source.root(), files);
            for file in files {
                match self.stage(file, sources.next()) {
                    Ok((new, made)) => {
                        let new = Staged { new: (files.len() <= FEW).then_some(made), ..new };
                        staged.push(new);
                    }
                    Err(settled) => self.settle(file.item, settled),
                }
                copied();
            }
        });
        self.step("export.copied")?;
        let mut ready = Vec::new();
        for mut new in staged {
            match self.keep_what_is_in_the_way(&mut new) {
                Ok(()) => ready.push(new),
                Err(settled) => self.give_up(&new, settled),
            }
        }
        self.step("export.kept")?;
        let held: Vec<&File> = ready.iter().filter_map(|new| new.new.as_ref()).collect();
        let durable = match held.len() == ready.len() {
            true => self.base.sync_changes(&held),
            false => self.base.sync(),
        };
        if let Err(error) = durable {
            let why = format!("it could not be made durable: {}", in_words(&error));
            ready.drain(..).for_each(|new| self.give_up(&new, fail(why.clone())));
        }
        // What is about to happen is known before it does.
        ready.iter().for_each(|new| self.intend(new.item));
        if let Err(error) = self.save(log).and_then(|()| self.step("export.intended")) {
            ready.iter().for_each(|new| self.give_up(new, fail(error.to_string())));
            return Err(error);
        }
        let mut placed = Vec::new();
        for mut new in ready {
            // Nobody can run a program that is open for writing.
            new.new = None;
            match self.place(&mut new, log)? {
                Ok(()) => placed.push(new),
                Err(settled) => self.give_up(&new, settled),
            }
        }
        self.step("export.renamed")?;
        let durable = if placed.is_empty() { Ok(()) } else { self.base.sync_changes(&[]) };
        for new in &placed {
            self.finish(new, durable.as_ref().err());
        }
        self.base.settle();
        self.source.settle();
        self.unsaved.extend(files.iter().map(|file| file.item));
        self.step("export.done")
    }

    /// Copies a file beside its place.
    fn stage(
        &mut self,
        file: &PlannedFile,
        from: io::Result<Source>,
    ) -> std::result::Result<(Staged, File), Settled> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| fail(format!("{what}: {}", in_words(&error)))
        };
        let from = from.map_err(failed("the source cannot be read"))?;
        let (size, mode, mtime, seen) = {
            let stat = from.stat();
            // No program of a sandbox becomes one that runs as somebody else.
            (stat.size, stat.mode & 0o777, time(stat.mtime), Seen::of(stat))
        };
        if size > MAX_FILE || size > MAX_BYTES - self.bytes {
            return Err(fail("it has grown beyond what an export may have".to_owned()));
        }
        let dir = self.base.make(&file.dir, 0o777).map_err(failed("its directory cannot be used"))?;
        let (name, number, conflict) = self.choose(file, &dir)?;

        self.base.touch(&file.dir, &dir);
        let temporary = self.names.new_file(file.item);
        let failed = failed("it cannot be written");
        let new = self.disk.create(&dir, &*temporary, OFlags::WRONLY, Mode::RUSR | Mode::WUSR);
        let new = File::from(new.map_err(&failed)?);
        let written = from.copy_to(self.disk, &new).and_then(|hash| {
            dress(self.disk, &new, mode, mtime)?;
            let made = stat_fd(&new)?;
            Ok((hash, (made.dev, made.ino)))
        });
        let (hash, ino) = written.map_err(|error| {
            let (status, message) = failed(error);
            // Of what nobody can say which file it is nothing can be noted.
            let ino = stat_fd(&new).map_or(0, |made| made.ino);
            (status, self.throw_away((&file.dir, &dir), &temporary, ino, message))
        })?;
        self.bytes += size;
        let dst = self.base.absolute(&file.dir.join(&name));
        let item = &mut self.items[file.item];
        item.bytes = size;
        item.hash = hash;
        item.dst = dst;
        if conflict != file.conflict {
            item.message = format!("{NOT_WRITTEN}; {RENAMED}");
        }
        self.notes.written.insert(file.item, ino.1);
        let staged = Staged {
            item: file.item,
            from: file.from.clone(),
            seen,
            at: file.dir.clone(),
            dir,
            new: None,
            ino,
            wanted: file.name.clone(),
            name,
            number,
            conflict,
            kept: None,
        };
        Ok((staged, new))
    }

    /// The name that a file gets as things stand.
    fn choose(
        &self,
        file: &PlannedFile,
        dir: &Dir,
    ) -> std::result::Result<(Name, u32, ConflictMode), Settled> {
        let (mut number, mut conflict) = (file.number, file.conflict);
        loop {
            let name = numbered(&file.name, number).map_err(|_| no_name())?;
            self.base.allow(dir, &name).map_err(|error| fail(error.to_string()))?;
            let found = look(dir, name.as_bytes())
                .map_err(|error| fail(format!("its place cannot be looked at: {}", in_words(&error))))?;
            let Some(found) = found else { return Ok((name, number, conflict)) };
            let is_ours = self.written.contains(&(found.dev, found.ino));
            match (found.kind, conflict) {
                (FileKind::Directory | FileKind::MountPoint, _) => {
                    return Err(fail("a directory is in the way".to_owned()));
                }
                (kind, ConflictMode::Skip) => {
                    return Err((
                        Status::Skip,
                        format!("{} of this name is there already", kind_in_words(kind)),
                    ));
                }
                (FileKind::File, ConflictMode::Overwrite) if !is_ours => return Ok((name, number, conflict)),
                (FileKind::File, ConflictMode::Overwrite) => conflict = ConflictMode::Rename,
                (kind, ConflictMode::Overwrite) => {
                    return Err(fail(format!("{} is in the way", kind_in_words(kind))));
                }
                (_, ConflictMode::Rename) => {}
            }
            number += 1;
            if number > MOST_TRIES {
                return Err(no_name());
            }
        }
    }

    fn keep_what_is_in_the_way(&mut self, new: &mut Staged) -> std::result::Result<(), Settled> {
        if new.conflict != ConflictMode::Overwrite {
            return Ok(());
        }
        let kept = match look(&new.dir, new.name.as_bytes()) {
            Ok(Some(_)) => keep(self.disk, &mut self.base, self.names, &self.target, &new.at, &new.name),
            Ok(None) => return Ok(()),
            Err(error) => Err(error),
        };
        let kept = kept.map_err(|error| {
            if error.kind() != io::ErrorKind::AlreadyExists {
                self.note_half_a_backup(new);
            }
            fail(format!("the file in the way could not be backed up: {}", in_words(&error)))
        })?;
        let item = &mut self.items[new.item];
        item.backup_path = self.base.absolute(&kept.path);
        item.existed = true;
        self.notes.backups.insert(new.item, kept.note.clone());
        new.kept = Some(kept);
        // What was kept may be a copy, which nobody holds: it becomes durable with everything else.
        new.new = None;
        Ok(())
    }

    /// Gives a file its name. The outer error means that the record could not be saved.
    fn place(
        &mut self,
        new: &mut Staged,
        log: &mut dyn ExportLog,
    ) -> Result<std::result::Result<(), Settled>> {
        let temporary = self.names.new_file(new.item);
        if let Some(kept) = &new.kept {
            let placed = replace(self.disk, &new.dir, &temporary, new.name.as_bytes(), kept);
            return Ok(match placed {
                Ok(message) => {
                    self.written.insert(new.ino);
                    if !message.is_empty() {
                        self.notes.left.push(Left::new(&new.at, &temporary, kept.original.ino));
                    }
                    self.items[new.item].message = message;
                    Ok(())
                }
                Err(error) => Err(fail(format!("it could not be put into its place: {}", in_words(&error)))),
            });
        }
        loop {
            let to = (&*new.dir, new.name.as_bytes());
            match rename_exclusive(self.disk, (&*new.dir, temporary.as_bytes()), to) {
                Ok(()) => {
                    self.written.insert(new.ino);
                    let renamed = self.items[new.item].message.ends_with(RENAMED);
                    self.items[new.item].message = if renamed { RENAMED } else { "" }.to_owned();
                    return Ok(Ok(()));
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    let why = format!("it could not be put into its place: {}", in_words(&error));
                    return Ok(Err(fail(why)));
                }
                Err(_) if new.conflict == ConflictMode::Skip => {
                    return Ok(Err((Status::Skip, "a file of this name is there already".to_owned())));
                }
                Err(_) if new.conflict == ConflictMode::Overwrite => {
                    return Ok(Err(fail("a file appeared in its place meanwhile".to_owned())));
                }
                Err(_) => {}
            }
            // Another export was quicker: the next name, which the record has to know first.
            let planned = PlannedFile {
                item: new.item,
                from: new.from.clone(),
                dir: new.at.clone(),
                name: new.wanted.clone(),
                number: new.number + 1,
                conflict: new.conflict,
                size: 0,
            };
            match self.choose(&planned, &new.dir) {
                Ok((name, number, _)) => (new.name, new.number) = (name, number),
                Err(settled) => return Ok(Err(settled)),
            }
            self.items[new.item].dst = self.base.absolute(&new.at.join(&new.name));
            self.intend(new.item);
            self.save(log)?;
        }
    }

    /// What is left to do once a file is in its place.
    fn finish(&mut self, new: &Staged, not_durable: Option<&io::Error>) {
        let mut message = std::mem::take(&mut self.items[new.item].message);
        if let Some(error) = not_durable {
            message = format!("it may not survive a power loss: {}", in_words(error));
        } else if self.mode == ExportMode::Move
            && let Err(error) = self.remove_source(new)
        {
            message = format!("the source is still there: {}", in_words(&error));
        }
        let item = &mut self.items[new.item];
        item.status = Status::Ok;
        item.message = message;
    }

    /// Removes the source of a file that is in its place, if both are what they were.
    fn remove_source(&mut self, new: &Staged) -> io::Result<()> {
        let copy = Opened::at(&new.dir, new.name.as_bytes())?;
        if (copy.stat.dev, copy.stat.ino) != new.ino || copy.hash()? != self.items[new.item].hash {
            return Err(io::Error::other("the exported file was changed"));
        }
        let (dir, at, name) = self.source.open_parent(&new.from)?;
        let found = stat(&dir, name.as_bytes())?;
        if found.kind != FileKind::File || Seen::of(&found) != new.seen {
            return Err(io::Error::other("it was changed"));
        }
        self.source.touch(&at, &dir);
        self.disk.unlink(&dir, name.as_bytes())
    }

    /// Removes what was made for a file that does not get into its place.
    fn give_up(&mut self, new: &Staged, (status, mut message): Settled) {
        let temporary = self.names.new_file(new.item);
        match stat(&new.dir, &*temporary) {
            Ok(found) if (found.dev, found.ino) == new.ino => {
                message = self.throw_away((&new.at, &new.dir), &temporary, new.ino.1, message);
            }
            // Somebody's file, which could not be given its name back.
            Ok(_) => message = format!("{message}; what was there then is kept as {temporary}"),
            Err(_) => {}
        }
        if let Some(kept) = &new.kept
            && let Ok((dir, _, name)) = self.base.open_parent(&kept.path)
            && self.disk.unlink(&dir, name.as_bytes()).is_err()
        {
            self.notes.left.push(Left::at(&kept.path, kept.note.ino));
        }
        self.notes.backups.remove(&new.item);
        self.notes.written.remove(&new.item);
        self.notes.intended.remove(&new.item);
        self.settle(new.item, (status, message));
    }

    /// Removes a copy, or says that it is left.
    fn throw_away(&mut self, dir: (&RelPath, &Dir), name: &str, ino: u64, message: String) -> String {
        match self.base.throw_away(&mut self.notes.left, dir, name, ino) {
            Some(left) => format!("{message}; {left}"),
            None => message,
        }
    }

    /// Notes a copy of a file in the way that is not complete, if it could not be removed.
    fn note_half_a_backup(&mut self, new: &Staged) {
        let Some(path) = place(self.names, &self.target, &new.at.join(&new.name)) else { return };
        if let Ok((dir, _, name)) = self.base.open_parent(&path)
            && let Ok(Some(found)) = look(&dir, name.as_bytes())
        {
            self.notes.left.push(Left::at(&path, found.ino));
        }
    }

    /// Says how an item ended that is not in its place.
    fn settle(&mut self, item: usize, (status, message): Settled) {
        let item = &mut self.items[item];
        item.status = status;
        item.message = message;
        item.hash.clear();
        item.backup_path.clear();
        item.existed = false;
    }

    /// Notes what is about to happen.
    fn intend(&mut self, at: usize) {
        let ExportItem { hash, bytes, dst, .. } = &self.items[at];
        let intent = Intent { hash: hash.clone(), bytes: *bytes, dst: dst.clone() };
        self.notes.intended.insert(at, intent);
    }

    /// Makes durable what is known by now.
    fn save(&mut self, log: &mut dyn ExportLog) -> Result<()> {
        let changes = self.changes();
        log.save(changes)
    }

    /// The items that are done, and the notes, to be made durable.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let done = std::mem::take(&mut self.unsaved);
        for item in &done {
            self.notes.written.remove(item);
            self.notes.intended.remove(item);
        }
        self.notes.target = self.base.dirs.clone();
        self.notes.source = self.source.dirs.clone();
        let items = done.iter().map(|at| (*at, self.items[*at].clone())).collect();
        vec![
            Change::PutExportItems { export: self.id.clone(), items },
            Change::PutExportNotes { export: self.id.clone(), notes: self.notes.text() },
        ]
    }

    pub(super) fn step(&self, name: &str) -> Result<()> {
        self.disk.step(name).map_err(|error| Error::io(name, error))
    }
}

/// Puts a new file into the place of one that was kept, with no moment without a file of that name. Gives what a person
/// should know.
fn replace(disk: &Disk, dir: &Dir, temporary: &str, name: &[u8], kept: &Kept) -> io::Result<String> {
    let changed = || io::Error::other("the file in the way was changed meanwhile");
    match disk.exchange((dir, temporary), (dir, name)) {
        Err(error) if is_unknown(&error) => {
            if Seen::of(&stat(dir, name)?) != kept.original {
                return Err(changed());
            }
            return disk.rename((dir, temporary), (dir, name)).map(|()| String::new());
        }
        done => done?,
    }
    let displaced = stat(dir, temporary.as_bytes()).map(|stat| Seen::of(&stat));
    if !displaced.is_ok_and(|seen| seen == kept.original) {
        disk.exchange((dir, temporary), (dir, name))?;
        return Err(changed());
    }
    match disk.unlink(dir, temporary) {
        Ok(()) => Ok(String::new()),
        Err(error) => Ok(format!("the replaced file is also still there as {temporary}: {error}")),
    }
}

fn fail(message: String) -> Settled {
    (Status::Fail, message)
}

fn no_name() -> Settled {
    fail("no name is free for it".to_owned())
}

/// Whether an item is not settled.
pub(super) fn is_open(item: &ExportItem) -> bool {
    item.status == Status::Fail && item.message.starts_with(NOT_WRITTEN)
}
