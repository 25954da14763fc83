//! What of a snapshot a peer may see.
//!
//! Root can have a user's workspace captured, and a rollback or a list of changes must not hand to that user what only
//! root could read in it. So a snapshot is shown as the peer itself could have captured it, going by owner, group and
//! mode as they were then.

use super::error::Result;
use super::format::{
    Content, Delta, Entry, EntryKind, Manifest, Meta, ObjectId, ObjectSource, Tree, Visit, diff_trees,
};
use crate::path::RelPath;
use crate::peer::Peer;

/// Whose view it is.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// `None` for whoever may see everything.
    peer: Option<Peer>,
}

const READ: u32 = 0o4;
const SEARCH: u32 = 0o1;

impl View {
    /// With nothing hidden.
    pub(super) fn whole() -> Self {
        Self { peer: None }
    }

    /// What that peer may see.
    pub(super) fn of(peer: &Peer) -> Self {
        Self { peer: (!peer.is_privileged()).then(|| peer.clone()) }
    }

    /// The entry with what may not be read of it as a capture leaves that out.
    pub(super) fn show(&self, mut entry: Entry) -> Entry {
        match &mut entry.kind {
            EntryKind::File { content, .. } if !self.has(&entry.meta, READ) => *content = Content::Unread,
            EntryKind::Directory(node) if !self.has(&entry.meta, READ | SEARCH) => *node = None,
            _ => return entry,
        }
        // These take the right to read as well.
        let xattrs = entry.meta.xattrs.iter().filter(|(name, _)| !name.starts_with(b"user."));
        entry.meta.xattrs = xattrs.cloned().collect();
        entry
    }

    /// The node of a snapshot's root directory, if that may be read.
    fn root(&self, manifest: &Manifest) -> Option<ObjectId> {
        self.shows_root(manifest).then_some(manifest.root)
    }

    /// Whether anything beneath the root directory may be seen.
    pub(super) fn shows_root(&self, manifest: &Manifest) -> bool {
        self.has(&manifest.root_meta, READ | SEARCH)
    }

    /// What a snapshot has at a path; `None` also for what may not be seen.
    pub(super) fn lookup(
        &self,
        source: &dyn ObjectSource,
        manifest: &Manifest,
        path: &RelPath,
    ) -> Result<Option<Entry>> {
        let mut directory = self.root(manifest);
        let mut found = None;
        for name in path.components() {
            let Some(node) = directory else { return Ok(None) };
            let Some(entry) = Tree::new(source, node).entry(&name)? else { return Ok(None) };
            let entry = self.show(entry);
            directory = match entry.kind {
                EntryKind::Directory(node) => node,
                _ => None,
            };
            found = Some(entry);
        }
        Ok(found)
    }

    /// Whether the directory in which a snapshot has a path may be listed.
    pub(super) fn shows_name(
        &self,
        source: &dyn ObjectSource,
        manifest: &Manifest,
        path: &RelPath,
    ) -> Result<bool> {
        if self.peer.is_none() {
            return Ok(true);
        }
        match path.split() {
            Some((parent, _)) if !parent.is_root() => {
                let parent = self.lookup(source, manifest, &parent)?;
                Ok(matches!(parent, Some(Entry { kind: EntryKind::Directory(Some(_)), .. })))
            }
            Some(_) => Ok(self.shows_root(manifest)),
            None => Ok(true),
        }
    }

    /// Whether the peer had all of these rights to something. An owner has them: it can always give them to itself.
    fn has(&self, meta: &Meta, wanted: u32) -> bool {
        let Some(peer) = &self.peer else { return true };
        if peer.uid == meta.uid {
            return true;
        }
        // A list can refuse what the mode grants. That it can also grant more is not gone into.
        if meta.xattrs.iter().any(|(name, _)| **name == *b"system.posix_acl_access") {
            return false;
        }
        let is_member = peer.gid == meta.gid || peer.groups.contains(&meta.gid);
        let granted = if is_member { meta.mode >> 3 } else { meta.mode };
        granted & wanted == wanted
    }
}

