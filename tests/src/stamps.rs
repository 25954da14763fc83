//! The times of a whole tree, access times among them, and whether anything moved them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// When each file was last read, written and changed, by path. Taking it moves no time.
#[derive(Debug)]
pub struct Stamps(BTreeMap<PathBuf, [(i64, i64); 3]>);

impl Stamps {
    /// Of the tree at `root`. Nobody but its owner and root can look without being seen.
    pub fn read(root: &Path) -> Self {
        let mut stamps = BTreeMap::new();
        visit(root, PathBuf::new(), &mut stamps);
        Self(stamps)
    }

    /// The same without access times, which move where somebody reads who does not own the file.
    pub fn read_of_changes(root: &Path) -> Self {
        let mut stamps = Self::read(root);
        stamps.0.values_mut().for_each(|[read, ..]| *read = (0, 0));
        stamps
    }

    /// The paths of which a time is another now, or that are not in both.
    pub fn moved<'a>(&'a self, now: &'a Self) -> Vec<&'a Path> {
        let paths: BTreeSet<_> = self.0.keys().chain(now.0.keys()).map(PathBuf::as_path).collect();
        paths.into_iter().filter(|path| self.0.get(*path) != now.0.get(*path)).collect()
    }

    /// Fails if a time moved, or a file came or went.
    #[track_caller]
    pub fn assert_same(&self, now: &Self, what: &str) {
        let moved = self.moved(now);
        let first = moved.first().map(|path| (path, self.0.get(*path), now.0.get(*path)));
        assert!(moved.is_empty(), "{what}: the times of {} files moved: {first:#?}", moved.len());
    }
}

fn visit(at: &Path, path: PathBuf, stamps: &mut BTreeMap<PathBuf, [(i64, i64); 3]>) {
    let meta = std::fs::symlink_metadata(at).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // There is no way to read a link that keeps its access time.
    let read = if meta.is_symlink() { (0, 0) } else { (meta.atime(), meta.atime_nsec()) };
    let times = [read, (meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())];
    stamps.insert(path.clone(), times);
    if meta.is_dir() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOATIME | OFlags::CLOEXEC;
        let dir = rustix::fs::open(at, flags, Mode::empty()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        for name in names(&dir) {
            let held = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
            visit(&held.join(&name), path.join(&name), stamps);
        }
    }
}

/// Through the descriptor as it was opened: to open it anew would move the directory's access time.
fn names(dir: &OwnedFd) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut listing = rustix::fs::RawDir::new(dir, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(PathBuf::from(std::ffi::OsStr::from_bytes(name)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn who_reads_is_seen_and_who_takes_the_stamps_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("tree");
        files::write(root.join("sub/file"), "x");
        let reads: [fn(&Path); 2] =
            [|d| drop(files::read(d.join("sub/file"))), |d| drop(files::names(d.join("sub")))];
        for read in reads {
            for path in ["sub/file", "sub", ""] {
                files::set_mtime(root.join(path), 1_000_000, 5);
            }
            let before = Stamps::read(&root);
            before.assert_same(&Stamps::read(&root), "nothing was done");
            read(&root);
            let now = Stamps::read(&root);
            if before.0 == now.0 {
                crate::skip!("the filesystem does not keep access times");
            }
        }
    }
}
