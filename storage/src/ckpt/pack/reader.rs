//! Reading objects.

use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use super::block::{read, read_block};
use super::layout::{HEADER_LEN, check_header, damaged};
use super::lru::Lru;
use super::{Location, ObjectIndex, PackFile, PackId, PackStorage, lock};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::{ObjectId, ObjectKind, ObjectSource};

/// Bytes of decompressed blocks that are kept.
const BLOCK_CACHE: usize = 16 << 20;
/// Packs that are kept open: few enough for a process that may open 64 files and serves clients beside.
const OPEN_PACKS: usize = 16;

/// A block's pack, and where in it the block begins.
type BlockKey = (PackId, u64);

/// Finds objects by the index, reads them from packs and proves them: a block by its checksum, an object by its
/// id. Keeps some decompressed blocks and open files.
pub struct ObjectReader {
    storage: Arc<dyn PackStorage>,
    index: Arc<dyn ObjectIndex>,
    blocks: Mutex<Lru<BlockKey, Arc<[u8]>>>,
    files: Mutex<Lru<PackId, Arc<dyn PackFile>>>,
}

impl ObjectReader {
    /// Reads objects that `index` knows from packs in `storage`.
    pub fn new(storage: Arc<dyn PackStorage>, index: Arc<dyn ObjectIndex>) -> Self {
        let (blocks, files) = (Mutex::new(Lru::new(BLOCK_CACHE)), Mutex::new(Lru::new(OPEN_PACKS)));
        Self { storage, index, blocks, files }
    }

    /// Closes a pack that is about to be removed and forgets its blocks.
    pub fn forget(&self, pack: &PackId) {
        lock(&self.files).forget(|open| open == pack);
        lock(&self.blocks).forget(|(of, _)| of == pack);
    }

    /// Reads and proves an object of which nobody says any more what kind it is.
    pub fn get_any(&self, id: &ObjectId) -> Result<(ObjectKind, Arc<[u8]>)> {
        let mut why = Error::Corrupt(format!("object {id} is of no kind"));
        for kind in (1..).map_while(ObjectKind::from_byte) {
            match self.get(kind, id) {
                Ok(bytes) => return Ok((kind, bytes)),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    pub(super) fn storage(&self) -> &dyn PackStorage {
        &*self.storage
    }

    pub(super) fn index(&self) -> &dyn ObjectIndex {
        &*self.index
    }

    /// Reads and proves an object whose place is known.
    pub(super) fn read(&self, kind: ObjectKind, id: &ObjectId, at: &Location) -> Result<Arc<[u8]>> {
        let block = self.block(&at.pack, at.block)?;
        let from = at.offset as usize;
        let bytes = from.checked_add(at.len as usize).and_then(|to| block.get(from..to));
        match bytes {
            Some(bytes) if ObjectId::of(kind, bytes) == *id => {
                Ok(if bytes.len() == block.len() { block } else { bytes.into() })
            }
            _ => Err(damaged(&at.pack, format_args!("object {id} is not what is at {}+{from}", at.block))),
        }
    }

    fn block(&self, pack: &PackId, offset: u64) -> Result<Arc<[u8]>> {
        if let Some(block) = lock(&self.blocks).get(&(*pack, offset)) {
            return Ok(block);
        }
        let file = self.file(pack)?;
        // Unlocked: that two threads read the same block costs less than that they wait for each other.
        let (_, block) = read_block(&*file, pack, offset)?;
        lock(&self.blocks).insert((*pack, offset), block.clone(), block.len());
        Ok(block)
    }

    fn file(&self, pack: &PackId) -> Result<Arc<dyn PackFile>> {
        if let Some(file) = lock(&self.files).get(pack) {
            return Ok(file);
        }
        let opened = self.storage.open(pack).or_else(|error| {
            if !is_out_of_files(&error) {
                return Err(error);
            }
            // Others may have taken up the rest.
            lock(&self.files).forget(|_| true);
            self.storage.open(pack)
        });
        let file: Arc<dyn PackFile> = opened?.into();
        let mut header = [0; HEADER_LEN];
        read(&*file, pack, &mut header, 0)?;
        check_header(&header, pack)?;
        lock(&self.files).insert(*pack, file.clone(), 1);
        Ok(file)
    }
}

fn is_out_of_files(error: &Error) -> bool {
    let full = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    matches!(error, Error::Io { source, .. } if full.contains(&source.raw_os_error()))
}

impl ObjectSource for ObjectReader {
    fn get(&self, kind: ObjectKind, id: &ObjectId) -> Result<Arc<[u8]>> {
        match self.index.find(id)? {
            Some(at) => self.read(kind, id, &at),
            None => Err(Error::Corrupt(format!("object {id} is in no pack"))),
        }
    }

    fn has(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.index.find(id)?.is_some())
    }
}
