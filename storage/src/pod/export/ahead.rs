//! Opens the sources of a batch, and reads the small ones, on a thread of its own, ahead of their being written.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread::Scope;

use super::content::{Opened, Source};
use super::forbidden::Forbidden;
use super::ground::Ground;
use super::notes::Dirs;
use super::plan::PlannedFile;
use crate::disk::Disk;
use crate::fs::Root;

/// How many small files change hands at once: threads that wait for one another for each of them do little else.
const GROUP: usize = 16;
/// How many bytes at least make a group of fewer.
const GROUP_BYTES: u64 = 256 << 10;
/// How many groups may wait to be written.
const AHEAD: usize = 2;

/// The sources of some files, one after the other.
pub(super) struct Sources {
    groups: io::Result<Receiver<Group>>,
    group: std::vec::IntoIter<io::Result<Source>>,
}

type Group = Vec<io::Result<Source>>;

impl Sources {
    /// Begins with the first one. `root` is what they lie beneath.
    pub(super) fn open<'s>(
        threads: &'s Scope<'s, '_>,
        disk: &'s Disk,
        root: io::Result<Root>,
        files: &'s [PlannedFile],
    ) -> Self {
        let begin = |root| {
            let (sender, sources) = mpsc::sync_channel(AHEAD);
            std::thread::Builder::new().name("read".to_owned()).spawn_scoped(threads, move || {
                let mut source = Ground::new(disk, root, PathBuf::new(), Dirs::new(), Forbidden::default());
                let mut files = files.iter().peekable();
                while files.peek().is_some() {
                    // Whoever writes them may have given up.
                    if sender.send(group(&mut source, &mut files)).is_err() {
                        break;
                    }
                }
            })?;
            Ok(sources)
        };
        Self { groups: root.and_then(begin), group: Group::new().into_iter() }
    }

    /// The next one.
    pub(super) fn next(&mut self) -> io::Result<Source> {
        if self.group.as_slice().is_empty() {
            self.group = match &self.groups {
                Ok(groups) => groups.recv().map_err(|_| io::Error::other("the thread that reads is gone"))?,
                Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
            }
            .into_iter();
        }
        self.group.next().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }
}

/// The next few.
fn group<'f>(source: &mut Ground<'_>, files: &mut impl Iterator<Item = &'f PlannedFile>) -> Group {
    let (mut group, mut bytes) = (Group::new(), 0);
    while group.len() < GROUP && bytes < GROUP_BYTES {
        let Some(file) = files.next() else { break };
        let opened = open(source, file);
        bytes += opened.as_ref().map_or(0, |source| source.stat().size);
        group.push(opened);
    }
    group
}

fn open(source: &mut Ground<'_>, file: &PlannedFile) -> io::Result<Source> {
    let (dir, _, name) = source.open_parent(&file.from)?;
    Source::new(Opened::at(&dir, name.as_bytes())?)
}
