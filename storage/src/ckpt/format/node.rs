//! Directories as Merkle trees, split at content-defined boundaries.

use std::collections::BTreeMap;

use super::entry::Entry;
use super::id::ObjectId;
use super::{ObjectSink, ObjectSource};
use crate::ckpt::error::Result;
use crate::path::{Name, RelPath};

/// Writes one directory: entries go in sorted by name, its node's id comes out.
#[allow(dead_code, reason = "skeleton")]
pub struct NodeWriter<'a> {
    sink: &'a dyn ObjectSink,
}

impl<'a> NodeWriter<'a> {
    /// A directory without entries so far.
    pub fn new(sink: &'a dyn ObjectSink) -> Self {
        Self { sink }
    }

    /// Adds the next entry; names must come in ascending byte order.
    pub fn push(&mut self, _entry: &Entry) -> Result<()> {
        todo!()
    }

    /// Stores what is left and returns the directory's node.
    pub fn finish(self) -> Result<ObjectId> {
        todo!()
    }
}

/// A directory tree in the store.
#[allow(dead_code, reason = "skeleton")]
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

    /// The entries of the root directory in order; reads one leaf at a time.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry>> + 'a {
        std::iter::empty()
    }

    /// The entry of that name in the root directory.
    pub fn entry(&self, _name: &Name) -> Result<Option<Entry>> {
        todo!()
    }

    /// The entry at a path below the root directory.
    pub fn lookup(&self, _path: &RelPath) -> Result<Option<Entry>> {
        todo!()
    }
}

/// A name whose entries differ in anything at all, time included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Where.
    pub path: RelPath,
    /// What the first tree has there.
    pub old: Option<Entry>,
    /// What the second tree has there.
    pub new: Option<Entry>,
}

/// What a visitor of [`diff_trees`] wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Go on below this name: for two directories the differences between them, for a directory on one side only
    /// all that is in it.
    Inside,
    /// Go on behind this name.
    Over,
}

/// Calls `visit` for every name whose entries differ, a directory before what is in it, names of one directory in
/// order. Reads only nodes that differ, so the work grows with the difference, not with the trees.
pub fn diff_trees(
    _source: &dyn ObjectSource,
    _old: &ObjectId,
    _new: &ObjectId,
    _visit: &mut dyn FnMut(&Delta) -> Result<Visit>,
) -> Result<()> {
    todo!()
}

/// The tree `root` with some entries replaced, added (`Some`) or removed (`None`); their parents must be
/// directories of the tree or be among the changes. Only nodes on the way to a change are written.
pub fn rewrite_tree(
    _source: &dyn ObjectSource,
    _sink: &dyn ObjectSink,
    _root: &ObjectId,
    _changes: &BTreeMap<RelPath, Option<Entry>>,
) -> Result<ObjectId> {
    todo!()
}
