//! The difference between two trees.

use std::cmp::Ordering;

use super::ObjectSource;
use super::entry::{Entry, EntryKind};
use super::id::ObjectId;
use super::tree::{Cursor, Item};
use crate::ckpt::error::Result;
use crate::path::RelPath;

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
    /// all that is in it. Nothing, if a directory of that name could not be listed on either side.
    Inside,
    /// Go on behind this name.
    Over,
}

/// Calls `visit` for every name whose entries differ, a directory before what is in it, names of one directory in
/// order. Reads only nodes that differ, so the work grows with the difference, not with the trees.
pub fn diff_trees(
    source: &dyn ObjectSource,
    old: &ObjectId,
    new: &ObjectId,
    visit: &mut dyn FnMut(&Delta) -> Result<Visit>,
) -> Result<()> {
    // A stack of its own: directories may nest deeper than a thread's stack.
    let mut open = vec![Pair::new(source, RelPath::ROOT, Some(*old), Some(*new))];
    while let Some(pair) = open.last_mut() {
        let Some((old, new)) = pair.next()? else {
            open.pop();
            continue;
        };
        let name = match (&old, &new) {
            (Some(entry), _) | (None, Some(entry)) => &entry.name,
            (None, None) => continue,
        };
        let delta = Delta { path: pair.path.join(name), old, new };
        if visit(&delta)? == Visit::Inside
            && let Some((old, new)) = inside(&delta)
        {
            open.push(Pair::new(source, delta.path, old, new));
        }
    }
    Ok(())
}

/// The directories below a delta, if there are any and all of them could be listed.
fn inside(delta: &Delta) -> Option<(Option<ObjectId>, Option<ObjectId>)> {
    let directory = |entry: &Option<Entry>| match entry {
        Some(Entry { kind: EntryKind::Directory(node), .. }) => Some(*node),
        _ => None,
    };
    match (directory(&delta.old), directory(&delta.new)) {
        (Some(None), _) | (_, Some(None)) | (None, None) => None,
        (old, new) => Some((old.flatten(), new.flatten())),
    }
}

/// One directory on both sides.
struct Pair<'a> {
    path: RelPath,
    old: Cursor<'a>,
    new: Cursor<'a>,
}

impl<'a> Pair<'a> {
    fn new(
        source: &'a dyn ObjectSource,
        path: RelPath,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
    ) -> Self {
        Self { path, old: Cursor::new(source, old), new: Cursor::new(source, new) }
    }

    /// The next name whose entries differ.
    fn next(&mut self) -> Result<Option<(Option<Entry>, Option<Entry>)>> {
        loop {
            let order = match (self.old.peek(), self.new.peek()) {
                (None, None) => return Ok(None),
                (Some(Item::Subtree(old)), Some(Item::Subtree(new))) => {
                    if old.id == new.id {
                        self.old.take();
                        self.new.take();
                        continue;
                    }
                    // Down to the same level first, so that nodes both sides have meet.
                    let order = old.level.cmp(&new.level);
                    if order != Ordering::Less {
                        self.old.descend()?;
                    }
                    if order != Ordering::Greater {
                        self.new.descend()?;
                    }
                    continue;
                }
                (Some(Item::Subtree(_)), _) => {
                    self.old.descend()?;
                    continue;
                }
                (_, Some(Item::Subtree(_))) => {
                    self.new.descend()?;
                    continue;
                }
                (Some(Item::Entry(_)), None) => Ordering::Less,
                (None, Some(Item::Entry(_))) => Ordering::Greater,
                (Some(Item::Entry(old)), Some(Item::Entry(new))) => old.name.cmp(&new.name),
            };
            let old = if order != Ordering::Greater { self.old.next_entry()? } else { None };
            let new = if order != Ordering::Less { self.new.next_entry()? } else { None };
            if old != new {
                return Ok(Some((old, new)));
            }
        }
    }
}
