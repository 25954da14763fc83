//! Removing what a task has made.

use super::error::Result;
use super::place::TaskPlace;
use super::sandbox::Protected;
use crate::disk::Disk;

/// Removes a task's directory with everything in it, and the subdirectory it is in if that is empty then; never the
/// root, through no link, across no mount. Says whether it was there.
pub fn remove_task_dir(disk: &Disk, place: &TaskPlace, protected: &Protected) -> Result<bool> {
    let _ = (disk, place, protected);
    todo!()
}
