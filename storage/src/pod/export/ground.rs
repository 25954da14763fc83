//! A directory that an export works beneath, and what it changes there in directories.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::Mode;

use super::content::set_mtime;
use super::forbidden::Forbidden;
use super::moves::is_unknown;
use super::notes::{DirNote, Dirs, Time, Was, time};
use crate::disk::Disk;
use crate::fs::{Root, stat_fd};
use crate::path::{Name, RelPath};

/// A directory held open, beneath which directories are made and changed: through no link, across no mount, and into
/// none that is forbidden.
#[derive(Debug)]
pub(super) struct Ground<'a> {
    disk: &'a Disk,
    root: Root,
    path: PathBuf,
    /// What is known of directories that were changed.
    pub dirs: Dirs,
    forbidden: Forbidden,
    /// Files come in the order of their directories.
    last: Option<(RelPath, Dir)>,
    /// Directories that were changed since the last time they were at rest.
    touched: BTreeSet<RelPath>,
}

/// A directory beneath.
pub(super) type Dir = Rc<Root>;

/// How many files and directories are made durable one by one; with more of them, everything on the filesystem is.
pub(super) const FEW: usize = 16;

/// Device and inode.
pub(super) type Place = ((u32, u32), u64);

impl<'a> Ground<'a> {
    pub(super) fn new(disk: &'a Disk, root: Root, path: PathBuf, dirs: Dirs, forbidden: Forbidden) -> Self {
        // A descriptor that can be synced, if we may read the directory; it is told of all that cannot be written from now.
        let root = root.open_dir(&RelPath::ROOT).and_then(Root::held).unwrap_or(root);
        Self { disk, root, path, dirs, forbidden, last: None, touched: BTreeSet::new() }
    }

