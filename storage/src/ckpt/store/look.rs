//! What one path of a tree holds.

use std::io::{self, Read};

use cofferdam_protocol::ckpt::WorkspaceId;
use rustix::io::Errno;

use super::Store;
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{Content, EntryKind, Extent, Extents, ObjectKind, ObjectSource};
use crate::ckpt::model::{FileKind, Seen, TreeRef};
use crate::ckpt::view::View;
use crate::fs::Root;
use crate::path::RelPath;
use crate::peer::Peer;

impl Store {
    pub(super) fn look_at(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        tree: &TreeRef,
        path: &RelPath,
        most: usize,
    ) -> Result<Option<Seen>> {
        let _reading = self.readers.begin();
        let TreeRef::Snapshot(name) = tree else {
            let held = self.hold(peer, workspace)?;
            let _rights = peer.enter().context(|| "taking the peer's rights".to_owned())?;
            return live(&held.root, path, most).map_err(|error| Error::io(path.to_string(), error));
        };
        let workspace = self.visible(peer, workspace)?;
        let row = self.snapshot_row(workspace.key, name)?;
        let manifest = self.manifest_of(&row)?;
        if path.is_root() {
            return Ok(Some(Seen { kind: FileKind::Directory, size: 0, bytes: Some(Vec::new()) }));
        }
        let source = &*self.reader;
        let seen = View::of(peer)
            .lookup(source, &manifest, path)
            .and_then(|found| found.map(|entry| stored(source, &entry.kind, most)).transpose());
        self.or_missing(&row, seen)
    }
}

/// What a snapshot says of an entry.
fn stored(source: &dyn ObjectSource, entry: &EntryKind, most: usize) -> Result<Seen> {
    let (size, bytes) = match entry {
        EntryKind::File { size, content } => (*size, beginning(source, content, most)?),
        EntryKind::Symlink(target) => (0, Some(target.to_vec())),
        EntryKind::Directory(node) => (0, node.map(|_| Vec::new())),
        _ => (0, Some(Vec::new())),
    };
    Ok(Seen { kind: entry.file_kind(), size, bytes })
}

fn beginning(source: &dyn ObjectSource, content: &Content, most: usize) -> Result<Option<Vec<u8>>> {
    let extents = match content {
        Content::Empty => return Ok(Some(Vec::new())),
        Content::Unread => return Ok(None),
        Content::Whole(id) => vec![Extent::Data(most as u64, *id)],
        Content::Extents(id) => Extents::load(source, id)?.0,
    };
    let mut bytes = Vec::new();
    for extent in extents {
        let room = most - bytes.len();
        match extent {
            _ if room == 0 => break,
            Extent::Hole(len) => {
                bytes.resize(bytes.len() + room.min(usize::try_from(len).unwrap_or(room)), 0)
            }
            Extent::Data(_, id) => {
                let data = source.get(ObjectKind::Data, &id)?;
                bytes.extend_from_slice(&data[..room.min(data.len())]);
            }
        }
    }
    Ok(Some(bytes))
}

/// What is there now.
fn live(root: &Root, path: &RelPath, most: usize) -> io::Result<Option<Seen>> {
    let nothing = |bytes| Ok(Some(Seen { kind: FileKind::MountPoint, size: 0, bytes }));
    let held = match root.hold(path) {
        Ok(held) => held,
        Err(error) => {
            return match Errno::from_io_error(&error) {
                // A link on the way leads elsewhere; nothing of this tree is there.
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::ACCESS) => {
                    Ok(None)
                }
                Some(Errno::XDEV) => nothing(Some(Vec::new())),
                _ => Err(error),
            };
        }
    };
    let kind = held.stat().kind;
    let (size, bytes) = match kind {
        FileKind::File => match held.open_file() {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(most as u64).read_to_end(&mut bytes)?;
                (held.stat().size, Some(bytes))
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::WouldBlock) =>
            {
                (held.stat().size, None)
            }
            Err(error) => return Err(error),
        },
        FileKind::Symlink => (0, Some(rustix::fs::readlinkat(&held, c"", Vec::new())?.into_bytes())),
        _ => (0, Some(Vec::new())),
    };
    Ok(Some(Seen { kind, size, bytes }))
}
