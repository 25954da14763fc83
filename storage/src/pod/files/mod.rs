//! What a task has made, as a person may look at it before it leaves the sandbox. All of it is hostile: links, swaps,
//! special files, mounts, strange names.

mod list;
mod path;
mod text;

#[cfg(test)]
mod tests;

use std::io::{self, Read};

use cofferdam_protocol::pod::{FileRow, FileRows, FileStat, FileText, FileType};

use super::error::{Error, Result};
use super::place::{TaskPlace, hold, outside};
use crate::ckpt::FileKind;
use crate::fs::{Held, Root, Stat};
use crate::path::RelPath;

use list::Limits;
pub use path::rel_path;

/// The most that is read of a file, whatever the configuration says.
const MOST: u64 = 4 << 20;

/// How much of a file is looked at to say whether it is a text.
const SNIFFED: u64 = 8 << 10;

/// What there is: depth first, names in byte order, to a depth of 8 and at most 2000 (spec §7). `truncated` also says
/// that there is a directory we may not look into.
pub fn list(place: Option<&TaskPlace>) -> Result<FileRows> {
    let root = place.map(|place| place.dir.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(dir) = open(place)? else {
        return Ok(FileRows { root, entries: Vec::new(), truncated: false, missing: true });
    };
    let listed = list::rows(&dir, Limits { depth: 8, entries: 2000 });
    let (entries, truncated) =
        listed.map_err(|error| Error::files(format!("{root} cannot be listed"), error))?;
    Ok(FileRows { root, entries, truncated, missing: false })
}

/// What is known of one file; of a link itself, not of what it leads to. `binary` is false where nothing may be read:
/// reading says why.
pub fn stat(place: Option<&TaskPlace>, rel_path: &str) -> Result<FileStat> {
    let path = path::rel_path(rel_path)?;
    let held = find(place, &path)?;
    let looked_at = held.open_file().and_then(|file| at_most(file, SNIFFED));
    let binary = looked_at.is_ok_and(|(bytes, more)| text::decode(&bytes, more).is_none());
    Ok(FileStat { row: row(&path, held.stat()), binary })
}

/// The text of one file of at most `limit` bytes, cut at `max_chars` characters.
pub fn read(place: Option<&TaskPlace>, rel_path: &str, limit: u64, max_chars: usize) -> Result<FileText> {
    let path = path::rel_path(rel_path)?;
    let limit = limit.min(MOST);
    let held = find(place, &path)?;
    match held.stat().kind {
        FileKind::File => {}
        FileKind::Symlink => return Err(outside(&path)),
        kind => {
            return Err(Error::NotAFile { path: path.to_string(), kind: shown(kind), what: called(kind) });
        }
    }
    let failed = |error| Error::files(format!("{path} cannot be read"), error);
    let file = held.open_file().map_err(failed)?;
    let size = || file.metadata().map(|metadata| metadata.len()).map_err(failed);
    if size()? > limit {
        return Err(Error::FileTooLarge { size: size()?, limit });
    }
    // It may grow meanwhile.
    let (bytes, more) = at_most(&file, limit).map_err(failed)?;
    if more {
        return Err(Error::FileTooLarge { size: size()?.max(limit + 1), limit });
    }
    let size = bytes.len() as u64;
    let Some(text::Text { mut text, encoding }) = text::decode(&bytes, false) else {
        return Err(Error::Binary { size });
    };
    let end = text.char_indices().nth(max_chars).map(|(at, _)| at);
    text.truncate(end.unwrap_or(text.len()));
    Ok(FileText {
        chars: text.chars().count(),
        text,
        truncated: end.is_some(),
        bytes: size,
        encoding: encoding.to_owned(),
        binary: false,
    })
}

/// A task's directory; `None` if it is gone or was never here.
fn open(place: Option<&TaskPlace>) -> Result<Option<Root>> {
    place.map_or(Ok(None), TaskPlace::open)
}

/// What stands at a path.
fn find(place: Option<&TaskPlace>, path: &RelPath) -> Result<Held> {
    let dir = open(place)?.ok_or_else(|| path::not_found(path))?;
    hold(&dir, path)?.ok_or_else(|| path::not_found(path))
}

/// The first bytes, and whether there are more.
fn at_most(from: impl Read, limit: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() as u64 > limit;
    if more {
        bytes.pop();
    }
    Ok((bytes, more))
}

/// A file as a list shows it.
fn row(path: &RelPath, stat: &Stat) -> FileRow {
    let text = String::from_utf8_lossy(path.as_bytes());
    FileRow {
        lossy: text.as_bytes() != path.as_bytes(),
        rel_path: if path.is_root() { ".".to_owned() } else { text.into_owned() },
        kind: shown(stat.kind),
        size: if stat.kind == FileKind::File { stat.size } else { 0 },
        mtime: stat.mtime.secs.saturating_mul(1000).saturating_add(i64::from(stat.mtime.nanos / 1_000_000)),
    }
}

/// The wire's word for a kind of file. What is mounted there is not the task's, whatever it is.
fn shown(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::File,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo
        | FileKind::Socket
        | FileKind::CharDevice
        | FileKind::BlockDevice
        | FileKind::MountPoint => FileType::Other,
    }
}

/// A kind of file, for people.
fn called(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Directory => "a directory",
        FileKind::Symlink => "a link",
        FileKind::Fifo => "a FIFO",
        FileKind::Socket => "a socket",
        FileKind::CharDevice | FileKind::BlockDevice => "a device",
        FileKind::MountPoint => "a mount point",
    }
}
