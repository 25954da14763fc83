//! Copies a file that was moved back to where it came from.

use std::fs::File;
use std::io;

use cofferdam_protocol::pod::ExportItem;
use rustix::fs::{Mode, OFlags};

use super::content::{Opened, dress, in_words};
use super::ground::Dir;
use super::moves::{look, rename_exclusive};
use super::notes::time;
use super::undo::{Hitch, Undo};
use super::undo_item::{Checked, What};
use crate::path::Name;

impl Undo<'_> {
    /// Copies the exported file back, unless an earlier undo did. Overwrites nothing.
    pub(super) fn bring_back(&mut self, item: usize, checked: &Checked) -> Result<(), Hitch> {
        let What::All { seen, hash, .. } = &checked.what else { return Ok(()) };
        let Some(source) = &mut self.source else {
            return Err(Hitch::Conflict("the task's directory is gone".to_owned()));
        };
        let ExportItem { src, .. } = &self.record.items[item];
        let parts = source.relative(src).and_then(|path| path.split());
        let Some((at, name)) = parts else {
            return Err(Hitch::Conflict("its source does not lie in the task's directory".to_owned()));
        };
        let taken = |why: &str| Err(Hitch::Conflict(format!("{src} cannot be put back: {why}")));
        let dir = match source.make(&at, 0o700) {
            Ok(dir) => dir,
            Err(error) => return taken(&in_words(&error)),
        };
        let from = Opened::at(&checked.dir, checked.name.as_bytes())?;
        if from.seen() != *seen {
            return Err(Hitch::Conflict("the exported file was changed meanwhile".to_owned()));
        }
        let hash = match hash {
            Some(hash) => hash.clone(),
            None => from.hash()?,
        };
        if look(&dir, name.as_bytes())?.is_some() {
            // The source may never have gone, or an earlier undo has put it back.
            let is_there = Opened::at(&dir, name.as_bytes()).and_then(|file| file.hash());
            return if is_there.is_ok_and(|found| found == hash) { Ok(()) } else { taken("a file is there") };
        }
        source.touch(&at, &dir);
        match self.copy_back(item, &from, &dir, &name, &hash) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken("a file is there"),
            done => Ok(done?),
        }
    }

    fn copy_back(&self, item: usize, from: &Opened, dir: &Dir, name: &Name, hash: &str) -> io::Result<()> {
        let disk = self.disk;
        let temporary = self.names.returning(item).into_bytes();
        if look(dir, &temporary)?.is_some() {
            disk.unlink(dir, &*temporary)?;
        }
        let new = File::from(disk.create(dir, &*temporary, OFlags::WRONLY, Mode::RUSR | Mode::WUSR)?);
        let copied = from.copy_to(disk, &new).and_then(|copied| match copied == hash {
            true => dress(disk, &new, from.stat.mode, time(from.stat.mtime)),
            false => Err(io::Error::other("the exported file was changed meanwhile")),
        });
        let placed = copied.and_then(|()| rename_exclusive(disk, (dir, &temporary), (dir, name.as_bytes())));
        if placed.is_err() {
            let _ = disk.unlink(dir, &*temporary);
        }
        placed
    }
}
