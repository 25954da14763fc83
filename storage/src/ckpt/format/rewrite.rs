//! Changing single entries of a stored tree.

use std::collections::BTreeMap;
use std::io;

use super::entry::{Entry, EntryKind};
use super::id::ObjectId;
use super::node::Node;
use super::tree::{Cursor, Item, Tree};
use super::writer::NodeWriter;
use super::{ObjectSink, ObjectSource};
use crate::ckpt::error::{Error, Result};
use crate::path::{Name, RelPath};

type Changes = BTreeMap<Name, Option<Entry>>;

/// The tree `root` with some entries replaced, added (`Some`) or removed (`None`); their parents must be
/// directories of the tree or be among the changes. Only nodes on the way to a change are written.
pub fn rewrite_tree(
    source: &dyn ObjectSource,
    sink: &dyn ObjectSink,
    root: &ObjectId,
    changes: &BTreeMap<RelPath, Option<Entry>>,
) -> Result<ObjectId> {
    let mut directories = by_directory(changes)?;
    // Deepest first: what becomes of a directory is a change in the one around it.
    while let Some((depth, path)) = directories.last_key_value().map(|(key, _)| key.clone()) {
        let changes = directories.remove(&(depth, path.clone())).unwrap_or_default();
        let Some((parent, name)) = path.split() else {
            return rewrite_directory(source, sink, root, &changes);
        };
        let around = directories.entry((depth - 1, parent)).or_default();
        let entry = match around.get(&name) {
            Some(entry) => entry.clone(),
            None => Tree::new(source, *root).lookup(&path)?,
        };
        match entry {
            Some(Entry { name, meta, kind: EntryKind::Directory(Some(node)) }) => {
                let node = rewrite_directory(source, sink, &node, &changes)?;
                let kind = EntryKind::Directory(Some(node));
                around.insert(name.clone(), Some(Entry { name, meta, kind }));
            }
            // What is to go is gone with its directory.
            _ if changes.values().all(Option::is_none) => {}
            _ => {
                let what = format!("put something into {path} of a stored tree");
                return Err(Error::io(what, io::ErrorKind::NotADirectory.into()));
            }
        }
    }
    Ok(*root)
}

/// The changes of each directory, by its depth and path.
fn by_directory(changes: &BTreeMap<RelPath, Option<Entry>>) -> Result<BTreeMap<(usize, RelPath), Changes>> {
    let mut directories: BTreeMap<(usize, RelPath), Changes> = BTreeMap::new();
    for (path, entry) in changes {
        let named = path.split().filter(|(_, name)| entry.as_ref().is_none_or(|entry| entry.name == *name));
        let Some((parent, name)) = named else {
            let what = format!("put an entry at {path:?} of a stored tree");
            return Err(Error::io(what, io::ErrorKind::InvalidInput.into()));
        };
        let depth = parent.components().count();
        directories.entry((depth, parent)).or_default().insert(name, entry.clone());
    }
    Ok(directories)
}

/// One directory with some entries changed. Nodes without a change in them are taken over whole as soon as the
/// new tree has a boundary where they begin.
fn rewrite_directory(
    source: &dyn ObjectSource,
    sink: &dyn ObjectSink,
    root: &ObjectId,
    changes: &Changes,
) -> Result<ObjectId> {
    let mut old = Cursor::new(source, Some(*root));
    let mut new = NodeWriter::new(sink);
    let mut changes = changes.iter().peekable();
    loop {
        match (old.peek(), changes.peek()) {
            (Some(Item::Subtree(node)), next) => {
                // Whatever comes behind the last name of all would go into the last node.
                let changed = |last: &Name| next.is_some_and(|(name, _)| node.is_tail || **name <= *last);
                match &node.child {
                    Some(child) if !changed(&child.last) && new.at_boundary(node.level) => {
                        new.push_node(node.level, child)?;
                        old.take();
                    }
                    _ => old.descend()?,
                }
            }
            (Some(Item::Entry(entry)), next) if next.is_none_or(|(name, _)| entry.name < **name) => {
                new.push(entry)?;
                old.take();
            }
            (None, None) => break,
            (entry, Some((name, change))) => {
                let replaces = matches!(entry, Some(Item::Entry(entry)) if entry.name == **name);
                if let Some(entry) = change {
                    new.push(entry)?;
                }
                if replaces {
                    old.take();
                }
                changes.next();
            }
            (Some(Item::Entry(_)), None) => break,
        }
    }
    let mut root = new.finish()?;
    // A node that was the last of several may now be alone above a single one.
    while let Node::Inner(_, children) = Node::load(source, &root)?
        && let [only] = children.as_slice()
    {
        root = only.id;
    }
    Ok(root)
}
