//! Building a directory's tree.

use std::io;

use super::ObjectSink;
use super::bytes::Encoder;
use super::entry::Entry;
use super::id::{ObjectId, ObjectKind};
use super::node::{Child, ends_node};
use crate::ckpt::error::{Error, Result};
use crate::path::{Name, escape};

/// Writes one directory: entries go in sorted by name, its node's id comes out.
pub struct NodeWriter<'a> {
    sink: &'a dyn ObjectSink,
    /// The open node of each level, leaves first. A level exists once something was put into it.
    levels: Vec<Level>,
}

/// The node of one level that is being filled.
#[derive(Default)]
struct Level {
    /// The node's bytes without the level byte before them.
    bytes: Encoder,
    items: usize,
    /// Entries below the items.
    entries: u64,
    /// The last item's last name; kept over the end of a node, to check the order.
    last: Vec<u8>,
    /// Nodes of this level that are finished; more than one counts as many.
    finished: usize,
    /// The last finished one.
    newest: Option<ObjectId>,
}

impl<'a> NodeWriter<'a> {
    /// A directory without entries so far.
    pub fn new(sink: &'a dyn ObjectSink) -> Self {
        Self { sink, levels: Vec::new() }
    }

    /// Adds the next entry; names must come in ascending byte order.
    pub fn push(&mut self, entry: &Entry) -> Result<()> {
        if !entry.is_sound() {
            let what = format!("store {}, which contradicts itself", escape(entry.name.as_bytes()));
            return Err(Error::io(what, io::ErrorKind::InvalidInput.into()));
        }
        self.add(0, entry.name.as_bytes(), 1, |out| entry.encode(out))
    }

    /// Stores what is left and returns the directory's node.
    pub fn finish(mut self) -> Result<ObjectId> {
        let mut level = 0;
        loop {
            let open = self.level(level);
            if open.items > 0 || open.finished == 0 {
                self.end_node(level)?;
            }
            let done = self.level(level);
            match done.newest {
                // Whatever was put into the levels above is this one node.
                Some(only) if done.finished == 1 => return Ok(only),
                _ => level += 1,
            }
        }
    }

    /// Whether a node of `level` can be added as it is: one would begin here on every level up to it.
    pub(super) fn at_boundary(&self, level: u8) -> bool {
        self.levels.iter().take(usize::from(level) + 1).all(|open| open.items == 0)
    }

    /// Adds all entries below a stored node. Only [`NodeWriter::at_boundary`], and only if the node ends where
    /// it does by the rule, or nothing follows.
    pub(super) fn push_node(&mut self, level: u8, child: &Child) -> Result<()> {
        for below in 0..level {
            self.level(below).finished = 2;
            self.level(below).last = child.last.as_bytes().to_vec();
        }
        let this = self.level(level);
        this.last = child.last.as_bytes().to_vec();
        this.finish_as(child.id);
        self.add(level + 1, child.last.as_bytes(), child.entries, |out| child.encode(out))
    }

    fn add(&mut self, level: u8, name: &[u8], entries: u64, encode: impl FnOnce(&mut Encoder)) -> Result<()> {
        let open = self.level(level);
        if !open.last.is_empty() && *open.last >= *name {
            let what = format!("add {} to a directory behind {}", escape(name), escape(&open.last));
            return Err(Error::io(what, io::ErrorKind::InvalidInput.into()));
        }
        encode(&mut open.bytes);
        open.items += 1;
        open.entries += entries;
        open.last.clear();
        open.last.extend_from_slice(name);
        if ends_node(level, open.items, open.bytes.as_slice().len(), name) {
            self.end_node(level)?;
        }
        Ok(())
    }

    fn end_node(&mut self, level: u8) -> Result<()> {
        let sink = self.sink;
        let open = self.level(level);
        let id = sink.put(ObjectKind::Node, open.bytes.as_slice())?;
        open.bytes.clear();
        open.bytes.byte(level);
        open.items = 0;
        let entries = std::mem::take(&mut open.entries);
        open.finish_as(id);
        if entries == 0 {
            return Ok(());
        }
        let last =
            Name::new(open.last.as_slice()).map_err(|_| Error::Corrupt("node without a name".into()))?;
        let child = Child { last, id, entries };
        self.add(level + 1, child.last.as_bytes(), entries, |out| child.encode(out))
    }

    fn level(&mut self, level: u8) -> &mut Level {
        while self.levels.len() <= usize::from(level) {
            let mut new = Level::default();
            new.bytes.byte(self.levels.len() as u8);
            self.levels.push(new);
        }
        &mut self.levels[usize::from(level)]
    }
}

impl Level {
    fn finish_as(&mut self, id: ObjectId) {
        self.finished = (self.finished + 1).min(2);
        self.newest = Some(id);
    }
}
