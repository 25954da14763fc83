//! What has to change to turn the live tree into the target.

use std::collections::BTreeMap;

use super::hardlinks::{self, Links};
use super::rights::Rights;
use crate::ckpt::error::{Obstacle, Result};
use crate::ckpt::format::{Content, Delta, Entry, EntryKind, Manifest, Meta, ObjectSource, Tree, Visit};
use crate::ckpt::model::{Warning, WarningKind};
use crate::ckpt::view::{self, View};
use crate::path::RelPath;

/// The two trees of a rollback.
pub(super) struct Trees<'a> {
    pub(super) source: &'a dyn ObjectSource,
    /// The live tree, as the safety snapshot has it.
    pub(super) live: &'a Manifest,
    pub(super) target: &'a Manifest,
}

/// Every name that changes. Parents of all of them are directories on both sides, so no change depends on another.
#[derive(Default)]
pub(super) struct Plan {
    /// Names that get something else, or nothing.
    pub(super) changes: BTreeMap<RelPath, Pair<Option<Entry>>>,
    /// What stays, with other metadata; no directories.
    pub(super) metas: BTreeMap<RelPath, Pair<Entry>>,
    /// Directories that stay and in which something changes, or whose own metadata does.
    pub(super) dirs: BTreeMap<RelPath, Pair<Meta>>,
    /// Directories that go and cannot be moved: what is in them is among the changes, one by one.
    pub(super) emptied: BTreeMap<RelPath, Meta>,
    /// Which new names are to be names of one file.
    pub(super) links: Links,
    /// What cannot be given back.
    pub(super) warnings: Vec<Warning>,
    /// Why it cannot be done at all.
    pub(super) obstacles: Vec<Obstacle>,
}

/// The same thing before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair<T> {
    pub(super) old: T,
    pub(super) new: T,
}

impl Plan {
    /// Compares the trees. With `piecemeal`, no directory that exists is moved: overlay filesystems refuse that for
    /// directories of their lower layers.
    pub(super) fn new(trees: &Trees<'_>, rights: &Rights, piecemeal: bool) -> Result<Self> {
        let mut plan = Self::default();
        let root = Pair { old: trees.live.root_meta.clone(), new: trees.target.root_meta.clone() };
        plan.dirs.insert(RelPath::ROOT, root);
        let mut planner = Planner { plan, trees, rights, piecemeal };
        if !rights.view.shows_root(trees.target) {
            planner.warn(&RelPath::ROOT, WarningKind::Unreadable);
        }
        // The live tree was captured with the peer's own rights.
        let (live, target) = ((&View::whole(), trees.live), (&rights.view, trees.target));
        view::diff(trees.source, live, target, &mut |delta| Ok(planner.visit(delta)))?;
        hardlinks::resolve(&mut planner)?;
        Ok(planner.finish())
    }

    /// Whether nothing has to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.metas.is_empty()
            && self.emptied.is_empty()
            && self.dirs.values().all(|meta| meta.old == meta.new)
    }

    /// Names that change, without counting what is inside directories that come or go whole.
    pub(super) fn len(&self) -> usize {
        let attributes = |meta: &Meta| Meta { mtime: Default::default(), ..meta.clone() };
        let dirs = self.dirs.values().filter(|meta| attributes(&meta.old) != attributes(&meta.new));
        let emptied = self.emptied.keys().filter(|path| !self.changes.contains_key(path));
        self.changes.len() + self.metas.len() + emptied.count() + dirs.count()
    }
}

/// A plan in the making.
pub(super) struct Planner<'a> {
    pub(super) plan: Plan,
    pub(super) trees: &'a Trees<'a>,
    rights: &'a Rights,
    /// Whether it is an overlay.
    pub(super) piecemeal: bool,
}

