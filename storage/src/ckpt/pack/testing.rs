//! Packs and an index in memory, for tests.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex};

use super::layout::damaged;
use super::*;

/// An index filled by hand.
#[derive(Debug, Default)]
pub(crate) struct MemoryIndex {
    places: Mutex<HashMap<ObjectId, Location>>,
}

impl MemoryIndex {
    /// Publishes a finished pack, as a catalog does.
    pub(crate) fn publish(&self, pack: &NewPack) {
        let mut places = lock(&self.places);
        places.extend(pack.objects.iter().map(|object| (object.id, object.location(pack.id))));
    }
}

impl ObjectIndex for MemoryIndex {
    fn find(&self, id: &ObjectId) -> Result<Option<Location>> {
        Ok(lock(&self.places).get(id).copied())
    }

    fn find_reusable(&self, id: &ObjectId) -> Result<Option<Location>> {
        self.find(id)
    }
}

type MemoryFile = Arc<Mutex<Vec<u8>>>;

/// Packs as byte strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryPacks {
    packs: Arc<Mutex<BTreeMap<PackId, MemoryFile>>>,
}

impl MemoryPacks {
    /// A pack's bytes.
    pub(crate) fn bytes(&self, id: &PackId) -> Vec<u8> {
        lock(&lock(&self.packs)[id]).clone()
    }

    /// Puts bytes in place of a pack, whatever they are.
    pub(crate) fn set(&self, id: PackId, bytes: &[u8]) {
        lock(&self.packs).insert(id, Arc::new(Mutex::new(bytes.to_vec())));
    }
}

impl PackStorage for MemoryPacks {
    fn create(&self, id: &PackId) -> Result<Box<dyn NewPackFile>> {
        self.set(*id, &[]);
        Ok(Box::new(lock(&self.packs)[id].clone()))
    }

    fn open(&self, id: &PackId) -> Result<Box<dyn PackFile>> {
        match lock(&self.packs).get(id) {
            Some(bytes) => Ok(Box::new(bytes.clone())),
            None => Err(damaged(id, "there is no such pack")),
        }
    }

    fn remove(&self, id: &PackId) -> Result<()> {
        lock(&self.packs).remove(id);
        Ok(())
    }

    fn list(&self) -> Result<Vec<PackId>> {
        Ok(lock(&self.packs).keys().copied().collect())
    }
}

impl NewPackFile for MemoryFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut file = lock(self);
        let end = offset as usize + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl PackFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(lock(self).len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let file = lock(self);
        let from = offset as usize..offset as usize + buffer.len();
        buffer.copy_from_slice(file.get(from).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
