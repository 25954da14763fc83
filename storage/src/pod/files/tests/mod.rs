//! Files as a task left them, and as they change meanwhile.

mod hostile;
mod listing;
mod reading;

use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{FileRow, FileRows, FileStat, FileText};

use super::{list, read, stat};
use crate::pod::error::{Error, Result};
use crate::pod::place::TaskPlace;

/// A sandbox root with the directory of one task, `sub/a`, and a directory `outside` beside the root.
struct Site {
    dir: tempfile::TempDir,
    place: TaskPlace,
}

impl Site {
    fn new() -> Self {
        Self::in_dir(tempfile::tempdir().unwrap())
    }

    fn in_dir(dir: tempfile::TempDir) -> Self {
        let root = dir.path().join("root");
        let place = TaskPlace { dir: root.join("sub/a"), root: Some(root) };
        std::fs::create_dir_all(&place.dir).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        Self { dir, place }
    }

    /// A path below the task's directory.
    fn at(&self, path: &str) -> PathBuf {
        self.place.dir.join(path)
    }

    /// A path beside the root.
    fn outside(&self, path: &str) -> PathBuf {
        self.dir.path().join("outside").join(path)
    }

    fn root(&self) -> &Path {
        self.place.root.as_deref().unwrap()
    }

    fn list(&self) -> FileRows {
        list(Some(&self.place)).unwrap()
    }

    /// One of the rows of a list.
    fn row(&self, path: &str) -> FileRow {
        let rows = self.list().entries;
        rows.into_iter().find(|row| row.rel_path == path).unwrap_or_else(|| panic!("{path} is not listed"))
    }

    fn stat(&self, path: &str) -> Result<FileStat> {
        stat(Some(&self.place), path)
    }

    fn read(&self, path: &str) -> Result<FileText> {
        read(Some(&self.place), path, 307_200, 20_000)
    }
}

fn paths(rows: &FileRows) -> Vec<&str> {
    rows.entries.iter().map(|row| row.rel_path.as_str()).collect()
}

fn is_outside<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::PathOutside(_)))
}

fn is_missing<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::FileNotFound(_)))
}