impl Planner<'_> {
    fn visit(&mut self, delta: &Delta) -> Visit {
        use EntryKind::Directory;
        let Delta { path, old: Some(old), new: Some(new) } = delta else {
            return self.decide(&delta.path, delta.old.as_ref(), delta.new.as_ref());
        };
        match (&old.kind, &new.kind) {
            (Directory(None), Directory(Some(_))) => {
                self.obstacle(
                    path,
                    "it could not be listed, so nobody knows what would have to change in it",
                );
                return Visit::Over;
            }
            (Directory(listed), Directory(None)) => {
                self.warn(path, WarningKind::Unreadable);
                // Somebody else's, with nothing to give back in it, is no reason to refuse the rest. And one that can be
                // listed by now stays so: closed again, it would keep an undo out, too.
                if listed.is_some() || !self.owns(old) {
                    return Visit::Over;
                }
            }
            (Directory(_), Directory(_)) => {}
            _ => return self.decide(path, Some(old), Some(new)),
        }
        self.plan.dirs.insert(path.clone(), Pair { old: old.meta.clone(), new: new.meta.clone() });
        Visit::Inside
    }

    /// What becomes of a name that is not a directory on both sides.
    pub(super) fn decide(&mut self, path: &RelPath, old: Option<&Entry>, new: Option<&Entry>) -> Visit {
        if self.is_out_of_reach(path, old, new) {
            return Visit::Over;
        }
        if let (Some(old), Some(new)) = (old, new)
            && same_content(&old.kind, &new.kind)
        {
            let (meta, less) = self.rights.attainable(&new.meta, Some(&old.meta), true);
            if !self.owns(old) && meta != old.meta {
                // What is somebody else's can be replaced, but not changed.
                self.replace(path, Some(old), Some(new));
                return Visit::Over;
            }
            if less {
                self.warn(path, WarningKind::OwnerNotRestored);
            }
            if meta != old.meta {
                let new = Entry { meta, ..new.clone() };
                self.plan.metas.insert(path.clone(), Pair { old: old.clone(), new });
            }
            return Visit::Over;
        }
        if let Some(Entry { kind: EntryKind::Directory(Some(_)), meta, .. }) = old {
            // What is below it is not looked at, but for what the capture has warned about.
            let below = trees_warnings(self.trees.live, path);
            let found: Vec<_> = below.map(|warning| (warning.path.clone(), warning.kind)).collect();
            for (path, kind) in found {
                self.obstacle(&path, if kind == WarningKind::MountPoint { MOUNTED } else { UNREAD });
            }
            if self.piecemeal {
                self.plan.emptied.insert(path.clone(), meta.clone());
                if new.is_some() {
                    self.replace(path, None, new);
                }
                return Visit::Inside;
            }
        }
        self.replace(path, old, new);
        Visit::Over
    }

    /// Whether a name has to be left alone, or stands in the way for good.
    fn is_out_of_reach(&mut self, path: &RelPath, old: Option<&Entry>, new: Option<&Entry>) -> bool {
        if let Some(kind) = new.and_then(|new| not_in_snapshot(&new.kind)) {
            self.warn(path, kind);
            return true;
        }
        let why = match old.map(|old| &old.kind) {
            Some(EntryKind::MountPoint) => MOUNTED,
            Some(EntryKind::File { content: Content::Unread, .. } | EntryKind::Directory(None)) => UNREAD,
            _ => return false,
        };
        self.obstacle(path, why);
        true
    }

    /// Plans a name to get the target's thing, even if what stands there has the same content.
    pub(super) fn replace(&mut self, path: &RelPath, old: Option<&Entry>, new: Option<&Entry>) {
        self.plan.metas.remove(path);
        self.plan.changes.insert(path.clone(), Pair { old: old.cloned(), new: new.cloned() });
    }

    /// As [`Planner::replace`], for a name that the comparison of the trees did not come upon.
    pub(super) fn replace_unvisited(&mut self, path: &RelPath, old: &Entry, new: &Entry) -> Result<()> {
        if self.plan.changes.contains_key(path) || self.is_out_of_reach(path, Some(old), Some(new)) {
            return Ok(());
        }
        let mut parent = path.split().map(|(parent, _)| parent);
        while let Some(dir) = parent.filter(|dir| !self.plan.dirs.contains_key(dir)) {
            let meta = |root| Tree::new(self.trees.source, root).lookup(&dir).map(|e| e.map(|e| e.meta));
            let (old, new) = (meta(self.trees.live.root)?, meta(self.trees.target.root)?);
            if let (Some(old), Some(new)) = (old, new) {
                self.plan.dirs.insert(dir.clone(), Pair { old, new });
            }
            parent = dir.split().map(|(parent, _)| parent);
        }
        self.replace(path, Some(old), Some(new));
        Ok(())
    }

    /// What the trees have at a path: the live one, and the target as far as it may be shown.
    pub(super) fn entries(&self, path: &RelPath) -> Result<(Option<Entry>, Option<Entry>)> {
        let Trees { source, live, target } = *self.trees;
        Ok((Tree::new(source, live.root).lookup(path)?, self.rights.view.lookup(source, target, path)?))
    }

    /// Whether metadata and links of a live file are ours to change.
    pub(super) fn owns(&self, entry: &Entry) -> bool {
        self.rights.owns(entry.meta.uid)
    }

    /// Directories keep what cannot be changed; those nothing happens to are forgotten.
    fn finish(mut self) -> Plan {
        for (path, meta) in &mut self.plan.dirs {
            let (attainable, less) = self.rights.attainable(&meta.new, Some(&meta.old), false);
            meta.new = attainable;
            if less {
                self.plan.warnings.push(Warning { path: path.clone(), kind: WarningKind::OwnerNotRestored });
            }
        }
        let plan = &mut self.plan;
        let mut dirs = std::mem::take(&mut plan.dirs);
        let parents = plan.changes.keys().chain(plan.emptied.keys()).filter_map(RelPath::split);
        for (parent, _) in parents {
            if let Some(meta) = dirs.remove(&parent) {
                plan.dirs.insert(parent, meta);
            }
        }
        plan.dirs.extend(dirs.into_iter().filter(|(path, meta)| path.is_root() || meta.old != meta.new));
        self.plan
    }

    fn warn(&mut self, path: &RelPath, kind: WarningKind) {
        self.plan.warnings.push(Warning { path: path.clone(), kind });
    }

    fn obstacle(&mut self, path: &RelPath, why: &str) {
        self.plan.obstacles.push(Obstacle { path: path.clone(), why: why.to_owned() });
    }
}

pub(super) const MOUNTED: &str = "something is mounted there; unmount it first";
const UNREAD: &str = "it could not be read, so no copy of it could be kept; make it readable or move it away";

/// Why an entry does not hold enough to restore it; `None` if it does.
pub(super) fn not_in_snapshot(kind: &EntryKind) -> Option<WarningKind> {
    match kind {
        EntryKind::MountPoint => Some(WarningKind::MountPoint),
        EntryKind::File { content: Content::Unread, .. } => Some(WarningKind::Unreadable),
        _ => None,
    }
}

/// Whether two things differ in metadata at most.
pub(super) fn same_content(one: &EntryKind, other: &EntryKind) -> bool {
    !matches!(one, EntryKind::Directory(_)) && not_in_snapshot(one).is_none() && one == other
}

/// What a capture could not keep at or below a path.
fn trees_warnings<'a>(manifest: &'a Manifest, path: &RelPath) -> impl Iterator<Item = &'a Warning> {
    manifest.warnings.iter().filter(move |warning| {
        matches!(warning.kind, WarningKind::Unreadable | WarningKind::MountPoint)
            && warning.path.starts_with(path)
    })
}
