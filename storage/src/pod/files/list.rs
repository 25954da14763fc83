//! The names below a directory, in order and in bounded memory, however many there are.

use std::collections::BinaryHeap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use cofferdam_protocol::pod::FileRow;
use rustix::fs::RawDir;
use rustix::io::Errno;

use super::row;
use crate::ckpt::FileKind;
use crate::fs::{Root, stat};
use crate::path::{Name, RelPath};

/// How much is listed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Segments of a path.
    pub(super) depth: usize,
    /// Rows in all.
    pub(super) entries: usize,
}

/// What is below a directory, and whether there is more than that. Fails if the directory itself cannot be read.
pub(super) fn rows(root: &Root, limits: Limits) -> io::Result<(Vec<FileRow>, bool)> {
    let mut walk = Walk { root, limits, rows: Vec::new(), truncated: false };
    walk.list(&root.open_dir(&RelPath::ROOT)?, &RelPath::ROOT, 1)?;
    Ok((walk.rows, walk.truncated))
}

struct Walk<'a> {
    root: &'a Root,
    limits: Limits,
    rows: Vec<FileRow>,
    truncated: bool,
}

impl Walk<'_> {
    /// Lists an open directory; what it holds has paths of `depth` segments.
    fn list(&mut self, dir: &OwnedFd, at: &RelPath, depth: usize) -> io::Result<()> {
        let deep = depth > self.limits.depth;
        let room = if deep { 0 } else { self.limits.entries - self.rows.len() };
        let (names, more) = first_names(dir, room)?;
        self.truncated |= more;
        for name in names {
            if self.rows.len() == self.limits.entries {
                self.truncated = true;
                break;
            }
            let path = at.join(&name);
            match stat(dir, name.as_bytes()) {
                Ok(stat) => {
                    self.rows.push(row(&path, &stat));
                    if stat.kind == FileKind::Directory {
                        self.enter(&path, depth + 1).or_else(|error| self.pass_over(error))?;
                    }
                }
                Err(error) => self.pass_over(error)?,
            }
        }
        Ok(())
    }

    fn enter(&mut self, path: &RelPath, depth: usize) -> io::Result<()> {
        let dir = self.root.hold(path)?.open_dir()?;
        self.list(&dir, path, depth)
    }

    /// Goes on without what is gone or has become something else meanwhile, and without what we may not look into.
    fn pass_over(&mut self, error: io::Error) -> io::Result<()> {
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(()),
            Some(Errno::ACCESS) => {
                self.truncated = true;
                Ok(())
            }
            _ => Err(error),
        }
    }
}

/// The first `most` names of a directory in byte order, and whether it has more. Never holds more than those.
fn first_names(dir: &OwnedFd, most: usize) -> io::Result<(Vec<Name>, bool)> {
    let mut first: BinaryHeap<Name> = BinaryHeap::new();
    let mut more = false;
    let mut buffer = [const { MaybeUninit::uninit() }; 32 * 1024];
    let mut listing = RawDir::new(dir, &mut buffer);
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let bytes = entry.file_name().to_bytes();
        if matches!(bytes, b"." | b"..") {
            continue;
        }
        let full = first.len() == most;
        if full && first.peek().is_some_and(|last| last.as_bytes() <= bytes) {
            more |= first.peek().is_some_and(|last| last.as_bytes() < bytes);
            continue;
        }
        // Some filesystems can be made to list what no system call would take.
        let Ok(name) = Name::new(bytes) else { continue };
        if full {
            more = true;
            if first.pop().is_none() {
                break;
            }
        }
        first.push(name);
    }
    let mut names = first.into_sorted_vec();
    // A directory that changes meanwhile may say a name twice.
    names.dedup();
    Ok((names, more))
}
