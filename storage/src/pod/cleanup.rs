//! Removing what a task has made.

use std::io;
use std::path::{Path, PathBuf};

use super::error::{Error, Result};
use super::place::{TaskPlace, hold_dir, open_root};
use super::sandbox::Protected;
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::{Held, Root, remove_tree, stat};
use crate::path::{Name, RelPath};

#[cfg(test)]
mod tests;

/// Removes a task's directory with everything in it, and the subdirectories it is in as far as they are empty then and
/// none of `stay`, the directories of other tasks; never the root or what is or contains something protected, through no link,
/// across no mount. A link in its place goes alone. Says whether it was there. After an error, another call goes on with what
/// is left.
pub fn remove_task_dir(
    disk: &Disk,
    place: &TaskPlace,
    stay: &[PathBuf],
    protected: &Protected,
) -> Result<bool> {
    let Some(root) = &place.root else {
        let dir = place.dir.display();
        return Err(Error::RootProtected(format!(
            "the sandbox root of {dir} is not known; remove it by hand"
        )));
    };
    let path = place.below(root)?;
    let Some((above, name)) = path.split().filter(|_| root.parent().is_some()) else {
        return Err(Error::RootProtected("the root of the file system is no sandbox root".to_owned()));
    };
    let Some(root) = open_root(root)? else { return Ok(false) };
    let removed = match hold_dir(&root, &above)? {
        Some(parent) => remove(disk, &parent, &name, &place.dir, protected)?,
        None => false,
    };
    remove_empty(disk, &root, above, &place.dir, stay);
    Ok(removed)
}

fn remove(disk: &Disk, parent: &Held, name: &Name, path: &Path, protected: &Protected) -> Result<bool> {
    let shown = path.display();
    let failed = |error| Error::files(format!("{shown} is not removed, or not all of it; try again"), error);
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let found = match stat(parent, name.as_bytes()) {
        Err(error) if gone(&error) => return Ok(false),
        found => found.map_err(failed)?,
    };
    if found.kind == FileKind::Directory
        && let Some((what, place)) = protected.inside(path).map_err(failed)?
    {
        let place = place.display();
        return Err(Error::RootProtected(format!("{shown} is or contains {what} ({place})")));
    }
    match remove_tree(disk, parent, name) {
        Ok(()) => Ok(true),
        // Somebody else removes it, too.
        Err(error) if gone(&error) && stat(parent, name.as_bytes()).is_err_and(|error| gone(&error)) => {
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Err(Error::PathOutside(format!(
            "something is mounted at or below {shown}; unmount it and try again"
        ))),
        Err(error) => Err(failed(error)),
    }
}

/// Removes the directories below the root that a task's is in, as far as they are empty and none of `stay`. An empty directory
/// that stays does no harm.
fn remove_empty(disk: &Disk, root: &Root, mut path: RelPath, task: &Path, stay: &[PathBuf]) {
    for dir in task.ancestors().skip(1) {
        let Some((above, name)) = path.split() else { return };
        if stay.iter().any(|other| other == dir) {
            return;
        }
        let Ok(parent) = hold_dir(root, &above) else { return };
        let removed = parent.map(|parent| disk.rmdir(parent, name.as_bytes()));
        if removed.is_some_and(|done| done.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)) {
            return;
        }
        path = above;
    }
}
