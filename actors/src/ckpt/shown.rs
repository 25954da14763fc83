//! How paths and changes look on a surface made of text.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cofferdam_protocol::ckpt::{DiffEntry, DiffKind};
use cofferdam_storage::ckpt::{Change, ChangeKind, FileKind};
use cofferdam_storage::path::escape;

/// A workspace's path: as it is, so that a client can send it back; escaped if it is not UTF-8.
pub fn shown_path(path: &Path) -> String {
    path.to_str().map_or_else(|| escape(path.as_os_str().as_bytes()), str::to_owned)
}

/// A change as the wire shows it. Names that are not UTF-8 or hold control characters are escaped.
pub(crate) fn shown_change(change: &Change) -> DiffEntry {
    let path = change.path.to_string();
    let (change_type, detail) = match &change.kind {
        ChangeKind::Added(kind) => (DiffKind::Added, shown_kind(*kind)),
        ChangeKind::Modified => (DiffKind::Modified, None),
        ChangeKind::Deleted(FileKind::Directory) => (DiffKind::Deleted, shown_kind(FileKind::Directory)),
        ChangeKind::Deleted(_) => (DiffKind::Deleted, None),
        ChangeKind::Renamed { from } => (DiffKind::Renamed, Some(format!("{from} \u{2192} {path}"))),
    };
    DiffEntry { path, change_type, detail }
}

fn shown_kind(kind: FileKind) -> Option<String> {
    let text = match kind {
        FileKind::File => return None,
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "character device",
        FileKind::BlockDevice => "block device",
        FileKind::MountPoint => "mount point",
    };
    Some(text.to_owned())
}
