//! Keeps a file that is in the way, so that undo can put it back.

use std::io;
use std::os::fd::AsFd;

use super::content::{Opened, Seen};
use super::ground::Ground;
use super::moves::{copy_whole, has_no_links};
use super::names::{Names, below};
use super::notes::Backup;
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::stat;
use crate::path::{Name, RelPath};
use crate::sys::{Writers, writers};

/// A file that is in the way, and what was kept of it.
#[derive(Debug)]
pub(super) struct Kept {
    /// Where, beneath the base.
    pub path: RelPath,
    /// The file in the way, to know it again.
    pub original: Seen,
    pub note: Backup,
}

/// Keeps the file `name` of the directory `at`: the file itself under a second name, or a copy of it where others could
/// change the file or a second name is impossible. What is in the way stays where it is.
pub(super) fn keep(
    disk: &Disk,
    ground: &mut Ground<'_>,
    names: &Names,
    target: &RelPath,
    at: &RelPath,
    name: &Name,
) -> io::Result<Kept> {
    let dir = ground.open(at)?;
    let original = Opened::at(&dir, name.as_bytes())?;
    let path = place(names, target, &at.join(name)).ok_or(io::ErrorKind::InvalidFilename)?;
    let (parent, kept_name) = path.split().ok_or(io::ErrorKind::InvalidFilename)?;
    let kept_dir = ground.make(&parent, 0o700)?;
    ground.touch(&parent, &kept_dir);
    let kept_name = kept_name.as_bytes();
    let seen = original.seen();

    let alone = original.stat.nlink == 1 && writers(&original.file) == Writers::None;
    if alone {
        let hash = original.hash()?;
        match disk.link((&dir, name.as_bytes()), (&kept_dir, kept_name)) {
            Ok(()) if is(&kept_dir, kept_name, seen) => {
                return Ok(Kept { path, original: seen, note: Backup::new(hash, seen.ino, &original.stat) });
            }
            Ok(()) => {
                let _ = disk.unlink(&kept_dir, kept_name);
                return Err(io::Error::other("it was replaced while it was kept"));
            }
            Err(error) if has_no_links(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let (hash, ino) = copy_whole(disk, &original, &kept_dir, kept_name)?;
    Ok(Kept { path, original: seen, note: Backup::new(hash, ino, &original.stat) })
}

/// Where a file of the target is kept, beneath the base; `None` if it lies elsewhere.
pub(super) fn place(names: &Names, target: &RelPath, path: &RelPath) -> Option<RelPath> {
    if !path.starts_with(target) || path == target {
        return None;
    }
    let depth = target.components().count();
    let rel: Vec<Name> = path.components().skip(depth).collect();
    Some(below(&below(target, &names.backups().ok()?), &rel.iter().collect()))
}

fn is(dir: impl AsFd, name: &[u8], seen: Seen) -> bool {
    stat(dir, name).is_ok_and(|stat| stat.kind == FileKind::File && Seen::of(&stat) == seen)
}
