//! What of a task's directory is to be exported. Nothing in there is trusted.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use cofferdam_protocol::pod::ExportItemStatus;

use super::content::{MAX_FILE, in_words, kind_in_words};
use super::names::below;
use crate::ckpt::FileKind;
use crate::fs::{Root, Stat, stat, stat_fd};
use crate::path::{Name, RelPath};
use crate::pod::error::{Error, ExportLimit, Result};
use crate::pod::files::rel_path;
use crate::pod::place::{hold, outside};

/// The most files of an export, and the most entries that may be selected.
pub(super) const MAX_FILES: usize = 5000;
/// The most bytes of an export.
pub(super) const MAX_BYTES: u64 = 2 << 30;
/// The most directories one in the other.
const MAX_DEPTH: usize = 32;
/// The most names that are looked at: a sandbox can hold any number of empty directories.
const MAX_NAMES: usize = 100_000;

/// The entries as paths below the task's directory; the empty one is the directory itself.
pub(super) fn entries(texts: &[String]) -> Result<Vec<RelPath>> {
    if texts.is_empty() || texts.len() > MAX_FILES {
        return Err(Error::BadRequest(format!("select 1 to {MAX_FILES} entries, not {}", texts.len())));
    }
    texts.iter().map(|text| rel_path(text)).collect()
}

/// A file that is selected, or why it is not exported.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Below the task's directory.
    pub from: RelPath,
    /// Below the target.
    pub to: RelPath,
    pub size: u64,
    /// Why it stays.
    pub left: Option<(ExportItemStatus, String)>,
}

/// Everything that is selected.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub found: Vec<Found>,
    /// Directories that are selected, each before those in it.
    pub dirs: Vec<RelPath>,
    files: usize,
    bytes: u64,
    names: usize,
}

impl Selection {
    /// Looks at everything that is selected, once.
    pub(super) fn new(source: &Root, entries: &[RelPath]) -> Result<Self> {
        let mut looked = Vec::new();
        for path in entries {
            looked.push(look(source, path)?);
        }
        let mut selection = Self::default();
        for (at, (path, stat)) in looked.into_iter().enumerate() {
            let again = |(other_at, other): (usize, &RelPath)| {
                other_at != at && path.starts_with(other) && (other != path || other_at < at)
            };
            if entries.iter().enumerate().any(again) {
                continue;
            }
            match path.split() {
                Some((_, leaf)) => selection.add(source, path, &RelPath::ROOT.join(&leaf), &stat, 0)?,
                None => selection.add_children(source, &RelPath::ROOT, &RelPath::ROOT, 0)?,
            }
        }
        Ok(selection)
    }

    fn add(&mut self, source: &Root, from: &RelPath, to: &RelPath, stat: &Stat, depth: usize) -> Result<()> {
        self.names += 1;
        if self.names > MAX_NAMES {
            return Err(limit(ExportLimit::Files));
        }
        match stat.kind {
            FileKind::File => {
                self.bytes += stat.size;
                if stat.size > MAX_FILE {
                    return Err(limit(ExportLimit::FileBytes));
                }
                if self.bytes > MAX_BYTES {
                    return Err(limit(ExportLimit::Bytes));
                }
                let readable = std::str::from_utf8(from.as_bytes()).is_ok();
                let left = (!readable).then(|| skip("its name is not Unicode"));
                self.push(from, to, stat.size, left)
            }
            FileKind::Directory if depth == MAX_DEPTH => Err(limit(ExportLimit::Depth)),
            FileKind::Directory => {
                self.dirs.push(from.clone());
                self.add_children(source, from, to, depth + 1)
            }
            kind => {
                let why = format!("{} is not exported", kind_in_words(kind));
                self.push(from, to, 0, Some(skip(&why)))
            }
        }
    }

    fn add_children(&mut self, source: &Root, from: &RelPath, to: &RelPath, depth: usize) -> Result<()> {
        let listed = source.open_dir(from).and_then(|dir| Ok((names(&dir)?, dir)));
        let (names, dir) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                let why = format!("the directory cannot be read: {}", in_words(&error));
                return self.push(from, to, 0, Some((ExportItemStatus::Fail, why)));
            }
        };
        for name in names {
            // What is gone meanwhile was never there.
            if let Ok(stat) = stat(&dir, name.as_bytes()) {
                self.add(source, &from.join(&name), &below(to, &RelPath::ROOT.join(&name)), &stat, depth)?;
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        from: &RelPath,
        to: &RelPath,
        size: u64,
        left: Option<(ExportItemStatus, String)>,
    ) -> Result<()> {
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(limit(ExportLimit::Files));
        }
        self.found.push(Found { from: from.clone(), to: to.clone(), size, left });
        Ok(())
    }
}

fn skip(why: &str) -> (ExportItemStatus, String) {
    (ExportItemStatus::Skip, why.to_owned())
}

fn limit(limit: ExportLimit) -> Error {
    let value = match limit {
        ExportLimit::Files => MAX_FILES as u64,
        ExportLimit::Bytes => MAX_BYTES,
        ExportLimit::FileBytes => MAX_FILE,
        ExportLimit::Depth => MAX_DEPTH as u64,
    };
    Error::ExportLimit { limit, value }
}

/// What an entry is. It is reached through no link and no mount.
fn look<'a>(source: &Root, path: &'a RelPath) -> Result<(&'a RelPath, Stat)> {
    let missing = || Error::FileNotFound(format!("no such file: {path}"));
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => missing(),
        _ => Error::files(path.to_string(), error),
    };
    let Some((parent, name)) = path.split() else {
        return Ok((path, stat_fd(source).map_err(failed)?));
    };
    let dir = hold(source, &parent)?.ok_or_else(missing)?;
    match dir.stat().kind {
        FileKind::Directory => Ok((path, stat(&dir, name.as_bytes()).map_err(failed)?)),
        FileKind::Symlink => Err(outside(path)),
        _ => Err(missing()),
    }
}

/// The names in a directory, in byte order. Whoever fills it with more than are looked at gets no more memory for it.
fn names(dir: &OwnedFd) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir.as_fd())? {
        names.extend(Name::new(entry?.file_name().to_bytes()).ok());
        if names.len() > MAX_NAMES {
            break;
        }
    }
    names.sort_unstable();
    Ok(names)
}
