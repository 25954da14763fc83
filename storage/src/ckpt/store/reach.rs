//! Which objects a snapshot needs.

use std::collections::HashSet;

use crate::ckpt::error::Result;
use crate::ckpt::format::{ObjectId, ObjectKind, ObjectSource, references};

/// Every object that some snapshots need.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// Objects that refer to others, in full: one taken for another would hide what only it refers to.
    structure: HashSet<ObjectId>,
    /// The beginnings of all ids. That two agree keeps an object too many, once in ages.
    objects: HashSet<u64>,
}

impl Reach {
    /// Adds a snapshot. Reads only what no earlier one shares with it.
    pub(super) fn add(&mut self, source: &dyn ObjectSource, manifest: ObjectId) -> Result<()> {
        let mut todo = vec![(ObjectKind::Manifest, manifest)];
        while let Some((kind, id)) = todo.pop() {
            self.objects.insert(beginning(&id));
            if kind != ObjectKind::Data && self.structure.insert(id) {
                references(source, kind, &id, &mut |kind, id| todo.push((kind, id)))?;
            }
        }
        Ok(())
    }

    /// Whether a snapshot needs this object.
    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.objects.contains(&beginning(id))
    }

    /// Forgets what is needed only to add more.
    pub(super) fn seal(&mut self) {
        self.structure = HashSet::new();
    }
}

fn beginning(id: &ObjectId) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = id.0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}
