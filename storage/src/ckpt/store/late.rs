//! The safety snapshot of a rollback takes in what was written too late for it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::Store;
use crate::ckpt::catalog::{NewRow, SafetyRow, Target, WorkspaceRow};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{
    Entry, EntryKind, HardLinks, Manifest, Meta, NodeWriter, ObjectId, ObjectKind, ObjectSink, ObjectSource,
    Tree, rewrite_tree,
};
use crate::ckpt::model::{RollbackKind, Warning, WarningKind};
use crate::ckpt::pack::{PackId, PackWriter};
use crate::ckpt::rollback::{self, LateWrites, Outcome};
use crate::ckpt::scan::{Capture, capture_entry};
use crate::fs::{Root, stat_fd};
use crate::path::{Name, RelPath};
use crate::peer::{Peer, as_daemon};

/// The safety snapshot of one rollback.
pub(super) struct Late<'a> {
    store: &'a Store,
    peer: Peer,
    root: Arc<Root>,
    workspace: i64,
    ignore: HashSet<RelPath>,
    op: String,
    /// `None` if it has been deleted since.
    safety: Option<SafetyRow>,
    /// What was kept and is not published yet.
    kept: BTreeMap<RelPath, Entry>,
    /// Where its content is; begun when there is some.
    pack: OnceCell<(PackId, PackWriter)>,
    /// Whether something was kept and published.
    published: bool,
    settled: bool,
}

impl<'a> Late<'a> {
    pub(super) fn new(
        store: &'a Store,
        peer: &Peer,
        workspace: &WorkspaceRow,
        root: Arc<Root>,
        ignore: HashSet<RelPath>,
        op: &str,
        safety: Option<SafetyRow>,
    ) -> Self {
        Self {
            store,
            peer: peer.clone(),
            root,
            workspace: workspace.key,
            ignore,
            op: op.to_owned(),
            safety,
            kept: BTreeMap::new(),
            pack: OnceCell::new(),
            published: false,
            settled: false,
        }
    }

    /// Whether the rollback has said how it ended.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether the rollback began: without a journal nothing was changed.
    fn has_journal(&self) -> Result<bool> {
        Ok(rollback::pending(self.store.places.journal())?.iter().any(|pending| pending.op == self.op))
    }

    fn writer(&self) -> Result<&PackWriter> {
        if let Some((_, writer)) = self.pack.get() {
            return Ok(writer);
        }
        let id = as_daemon(|| self.store.catalog.reserve_pack(&*self.store.ids))?;
        let (_, writer) = self.pack.get_or_init(|| (id, PackWriter::new(self.store.reader.clone(), id)));
        Ok(writer)
    }

    /// The safety snapshot as it is published; one of an empty tree if there is none.
    fn manifest(&self) -> Result<Manifest> {
        match self.safety {
            Some(safety) => self.store.manifest(&safety.manifest),
            None => {
                let stat = stat_fd(&*self.root).context(|| "the workspace's root".to_owned())?;
                let root = NodeWriter::new(self.writer()?).finish()?;
                let (mode, uid, gid, mtime) = (stat.mode, stat.uid, stat.gid, stat.mtime);
                let root_meta = Meta { mode, uid, gid, mtime, xattrs: Box::default() };
                Ok(Manifest { root_meta, root, hard_links: None, entries: 0, bytes: 0, warnings: Vec::new() })
            }
        }
    }

    /// What the safety snapshot has at a path, with what was kept so far.
    fn present(&self, root: Option<&ObjectId>, path: &RelPath) -> Result<Option<Entry>> {
        match (self.kept.get(path), root) {
            (Some(kept), _) => Ok(Some(kept.clone())),
            (None, Some(root)) => Tree::new(&*self.store.reader, *root).lookup(path),
            (None, None) => Ok(None),
        }
    }

    /// Directories that a path needs and the safety snapshot does not have.
    fn make_parents(&mut self, root: Option<&ObjectId>, path: &RelPath, like: &Meta) -> Result<()> {
        let mut above = path.split();
        while let Some((parent, _)) = above.filter(|(parent, _)| !parent.is_root()) {
            let present = self.present(root, &parent)?;
            if matches!(present, Some(Entry { kind: EntryKind::Directory(Some(_)), .. })) {
                return Ok(());
            }
            above = parent.split();
            if let Some((_, name)) = &above {
                let kind = EntryKind::Directory(Some(NodeWriter::new(self.writer()?).finish()?));
                let meta = Meta { mode: 0o755, xattrs: Box::default(), ..like.clone() };
                self.kept.insert(parent, Entry { name: name.clone(), meta, kind });
            }
        }
        Ok(())
    }