    pub(super) fn disk(&self) -> &'a Disk {
        self.disk
    }

    /// The directory that everything is beneath, once more.
    pub(super) fn root(&self) -> io::Result<Root> {
        Root::held(&self.root)
    }

    /// Where an absolute path is beneath; `None` if it is elsewhere.
    pub(super) fn relative(&self, path: &str) -> Option<RelPath> {
        relative(&self.path, path)
    }

    /// The absolute path of what is beneath.
    pub(super) fn absolute(&self, path: &RelPath) -> String {
        self.path.join(path.as_path()).to_string_lossy().into_owned()
    }

    /// Opens a directory.
    pub(super) fn open(&mut self, path: &RelPath) -> io::Result<Dir> {
        self.reach(path, None)
    }

    /// Opens a directory, making those that are missing with `mode` as far as the umask allows it.
    pub(super) fn make(&mut self, path: &RelPath, mode: u32) -> io::Result<Dir> {
        self.reach(path, Some(mode))
    }

    /// Opens the directory that holds `path`, with the last name.
    pub(super) fn open_parent(&mut self, path: &RelPath) -> io::Result<(Dir, RelPath, Name)> {
        let (parent, name) = path.split().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.open(&parent)?, parent, name))
    }

    fn reach(&mut self, path: &RelPath, make: Option<u32>) -> io::Result<Dir> {
        if let Some((held, dir)) = &self.last
            && held == path
        {
            return Ok(dir.clone());
        }
        let mut at = RelPath::ROOT;
        let mut dir = self.root.open_dir(&at)?;
        for name in path.components() {
            let below = at.join(&name);
            let next = match (enter(&dir, &name), make) {
                (Err(error), Some(mode)) if error.kind() == io::ErrorKind::NotFound => {
                    self.make_one(&dir, &at, &below, &name, mode)?;
                    enter(&dir, &name)
                }
                (entered, _) => entered,
            }?;
            self.forbidden.enter(&next)?;
            (dir, at) = (next, below);
        }
        let dir = Rc::new(Root::held(dir)?);
        self.last = Some((at, dir.clone()));
        Ok(dir)
    }

    fn make_one(
        &mut self,
        dir: &OwnedFd,
        at: &RelPath,
        below: &RelPath,
        name: &Name,
        mode: u32,
    ) -> io::Result<()> {
        self.forbidden.make(dir, name)?;
        self.touch(at, dir);
        let key = key(below);
        let mode = match self.dirs.get(&key) {
            Some(DirNote { was: Was::Removed { mode, .. }, .. }) => *mode,
            _ => mode,
        };
        match self.disk.mkdir(dir, name.as_bytes(), Mode::from_raw_mode(mode)) {
            Ok(()) => {
                self.dirs.entry(key).or_insert(DirNote { was: Was::Missing, after: None });
                Ok(())
            }
            // Somebody else was quicker, so it is theirs.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.dirs.remove(&key);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Fails for a name that no file may get.
    pub(super) fn allow(&self, dir: &Dir, name: &Name) -> io::Result<()> {
        self.forbidden.make(dir, name)
    }

    /// Notes which directories on the way to `path` are missing and will be made.
    pub(super) fn foresee(&mut self, path: &RelPath) {
        let mut at = RelPath::ROOT;
        let mut dir = self.root.open_dir(&at);
        for name in path.components() {
            at = at.join(&name);
            dir = dir.and_then(|dir| enter(&dir, &name));
            if dir.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                self.dirs.entry(key(&at)).or_insert(DirNote { was: Was::Missing, after: None });
            }
        }
    }

    /// To be called before a directory is changed.
    pub(super) fn touch(&mut self, path: &RelPath, dir: impl AsFd) {
        if self.touched.insert(path.clone())
            && let Some(mtime) = mtime(dir)
        {
            let was = Was::There(mtime);
            let note = self.dirs.entry(key(path)).or_insert(DirNote { was, after: None });
            if let (Was::There(_), Some(after)) = (note.was, note.after)
                && after != mtime
            {
                note.was = Was::Changed;
            }
        }
    }

    /// To be called when everything that was changed is at rest: from now on, who changes it is somebody else.
    pub(super) fn settle(&mut self) {
        for path in std::mem::take(&mut self.touched) {
            let now = self.root.open_dir(&path).ok().and_then(mtime);
            if let Some(note) = self.dirs.get_mut(&key(&path)) {
                note.after = now;
            }
        }
    }

    /// Finds out which directories somebody else has changed since.
    pub(super) fn look_for_changes(&mut self) {
        for (path, note) in &mut self.dirs {
            if let Was::There(_) = note.was
                && note.after != opened(&self.root, path).and_then(mtime)
            {
                note.was = Was::Changed;
            }
        }
    }

    /// Removes the directories that the export made and that are empty, the innermost first.
    pub(super) fn remove_made(&mut self) {
        self.last = None;
        let made: Vec<RelPath> = self
            .dirs
            .iter()
            .rev()
            .filter(|(_, note)| note.was == Was::Missing)
            .filter_map(|(path, _)| RelPath::new(path.as_bytes()).ok())
            .collect();
        for path in made {
            let Some((above, name)) = path.split() else { continue };
            let gone = match self.root.open_dir(&above) {
                Ok(dir) => {
                    self.touch(&above, &dir);
                    match self.disk.rmdir(&dir, name.as_bytes()) {
                        Err(error) => error.kind() == io::ErrorKind::NotFound,
                        Ok(()) => true,
                    }
                }
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            };
            if gone {
                self.dirs.remove(&key(&path));
                self.touched.remove(&path);
            }
        }
    }

    /// Removes a directory if it is empty, noting how it is to be made again.
    pub(super) fn remove_emptied(&mut self, path: &RelPath) {
        self.last = None;
        let Some((above, name)) = path.split() else { return };
        let (Ok(dir), Ok(held)) = (self.root.open_dir(&above), self.root.open_dir(path)) else { return };
        let Ok(stat) = stat_fd(&held) else { return };
        let before = match self.dirs.get(&key(path)) {
            Some(DirNote { was: Was::There(mtime), .. }) => *mtime,
            _ => time(stat.mtime),
        };
        self.touch(&above, &dir);
        if self.disk.rmdir(&dir, name.as_bytes()).is_ok() {
            self.touched.remove(path);
            let was = Was::Removed { mode: stat.mode, mtime: before };
            self.dirs.insert(key(path), DirNote { was, after: None });
        }
    }

    /// Makes again what [`Self::remove_emptied`] removed.
    pub(super) fn make_emptied(&mut self) {
        let removed: Vec<RelPath> = self
            .dirs
            .iter()
            .filter(|(_, note)| matches!(note.was, Was::Removed { .. }))
            .filter_map(|(path, _)| RelPath::new(path.as_bytes()).ok())
            .collect();
        for path in removed {
            // What cannot be made holds nothing.
            let _ = self.make(&path, 0o700);
        }
    }

    /// Puts back the modes of directories that were made again, and the times of directories that nobody else has
    /// changed. `is_busy` says of which directories more has to be undone.
    pub(super) fn put_back(&mut self, is_busy: impl Fn(&RelPath) -> bool) {
        let disk = self.disk;
        self.settle();
        let root = &self.root;
        self.dirs.retain(|path, note| {
            let Ok(rel) = RelPath::new(path.as_bytes()) else { return false };
            if is_busy(&rel) {
                return true;
            }
            let Some(dir) = opened(root, path) else { return !matches!(note.was, Was::There(_)) };
            let done = match note.was {
                Was::There(mtime) => set_mtime(disk, &dir, mtime),
                Was::Removed { mode, mtime } => {
                    disk.fchmod(&dir, Mode::from_raw_mode(mode)).and_then(|()| set_mtime(disk, &dir, mtime))
                }
                Was::Missing => return true,
                Was::Changed => Ok(()),
            };
            // Times are a courtesy: what was asked is done without them.
            let _ = done;
            false
        });
    }

    /// Does something in a directory that leaves no mark on its time.
    pub(super) fn quietly<T>(&mut self, dir: impl AsFd, work: impl FnOnce() -> T) -> T {
        let before = mtime(&dir);
        let done = work();
        if let Some(before) = before {
            let _ = set_mtime(self.disk, dir, before);
        }
        done
    }

    /// Makes everything beneath durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.disk.syncfs(&self.root)
    }

    /// Makes durable what was changed since the last time everything was at rest: these files, and names. Other programs
    /// may be writing as well, so that to wait for the whole filesystem takes longer.
    pub(super) fn sync_changes(&self, files: &[&File]) -> io::Result<()> {
        if files.len() + self.touched.len() > FEW {
            return self.sync();
        }
        let mut dirs = self.touched.iter().map(|path| self.root.open_dir(path));
        let synced = files.iter().try_for_each(|file| self.disk.fsync(file));
        match synced.and_then(|()| dirs.try_for_each(|dir| self.disk.fsync(dir?))) {
            // A filesystem that syncs no directories, or one that somebody removed or took from us.
            Err(error) if is_unknown(&error) || is_out_of_reach(&error) => self.sync(),
            synced => synced,
        }
    }
}

/// Device and inode of a directory.
pub(super) fn place(dir: impl AsFd) -> Option<Place> {
    stat_fd(dir).ok().map(|stat| (stat.dev, stat.ino))
}

/// Where an absolute path is below another.
pub(super) fn relative(base: &Path, path: &str) -> Option<RelPath> {
    use std::os::unix::ffi::OsStrExt;
    RelPath::new(Path::new(path).strip_prefix(base).ok()?.as_os_str().as_bytes()).ok()
}

fn enter(dir: impl AsFd, name: &Name) -> io::Result<OwnedFd> {
    Root::held(dir)?.open_dir(&std::iter::once(name).collect())
}

fn opened(root: &Root, path: &str) -> Option<OwnedFd> {
    root.open_dir(&RelPath::new(path.as_bytes()).ok()?).ok()
}

/// Whether a directory is not where it was, or not for us.
fn is_out_of_reach(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn mtime(dir: impl AsFd) -> Option<Time> {
    stat_fd(dir).ok().map(|stat| time(stat.mtime))
}

fn key(path: &RelPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).into_owned()
}
