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

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use cofferdam_storage::path::RelPath;

    use super::*;

    #[track_caller]
    fn check(path: &[u8], kind: ChangeKind, expected: (&str, DiffKind, Option<&str>)) {
        let entry = shown_change(&Change { path: RelPath::new(path).unwrap(), kind });
        assert_eq!((entry.path.as_str(), entry.change_type, entry.detail.as_deref()), expected);
    }

    #[test]
    fn a_change_is_shown_as_the_contract_words_it() {
        use ChangeKind::*;
        check(b"f", Added(FileKind::File), ("f", DiffKind::Added, None));
        check(b"d/e", Added(FileKind::Directory), ("d/e", DiffKind::Added, Some("directory")));
        check(b"l", Added(FileKind::Symlink), ("l", DiffKind::Added, Some("symlink")));
        check(b"f", Modified, ("f", DiffKind::Modified, None));
        check(b"", Modified, (".", DiffKind::Modified, None));
        check(b"f", Deleted(FileKind::File), ("f", DiffKind::Deleted, None));
        check(b"d", Deleted(FileKind::Directory), ("d", DiffKind::Deleted, Some("directory")));
        check(b"l", Deleted(FileKind::Symlink), ("l", DiffKind::Deleted, None));
        let from = RelPath::new("alt größe".as_bytes()).unwrap();
        let renamed = ("a b/\\xffneu", DiffKind::Renamed, Some("alt größe → a b/\\xffneu"));
        check(b"a b/\xffneu", Renamed { from }, renamed);
    }

    #[test]
    fn a_path_can_be_sent_back_unless_it_is_not_text() {
        assert_eq!(shown_path(Path::new("/a\\b/größe")), "/a\\b/größe");
        assert_eq!(shown_path(Path::new(OsStr::from_bytes(b"/a\xff"))), "/a\\xff");
    }
}
