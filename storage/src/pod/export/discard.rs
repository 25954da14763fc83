//! Removes what was kept for an undo.

use std::io;
use std::path::Path;

use cofferdam_protocol::pod::ExportRecord;

use super::names::{Names, UNDO_DIR};
use crate::disk::Disk;
use crate::fs::{Root, remove_tree};
use crate::path::{Name, RelPath};
use crate::pod::error::{Error, Result};

/// Removes an export's backups; no exported file. The error says what is left.
pub fn discard(disk: &Disk, record: &ExportRecord) -> Result<()> {
    let has_backups = record.items.iter().any(|item| !item.backup_path.is_empty());
    let left = |error: io::Error| {
        Error::io(format!("the backups of {} below {:?} are left", record.id, record.target_dir), error)
    };
    let Ok(backups) = Names::of(&record.id).backups() else { return Ok(()) };
    let removed = remove(disk, Path::new(&record.target_dir), &backups);
    match removed {
        // Where nothing was kept, nothing is left.
        Err(_) if !has_backups => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && Path::new(&record.target_dir).is_dir() => {
            Ok(())
        }
        removed => removed.map_err(left),
    }
}

fn remove(disk: &Disk, target: &Path, backups: &RelPath) -> io::Result<()> {
    let target = Root::open(target)?;
    let Some((dir, name)) = target.open_parent(backups)? else { return Ok(()) };
    remove_tree(disk, &dir, &name)?;
    let parent = Name::new(UNDO_DIR.as_bytes()).map_err(|_| io::ErrorKind::InvalidFilename)?;
    // Those of other exports may be in there.
    let _ = disk.rmdir(target.open_dir(&RelPath::ROOT)?, parent.as_bytes());
    Ok(())
}
