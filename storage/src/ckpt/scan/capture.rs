//! From a live tree to a manifest.

use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;

use super::cache::StatCache;
use super::filesystem::Filesystem;
use super::listing::SharedName;
use super::walk::{Top, Walk};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{Entry, EntryKind, HardLinks, Manifest, ObjectId, ObjectKind, ObjectSink};
use crate::ckpt::model::{Warning, WarningKind};
use crate::clock::Clock;
use crate::fs::Root;
use crate::path::{Name, RelPath};
use crate::peer::Peer;

/// What a capture works on.
pub struct Capture<'a> {
    /// The workspace.
    pub root: &'a Root,
    /// Whose rights the walk has.
    pub peer: &'a Peer,
    /// Where new objects go.
    pub sink: &'a dyn ObjectSink,
    /// The wall clock of the filesystem's timestamps.
    pub clock: &'a dyn Clock,
    /// Names a journal owns: staging directories, here and in workspaces inside this one. Not captured.
    pub ignore: &'a HashSet<RelPath>,
}

/// A captured tree; its objects are in the sink, not yet durable.
#[derive(Clone, Debug)]
pub struct Captured {
    /// What was captured.
    pub manifest: Manifest,
    /// The manifest's own id.
    pub id: ObjectId,
}

/// Walks the tree with two threads, reads what is not provably unchanged, and stores what is new.
///
/// Changes nothing in the tree, no access time either. Fails only if the root itself cannot be read, the sink fails or
/// this process is at its limits; whatever else cannot be read becomes a warning.
pub fn capture(work: &Capture<'_>, cache: &mut StatCache) -> Result<Captured> {
    capture_on(work, Filesystem::of(work.root)?, cache)
}

/// The same on a filesystem of which it is known what can be relied on.
pub(super) fn capture_on(
    work: &Capture<'_>,
    filesystem: Filesystem,
    cache: &mut StatCache,
) -> Result<Captured> {
    cache.begin();
    let top = Walk::new(work, work.root, filesystem, Some(cache))?.run(None)?;
    let Some(Top { meta, kind: EntryKind::Directory(Some(root)), tally }) = top else {
        return Err(Error::io("read the workspace", io::ErrorKind::NotFound.into()));
    };
    let mut warnings = tally.warnings;
    let groups = groups(tally.names, &mut warnings);
    let hard_links = if groups.is_empty() {
        None
    } else {
        Some(work.sink.put(ObjectKind::HardLinks, &HardLinks { groups }.encode())?)
    };
    warnings.sort_by(|one, other| one.path.cmp(&other.path));
    let manifest =
        Manifest { root_meta: meta, root, hard_links, entries: tally.entries, bytes: tally.bytes, warnings };
    let id = work.sink.put(ObjectKind::Manifest, &manifest.encode())?;
    Ok(Captured { manifest, id })
}

/// Captures one name of a directory, everything beneath it included, without a cache. `None` if it is gone. Fails with
/// `ErrorKind::PermissionDenied` if any of it cannot be read.
pub fn capture_entry(work: &Capture<'_>, dir: BorrowedFd<'_>, name: &Name) -> Result<Option<Entry>> {
    let root = Root::held(dir).context(|| "hold a directory".into())?;
    // What is ignored has paths below another root.
    let work = Capture { ignore: &HashSet::new(), ..*work };
    let top = Walk::new(&work, &root, Filesystem::of(&root)?, None)?.run(Some(name.clone()))?;
    let unread = |top: &Top| top.tally.warnings.iter().any(|w| w.kind == WarningKind::Unreadable);
    if top.as_ref().is_some_and(unread) {
        return Err(Error::io("read all of a file or directory", io::ErrorKind::PermissionDenied.into()));
    }
    Ok(top.map(|top| Entry { name: name.clone(), meta: top.meta, kind: top.kind }))
}

/// The paths that share an inode, where there are several. A file that changed between one name's capture and
/// another's has no one content that all of them could share: its names are files of their own, with a warning.
fn groups(mut names: Vec<SharedName>, warnings: &mut Vec<Warning>) -> Vec<Vec<RelPath>> {
    names.sort_unstable();
    let mut groups: Vec<Vec<RelPath>> = Vec::new();
    for names in names.chunk_by(|one, other| one.inode == other.inode).filter(|names| names.len() > 1) {
        let paths = names.iter().map(|name| name.path.clone());
        if names.iter().all(|name| name.state == names[0].state) {
            groups.push(paths.collect());
        } else {
            warnings.extend(paths.map(|path| Warning { path, kind: WarningKind::ChangedWhileRead }));
        }
    }
    groups.sort_unstable();
    groups
}
