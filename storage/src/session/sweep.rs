//! Temporary files of writers that died.

use cofferdam_protocol::session::limits;
use rustix::fs::{AtFlags, FileType};

use super::dir::{Dir, modified_ms};
use crate::disk::Disk;

/// Removes temporary files that are so old that nobody can be writing them any more. One that cannot be removed is left
/// for the next time: it is in nobody's way.
pub(super) fn sweep(disk: &Disk, dir: &Dir, now_ms: u64) {
    let stale = u64::try_from(limits::STALE_TEMPORARY.as_millis()).unwrap_or(u64::MAX);
    let Ok(entries) = rustix::fs::Dir::read_from(dir) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let is_temporary = name.to_bytes().starts_with(b".") && name.to_bytes().ends_with(b".tmp");
        let old = || {
            let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            Some(is_file && now_ms.saturating_sub(modified_ms(&stat)) >= stale)
        };
        if is_temporary && old() == Some(true) {
            let _ = disk.unlink(dir, name);
        }
    }
}
