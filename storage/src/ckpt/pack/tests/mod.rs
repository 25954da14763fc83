//! Tests of packs.

mod damage;
mod faults;
mod fixture;
mod golden;
mod round_trip;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::testing::{MemoryIndex, MemoryPacks};
use super::*;
use crate::ckpt::error::Error;
use crate::ckpt::format::{ObjectSink, ObjectSource};
use crate::disk::Disk;

/// Packs, an index and a reader.
struct Store {
    storage: Arc<dyn PackStorage>,
    index: Arc<MemoryIndex>,
    reader: Arc<ObjectReader>,
}

impl Store {
    fn of(storage: impl PackStorage + 'static) -> Self {
        let (storage, index) = (Arc::new(storage), Arc::new(MemoryIndex::default()));
        let reader = Arc::new(ObjectReader::new(storage.clone(), index.clone()));
        Self { storage, index, reader }
    }

    fn in_dir(dir: &tempfile::TempDir, disk: Disk) -> Self {
        let dir: OwnedFd = std::fs::File::open(dir.path()).unwrap().into();
        Self::of(DirPacks::new(disk, dir))
    }

    fn writer(&self, id: PackId) -> PackWriter {
        PackWriter::new(self.reader.clone(), id)
    }

    /// Puts everything into a pack and publishes it.
    fn store(&self, id: PackId, objects: &[(ObjectKind, Vec<u8>)]) -> Written {
        let writer = self.writer(id);
        for (kind, bytes) in objects {
            writer.put(*kind, bytes).unwrap();
        }
        let written = writer.finish().unwrap();
        if let Some(pack) = &written.pack {
            self.index.publish(pack);
        }
        written
    }
}

/// The pack of that number.
fn pack(number: u8) -> PackId {
    PackId([number; 16])
}

/// Bytes that do not compress, the same ones for the same seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Bytes that compress well.
fn text(seed: u64, len: usize) -> Vec<u8> {
    format!("line {seed} of some text\n").into_bytes().into_iter().cycle().take(len).collect()
}

/// Some of everything: empty, small, compressible and not, nodes, bigger than a block.
fn assorted() -> Vec<(ObjectKind, Vec<u8>)> {
    let mut objects = vec![
        (ObjectKind::Data, Vec::new()),
        (ObjectKind::Data, b"small".to_vec()),
        (ObjectKind::Node, b"small".to_vec()),
        (ObjectKind::Manifest, noise(1, 100)),
        (ObjectKind::Data, text(1, 700_000)),
        (ObjectKind::Data, noise(2, 300_000)),
        (ObjectKind::Extents, Vec::new()),
    ];
    objects.extend((0..40).map(|n| (ObjectKind::Data, text(n, 20_000))));
    objects.extend((0..40).map(|n| (ObjectKind::Node, noise(n, 5_000))));
    objects
}
