//! Recursive delete that cannot leave its directory.

use std::io;
use std::os::fd::AsFd;

use crate::disk::Disk;
use crate::path::Name;

/// Removes a name and, if it is a directory, everything beneath it. Follows no link; checks each directory's mount
/// before entering it, and fails with `ErrorKind::CrossesDevices`, leaving what is left, where something else is
/// mounted: a directory that holds a mount can be moved, and a naive delete would then empty somebody's disk.
pub fn remove_tree(_disk: &Disk, _dir: impl AsFd, _name: &Name) -> io::Result<()> {
    todo!()
}
