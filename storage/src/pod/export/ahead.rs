//! Opens the sources of a batch, and reads the small ones, on a thread of its own, ahead of their being written.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread::Scope;

use super::content::Opened;
use super::forbidden::Forbidden;
use super::ground::Ground;
use super::notes::Dirs;
use super::plan::PlannedFile;
use crate::disk::Disk;
use crate::fs::Root;

/// How many files are open at one time before they are written.
const AHEAD: usize = 16;

/// The sources of some files, one after the other.
pub(super) struct Sources(io::Result<Receiver<io::Result<Opened>>>);

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
                for file in files {
                    // Whoever writes them may have given up.
                    if sender.send(open(&mut source, file)).is_err() {
                        break;
                    }
                }
            })?;
            Ok(sources)
        };
        Self(root.and_then(begin))
    }

    /// The next one.
    pub(super) fn next(&self) -> io::Result<Opened> {
        match &self.0 {
            Ok(sources) => sources.recv().map_err(|_| io::Error::other("the thread that reads is gone"))?,
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

fn open(source: &mut Ground<'_>, file: &PlannedFile) -> io::Result<Opened> {
    let (dir, _, name) = source.open_parent(&file.from)?;
    let mut opened = Opened::at(&dir, name.as_bytes())?;
    opened.load()?;
    Ok(opened)
}