    /// The manifest with everything that was kept, in the pack.
    fn rewrite(&mut self) -> Result<ObjectId> {
        let mut manifest = self.manifest()?;
        let kept = std::mem::take(&mut self.kept);
        let links = self.links_without(&manifest, &kept)?;
        let writer = self.writer()?;
        for (path, entry) in &kept {
            if let Some(old) = Tree::new(writer, manifest.root).lookup(path)? {
                let (entries, bytes) = weigh(writer, &old)?;
                manifest.entries = manifest.entries.saturating_sub(entries);
                manifest.bytes = manifest.bytes.saturating_sub(bytes);
            }
            let (entries, bytes) = weigh(writer, entry)?;
            manifest.entries += entries;
            manifest.bytes += bytes;
            manifest.warnings.push(Warning { path: path.clone(), kind: WarningKind::LateWrite });
        }
        manifest.warnings.sort_by(|a, b| a.path.cmp(&b.path));
        let changes = kept.into_iter().map(|(path, entry)| (path, Some(entry))).collect();
        manifest.root = rewrite_tree(writer, writer, &manifest.root, &changes)?;
        manifest.hard_links = match links.groups.is_empty() {
            true => None,
            false => Some(writer.put(ObjectKind::HardLinks, &links.encode())?),
        };
        writer.put(ObjectKind::Manifest, &manifest.encode())
    }

    /// The hard links of a manifest but for those of paths that have content of their own now.
    fn links_without(&self, manifest: &Manifest, kept: &BTreeMap<RelPath, Entry>) -> Result<HardLinks> {
        let Some(id) = &manifest.hard_links else { return Ok(HardLinks::default()) };
        let mut links = HardLinks::load(&*self.store.reader, id)?;
        for group in &mut links.groups {
            group.retain(|path| !is_at_or_below(path, kept));
        }
        links.groups.retain(|group| group.len() > 1);
        Ok(links)
    }
}

impl LateWrites for Late<'_> {
    fn keep(&mut self, path: &RelPath, dir: BorrowedFd<'_>, name: &Name) -> Result<bool> {
        let Some((_, own_name)) = path.split() else { return Ok(false) };
        let work = Capture {
            root: &self.root,
            peer: &self.peer,
            sink: self.writer()?,
            clock: &*self.store.clock,
            ignore: &self.ignore,
        };
        let Some(mut entry) = capture_entry(&work, dir, name)? else { return Ok(false) };
        entry.name = own_name;
        let root = match self.safety {
            Some(safety) => Some(self.store.manifest(&safety.manifest)?.root),
            None => None,
        };
        if self.present(root.as_ref(), path)?.as_ref() == Some(&entry) {
            return Ok(false);
        }
        self.make_parents(root.as_ref(), path, &entry.meta)?;
        self.kept.insert(path.clone(), entry);
        Ok(true)
    }

    fn publish(&mut self) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let manifest = self.rewrite()?;
        let Some((pack, writer)) = self.pack.take() else { return Ok(()) };
        let target = match self.safety {
            Some(safety) => Target::Rewrite { snapshot: safety.key },
            None => {
                let now = self.store.clock.wall();
                let kind = RollbackKind::Unknown;
                Target::Composed(NewRow::safety(self.workspace, &self.op, &kind, now, &manifest))
            }
        };
        let written = self.store.finish(pack, writer)?;
        if !self.store.publish(pack, &written, self.workspace, &target, None, &manifest)? {
            return Err(Error::Busy);
        }
        self.published = true;
        self.safety = self.store.catalog.safety_of(self.workspace, &self.op)?;
        Ok(())
    }

    fn settle(&mut self, outcome: Outcome) -> Result<()> {
        let now = self.store.clock.wall();
        if let Some(safety) = self.safety {
            match outcome {
                Outcome::Finished => {
                    self.store.catalog.safety_applied(self.workspace, safety.key, now)?;
                }
                Outcome::TakenBack if !self.published && !self.has_journal()? => {
                    self.store.catalog.forget_safety(safety.key)?;
                }
                Outcome::TakenBack => self.store.catalog.safety_dropped(safety.key, now)?,
            }
        }
        self.settled = true;
        Ok(())
    }
}

impl Drop for Late<'_> {
    fn drop(&mut self) {
        if let Some((pack, writer)) = self.pack.take() {
            self.store.abandon(pack, writer);
        }
    }
}

/// Whether one of these names is the path or a directory on the way to it.
fn is_at_or_below(path: &RelPath, kept: &BTreeMap<RelPath, Entry>) -> bool {
    let mut at = Some(path.clone());
    while let Some(path) = at {
        if kept.contains_key(&path) {
            return true;
        }
        at = path.split().map(|(parent, _)| parent);
    }
    false
}

/// Entries and bytes of a name and everything below it, however deep that is.
fn weigh(source: &dyn ObjectSource, entry: &Entry) -> Result<(u64, u64)> {
    let (mut entries, mut bytes) = (0, 0);
    let mut todo = Vec::new();
    let mut add = |entry: &Entry, todo: &mut Vec<ObjectId>| {
        entries += 1;
        match &entry.kind {
            EntryKind::File { size, .. } => bytes += size,
            EntryKind::Directory(Some(node)) => todo.push(*node),
            _ => {}
        }
    };
    add(entry, &mut todo);
    while let Some(node) = todo.pop() {
        for inner in Tree::new(source, node).entries() {
            add(&inner?, &mut todo);
        }
    }
    Ok((entries, bytes))
}
