//! Reading a directory tree.

use super::ObjectSource;
use super::entry::{Entry, EntryKind};
use super::id::ObjectId;
use super::node::{Child, MAX_LEVEL, Node};
use crate::ckpt::error::{Error, Result};
use crate::path::{Name, RelPath};

/// A directory tree in the store.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    source: &'a dyn ObjectSource,
    root: ObjectId,
}

impl<'a> Tree<'a> {
    /// The tree below a directory's node.
    pub fn new(source: &'a dyn ObjectSource, root: ObjectId) -> Self {
        Self { source, root }
    }

    /// The entries of the root directory in order; reads one leaf at a time. Ends after an error.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry>> + use<'a> {
        let mut cursor = Cursor::new(self.source, Some(self.root));
        std::iter::from_fn(move || cursor.next_entry().transpose())
    }

    /// The entry of that name in the root directory.
    pub fn entry(&self, name: &Name) -> Result<Option<Entry>> {
        let mut at = Subtree::root(self.root);
        loop {
            match at.load(self.source)? {
                Node::Leaf(mut entries) => {
                    let found = entries.binary_search_by(|entry| entry.name.cmp(name));
                    return Ok(found.ok().map(|index| entries.swap_remove(index)));
                }
                Node::Inner(level, children) => {
                    let index = children.partition_point(|child| child.last < *name);
                    match at.children(level, children).nth(index) {
                        Some(child) => at = child,
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    /// The entry at a path below the root directory.
    pub fn lookup(&self, path: &RelPath) -> Result<Option<Entry>> {
        let mut directory = Some(self.root);
        let mut found = None;
        for name in path.components() {
            let Some(node) = directory else { return Ok(None) };
            let Some(entry) = Tree::new(self.source, node).entry(&name)? else { return Ok(None) };
            directory = match entry.kind {
                EntryKind::Directory(node) => node,
                _ => None,
            };
            found = Some(entry);
        }
        Ok(found)
    }
}

/// A walk over one directory that goes into a node only when told to.
pub(super) struct Cursor<'a> {
    source: &'a dyn ObjectSource,
    /// What is still to come, next one last.
    ahead: Vec<Item>,
}

/// What a cursor stands before.
pub(super) enum Item {
    Entry(Entry),
    Subtree(Subtree),
}

/// A node not yet read, with what is known about it.
pub(super) struct Subtree {
    /// Its level; above all others for a root, whose level is not known yet.
    pub(super) level: u8,
    /// The node; for a root, only the id is known.
    pub(super) id: ObjectId,
    /// What its parent says of it.
    pub(super) child: Option<Child>,
    /// Every name below it is greater.
    pub(super) after: Option<Name>,
    /// Whether nothing follows it in its directory.
    pub(super) is_tail: bool,
}

impl<'a> Cursor<'a> {
    /// At the start of a directory; `None` is one without entries.
    pub(super) fn new(source: &'a dyn ObjectSource, root: Option<ObjectId>) -> Self {
        Self { source, ahead: root.map(|id| Item::Subtree(Subtree::root(id))).into_iter().collect() }
    }

    pub(super) fn peek(&self) -> Option<&Item> {
        self.ahead.last()
    }

    /// Moves behind what it stands before.
    pub(super) fn take(&mut self) -> Option<Item> {
        self.ahead.pop()
    }

    /// If it stands before a node, moves to the first thing in it.
    pub(super) fn descend(&mut self) -> Result<()> {
        let Some(Item::Subtree(_)) = self.ahead.last() else { return Ok(()) };
        let Some(Item::Subtree(at)) = self.ahead.pop() else { return Ok(()) };
        match at.load(self.source) {
            Ok(Node::Leaf(entries)) => self.ahead.extend(entries.into_iter().map(Item::Entry).rev()),
            Ok(Node::Inner(level, children)) => {
                let from = self.ahead.len();
                self.ahead.extend(at.children(level, children).map(Item::Subtree));
                self.ahead[from..].reverse();
            }
            Err(error) => {
                self.ahead.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// The next entry, through all levels.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>> {
        while let Some(Item::Subtree(_)) = self.peek() {
            self.descend()?;
        }
        Ok(self.take().and_then(|item| match item {
            Item::Entry(entry) => Some(entry),
            Item::Subtree(_) => None,
        }))
    }
}

impl Subtree {
    pub(super) fn root(id: ObjectId) -> Self {
        Self { level: MAX_LEVEL + 1, id, child: None, after: None, is_tail: true }
    }

    /// Reads the node and checks it against what is known about it.
    fn load(&self, source: &dyn ObjectSource) -> Result<Node> {
        let node = Node::load(source, &self.id)?;
        let fits = match &self.child {
            Some(child) => {
                node.level() == self.level
                    && node.entries() == Some(child.entries)
                    && node.last() == Some(&child.last)
                    && node.first() > self.after.as_ref()
            }
            None => node.entries().is_some(),
        };
        if fits { Ok(node) } else { Err(Error::Corrupt(format!("node {} does not fit its parent", self.id))) }
    }

    /// The nodes in this one.
    fn children(&self, level: u8, children: Vec<Child>) -> impl Iterator<Item = Self> + use<> {
        let (is_tail, count) = (self.is_tail, children.len());
        let mut after = self.after.clone();
        children.into_iter().enumerate().map(move |(index, child)| {
            let after = after.replace(child.last.clone());
            let is_tail = is_tail && index + 1 == count;
            Self { level: level - 1, id: child.id, child: Some(child), after, is_tail }
        })
    }
}