/// As [`diff_trees`], of two snapshots each as somebody may see it. Nothing is said of what is in a directory that one
/// of the two views hides.
pub(super) fn diff(
    source: &dyn ObjectSource,
    (old_view, old): (&View, &Manifest),
    (new_view, new): (&View, &Manifest),
    visit: &mut dyn FnMut(&Delta) -> Result<Visit>,
) -> Result<()> {
    let (Some(old), Some(new)) = (old_view.root(old), new_view.root(new)) else { return Ok(()) };
    diff_trees(source, &old, &new, &mut |delta| {
        let shown = Delta {
            path: delta.path.clone(),
            old: delta.old.clone().map(|entry| old_view.show(entry)),
            new: delta.new.clone().map(|entry| new_view.show(entry)),
        };
        let next = visit(&shown)?;
        let hidden = [&shown.old, &shown.new].into_iter().flatten();
        match hidden.into_iter().any(|entry| entry.kind == EntryKind::Directory(None)) {
            true => Ok(Visit::Over),
            false => Ok(next),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ckpt::format::NodeWriter;
    use crate::ckpt::format::testing::MemoryObjects;
    use crate::path::Name;

    /// A peer that is user 7 with group 8 and, besides, 9.
    fn view() -> View {
        View { peer: Some(Peer { uid: 7, gid: 8, groups: vec![9] }) }
    }

    fn entry(mode: u32, uid: u32, gid: u32, kind: EntryKind, xattrs: &[&str]) -> Entry {
        let xattrs = xattrs.iter().map(|name| (name.as_bytes().into(), [1].into())).collect();
        let meta = Meta { mode, uid, gid, xattrs, ..Meta::default() };
        Entry { name: Name::new(b"name".to_vec()).unwrap(), meta, kind }
    }

    fn file() -> EntryKind {
        EntryKind::File { size: 3, content: Content::Whole(ObjectId([1; 32])) }
    }

    fn directory() -> EntryKind {
        EntryKind::Directory(Some(ObjectId([2; 32])))
    }

    #[test]
    fn a_file_is_shown_to_its_owner_and_to_whom_its_mode_lets_read_it() {
        let shown = |mode, uid, gid| {
            let entry = entry(mode, uid, gid, file(), &[]);
            view().show(entry.clone()) == entry
        };
        let cases = [(0, 7, 0), (0o640, 0, 8), (0o640, 0, 9), (0o604, 0, 0)];
        assert_eq!(cases.map(|(mode, uid, gid)| shown(mode, uid, gid)), [true; 4]);
        let cases = [(0o600, 0, 0), (0o640, 0, 0), (0o604, 0, 9), (0o733, 0, 8)];
        assert_eq!(cases.map(|(mode, uid, gid)| shown(mode, uid, gid)), [false; 4]);
    }

    #[test]
    fn a_directory_is_shown_to_whom_it_lets_list_and_search() {
        let shown = |mode| view().show(entry(mode, 0, 0, directory(), &[])).kind == directory();
        assert_eq!([0o755, 0o705, 0o704, 0o701, 0o750].map(shown), [true, true, false, false, false]);
    }

    #[test]
    fn what_has_an_access_list_is_shown_to_its_owner_alone() {
        let shown = |uid| view().show(entry(0o644, uid, 0, file(), &["system.posix_acl_access"])).kind;
        assert_eq!(shown(7), file());
        assert_eq!(shown(0), EntryKind::File { size: 3, content: Content::Unread });
    }

    #[test]
    fn attributes_that_take_the_right_to_read_are_hidden_with_the_content() {
        let names = ["security.capability", "user.note"];
        let hidden = view().show(entry(0o600, 0, 0, file(), &names));
        assert_eq!(hidden.meta.xattrs, entry(0, 0, 0, file(), &names[..1]).meta.xattrs);
        assert_eq!(view().show(entry(0o644, 0, 0, file(), &names)).meta.xattrs.len(), 2);
    }

    #[test]
    fn nothing_beneath_a_hidden_directory_is_named_or_found() {
        let objects = MemoryObjects::new();
        let node_of = |name: &str, mode, kind| {
            let entry =
                Entry { name: Name::new(name.as_bytes().to_vec()).unwrap(), ..entry(mode, 0, 0, kind, &[]) };
            let mut node = NodeWriter::new(&objects);
            node.push(&entry).unwrap();
            node.finish().unwrap()
        };
        let inner = node_of("file", 0o644, file());
        let middle = node_of("inner", 0o755, EntryKind::Directory(Some(inner)));
        let closed = node_of("closed", 0o711, EntryKind::Directory(Some(middle)));
        let manifest = |mode, root| Manifest {
            root_meta: entry(mode, 0, 0, file(), &[]).meta,
            root,
            hard_links: None,
            entries: 3,
            bytes: 3,
            warnings: Vec::new(),
        };
        let named = |view: &View, manifest: &Manifest| {
            ["closed", "closed/inner", "closed/inner/file"].map(|path| {
                let path = RelPath::new(path.as_bytes()).unwrap();
                let found = view.lookup(&objects, manifest, &path).unwrap().is_some();
                assert_eq!(found, view.shows_name(&objects, manifest, &path).unwrap(), "{path}");
                found
            })
        };
        assert_eq!(named(&view(), &manifest(0o755, closed)), [true, false, false]);
        assert_eq!(named(&view(), &manifest(0o700, closed)), [false; 3]);
        assert_eq!(named(&View::whole(), &manifest(0o700, closed)), [true; 3]);
        let open = node_of("closed", 0o755, EntryKind::Directory(Some(middle)));
        assert_eq!(named(&view(), &manifest(0o755, open)), [true; 3]);
    }

    #[test]
    fn a_link_is_shown_wherever_its_name_is() {
        let link = entry(0, 0, 0, EntryKind::Symlink(b"target"[..].into()), &[]);
        assert_eq!(view().show(link.clone()), link);
    }

    #[test]
    fn the_daemons_own_user_sees_everything() {
        let secret = entry(0, 12_345, 0, file(), &["system.posix_acl_access", "user.note"]);
        assert_eq!(View::of(&Peer::own()).show(secret.clone()), secret);
    }
}
