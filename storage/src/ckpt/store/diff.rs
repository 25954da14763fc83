//! How two trees differ.

use std::collections::HashMap;

use cofferdam_protocol::ckpt::WorkspaceId;

use super::Store;
use crate::ckpt::catalog::SnapshotRow;
use crate::ckpt::error::Result;
use crate::ckpt::format::{Content, Delta, Entry, EntryKind, Manifest, Meta, ObjectId, ObjectSource, Visit};
use crate::ckpt::model::{Change, ChangeKind, TreeRef};
use crate::ckpt::view::{self, View};
use crate::path::RelPath;
use crate::peer::Peer;

impl Store {
    pub(super) fn diff_trees(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        from: &TreeRef,
        to: &TreeRef,
    ) -> Result<Vec<Change>> {
        let _reading = self.readers.begin();
        let row = self.visible(peer, workspace)?;
        let stored = |tree: &TreeRef| -> Result<_> {
            match tree {
                TreeRef::Live => Ok(None),
                TreeRef::Snapshot(name) => {
                    let row = self.snapshot_row(row.key, name)?;
                    Ok(Some((self.manifest_of(&row)?, row)))
                }
            }
        };
        // Unknown snapshots are an error before the live tree is read.
        let (from, to) = (stored(from)?, stored(to)?);
        let manifest = |side: &Option<(Manifest, SnapshotRow)>| -> Result<_> {
            match side {
                Some((manifest, _)) => Ok(manifest.clone()),
                None => Ok(self.capture_for_cache(peer, &self.hold(peer, workspace)?)?.manifest),
            }
        };
        let mut result = changes(&*self.reader, &View::of(peer), &manifest(&from)?, &manifest(&to)?);
        for (_, row) in [from, to].iter().flatten() {
            result = self.or_missing(row, result);
        }
        result
    }
}

/// The changes between two trees, sorted by path, as far as they may be seen.
fn changes(source: &dyn ObjectSource, view: &View, from: &Manifest, to: &Manifest) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let mut moved = Moved::default();
    if !same_meta(&from.root_meta, &to.root_meta) {
        changes.push(Change { path: RelPath::ROOT, kind: ChangeKind::Modified });
    }
    view::diff(source, (view, from), (view, to), &mut |delta: &Delta| {
        let kind = match (&delta.old, &delta.new) {
            (None, Some(new)) => {
                moved.note(new, |content| &mut content.added, changes.len());
                ChangeKind::Added(new.kind.file_kind())
            }
            (Some(old), None) => {
                moved.note(old, |content| &mut content.deleted, changes.len());
                ChangeKind::Deleted(old.kind.file_kind())
            }
            (Some(old), Some(new)) if differs(old, new) => ChangeKind::Modified,
            _ => return Ok(Visit::Inside),
        };
        changes.push(Change { path: delta.path.clone(), kind });
        Ok(Visit::Inside)
    })?;
    let mut changes = moved.renames(changes);
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// Whether more than the time differs. What is in two directories is compared below them.
fn differs(old: &Entry, new: &Entry) -> bool {
    let same_kind = match (&old.kind, &new.kind) {
        (EntryKind::Directory(_), EntryKind::Directory(_)) => true,
        (old, new) => old == new,
    };
    !same_kind || !same_meta(&old.meta, &new.meta)
}

fn same_meta(old: &Meta, new: &Meta) -> bool {
    (old.mode, old.uid, old.gid, &old.xattrs) == (new.mode, new.uid, new.gid, &new.xattrs)
}

/// Files that are on one side only, by content.
#[derive(Default)]
struct Moved(HashMap<ObjectId, Sides>);

#[derive(Default)]
struct Sides {
    added: Side,
    deleted: Side,
}

/// Where in the list of changes the one file of that content is.
#[derive(Clone, Copy, Default)]
enum Side {
    #[default]
    None,
    One(usize),
    Several,
}

impl Moved {
    fn note(&mut self, entry: &Entry, side: impl FnOnce(&mut Sides) -> &mut Side, at: usize) {
        // Empty files say nothing about where they came from.
        let EntryKind::File { size: 1.., content: Content::Whole(id) | Content::Extents(id) } = &entry.kind
        else {
            return;
        };
        let side = side(self.0.entry(*id).or_default());
        *side = match side {
            Side::None => Side::One(at),
            Side::One(_) | Side::Several => Side::Several,
        };
    }

    /// Replaces each deleted and added file of the same content, unique on both sides, by one rename.
    fn renames(self, changes: Vec<Change>) -> Vec<Change> {
        let mut changes: Vec<Option<Change>> = changes.into_iter().map(Some).collect();
        for sides in self.0.into_values() {
            if let Sides { added: Side::One(added), deleted: Side::One(deleted) } = sides
                && let Some(old) = changes[deleted].take()
                && let Some(new) = &mut changes[added]
            {
                new.kind = ChangeKind::Renamed { from: old.path };
            }
        }
        changes.into_iter().flatten().collect()
    }
}
