//! Writing a pack.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use hashbrown::HashTable;

use super::block::Sealer;
use super::layout::{
    BLOCK_HEADER_LEN, HEADER_LEN, IndexChecksum, IndexedBlock, MAX_OBJECT, Trailer, encode_block,
    encode_object, header,
};
use super::{NewPackFile, ObjectReader, PackId, PackedObject, lock};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{Encoder, ObjectId, ObjectKind, ObjectSink, ObjectSource};

/// Gathers the new objects of one operation into one pack. Shared by the threads of a capture.
///
/// Objects are readable through the writer as soon as they are put. Unless [`PackWriter::finish`] succeeds nothing
/// remains: dropping the writer removes the file.
pub struct PackWriter {
    reader: Arc<ObjectReader>,
    id: PackId,
    sealer: Sealer,
    state: Mutex<State>,
}

/// A finished pack, durable but not yet in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPack {
    /// Its name.
    pub id: PackId,
    /// The length of its file.
    pub bytes: u64,
    /// The length of all its objects.
    pub raw_bytes: u64,
    /// What is in it, in the order in which it lies there.
    pub objects: Vec<PackedObject>,
}

/// What an operation has to publish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The pack; `None` if every object was known.
    pub pack: Option<NewPack>,
    /// Packs that hold objects which were put and not stored again.
    pub reused: BTreeSet<PackId>,
}

/// What is read together lies together: a diff reads nodes and no file content.
#[derive(Clone, Copy)]
enum Group {
    Content,
    Structure,
}

impl Group {
    fn of(kind: ObjectKind) -> Self {
        match kind {
            ObjectKind::Data => Self::Content,
            ObjectKind::Extents | ObjectKind::Node | ObjectKind::HardLinks | ObjectKind::Manifest => {
                Self::Structure
            }
        }
    }

    /// A block is full at so many bytes. Nodes are read here and there, content mostly in order.
    fn block_len(self) -> usize {
        match self {
            Self::Content => 256 << 10,
            Self::Structure => 64 << 10,
        }
    }
}

#[derive(Default)]
struct State {
    /// Made when the first block is full.
    file: Option<Arc<dyn NewPackFile>>,
    /// Where the next block goes.
    end: u64,
    blocks: Vec<Block>,
    /// The block being filled of each [`Group`].
    filling: [Option<usize>; 2],
    /// What was put, with the number of its block for the place of its block.
    objects: Vec<PackedObject>,
    /// Indices into `objects`, by id.
    by_id: HashTable<u32>,
    reused: BTreeSet<PackId>,
    /// The first error; the pack is lost.
    failure: Option<Failure>,
    is_durable: bool,
}

/// The life of a block.
enum Block {
    /// Objects are added to it.
    Filling(Vec<u8>),
    /// A thread compresses and writes it.
    Sealing(Arc<[u8]>),
    /// It is in the file.
    Written { offset: u64, stored_len: u32, raw_len: u32 },
}

/// An error that can be told again.
enum Failure {
    NoSpace(String),
    Other(String),
}

impl PackWriter {
    /// A pack named `id` in the reader's storage; what the reader's index has is not stored again. The file is
    /// made when the first block is full.
    pub fn new(reader: Arc<ObjectReader>, id: PackId) -> Self {
        Self { reader, id, sealer: Sealer::default(), state: Mutex::default() }
    }

    /// Writes what is left and the index, and makes the pack durable: one fsync of the file, one of its directory.
    pub fn finish(self) -> Result<Written> {
        let filling = std::mem::take(&mut lock(&self.state).filling);
        for number in filling.into_iter().flatten() {
            self.seal(number)?;
        }
        let mut state = lock(&self.state);
        state.check()?;
        let reused = std::mem::take(&mut state.reused);
        let unwritten = || Error::io(self.writing(), io::Error::other("not all of it was written"));
        let (objects, blocks) = state.take_sorted().ok_or_else(unwritten)?;
        let Some(file) = state.file.clone() else { return Ok(Written { pack: None, reused }) };
        let raw_bytes = blocks.iter().map(|block| u64::from(block.raw_len)).sum();
        let bytes = self.write_index(&*file, state.end, &blocks, &objects)?;
        file.sync().context(|| format!("make pack {} durable", self.id))?;
        state.is_durable = true;
        Ok(Written { pack: Some(NewPack { id: self.id, bytes, raw_bytes, objects }), reused })
    }

    /// Returns the length of the whole pack.
    fn write_index(
        &self,
        file: &dyn NewPackFile,
        index_offset: u64,
        blocks: &[IndexedBlock],
        objects: &[PackedObject],
    ) -> Result<u64> {
        /// A million objects have an index of 35 MB.
        const PIECE: usize = 1 << 20;
        let mut checksum = IndexChecksum::new(&self.id);
        let mut at = index_offset;
        let mut out = Encoder::new();
        let mut write = |out: &mut Encoder, more: &[u8]| -> Result<u64> {
            checksum.update(out.as_slice());
            out.raw(more);
            file.write_at(out.as_slice(), at).context(|| self.writing())?;
            at += out.as_slice().len() as u64;
            out.clear();
            Ok(at)
        };
        out.uint(blocks.len() as u64);
        blocks.iter().for_each(|block| encode_block(block, &mut out));
        for object in objects {
            encode_object(object, &mut out);
            if out.as_slice().len() >= PIECE {
                write(&mut out, &[])?;
            }
        }
        let index_len = write(&mut out, &[])? - index_offset;
        let checksum = checksum.finish(index_offset, index_len);
        let trailer = Trailer { index_offset, index_len, checksum }.encode();
        let end = index_offset + index_len;
        file.write_at(&trailer, end).context(|| self.writing())?;
        Ok(end + trailer.len() as u64)
    }

    /// Compresses and writes a block nobody adds to any more. Only reserving its place holds the lock.
    fn seal(&self, number: usize) -> Result<()> {
        let sealed = self.try_seal(number);
        if let Err(error) = &sealed {
            lock(&self.state).failure.get_or_insert(Failure::of(error));
        }
        sealed
    }

    fn try_seal(&self, number: usize) -> Result<()> {
        let Some(raw) = lock(&self.state).blocks[number].begin_sealing() else { return Ok(()) };
        let bytes = self.sealer.seal(&raw)?;
        let (file, offset) = lock(&self.state).reserve(&self.reader, &self.id, bytes.len())?;
        file.write_at(&bytes, offset).context(|| self.writing())?;
        let stored_len = (bytes.len() - BLOCK_HEADER_LEN) as u32;
        lock(&self.state).blocks[number] = Block::Written { offset, stored_len, raw_len: raw.len() as u32 };
        Ok(())
    }

    fn writing(&self) -> String {
        format!("write pack {}", self.id)
    }
}

impl ObjectSink for PackWriter {
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId> {
        let id = ObjectId::of(kind, bytes);
        if bytes.len() > MAX_OBJECT {
            let what = format!("store an object of {} bytes", bytes.len());
            return Err(Error::io(what, io::ErrorKind::FileTooLarge.into()));
        }
        {
            let state = lock(&self.state);
            state.check()?;
            if state.find(&id).is_some() {
                return Ok(id);
            }
        }
        if let Some(known) = self.reader.index().find_reusable(&id)? {
            lock(&self.state).reused.insert(known.pack);
            return Ok(id);
        }
        let full = lock(&self.state).add(kind, id, bytes);
        if let Some(number) = full {
            self.seal(number)?;
        }
        Ok(id)
    }
}

impl ObjectSource for PackWriter {
    fn get(&self, kind: ObjectKind, id: &ObjectId) -> Result<Arc<[u8]>> {
        let state = lock(&self.state);
        let Some(object) = state.find(id).copied() else {
            drop(state);
            return self.reader.get(kind, id);
        };
        let range = object.offset as usize..(object.offset + object.len) as usize;
        match &state.blocks[object.block as usize] {
            _ if object.kind != kind => Err(Error::Corrupt(format!("object {id} is no {kind:?}"))),
            Block::Filling(raw) => Ok(raw[range].into()),
            Block::Sealing(raw) => Ok(raw[range].into()),
            Block::Written { offset, .. } => {
                let at = PackedObject { block: *offset, ..object }.location(self.id);
                drop(state);
                self.reader.read(kind, id, &at)
            }
        }
    }

    fn has(&self, id: &ObjectId) -> Result<bool> {
        if lock(&self.state).find(id).is_some() {
            return Ok(true);
        }
        self.reader.has(id)
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        let state = lock(&self.state);
        if state.is_durable || state.file.is_none() {
            return;
        }
        self.reader.forget(&self.id);
        if let Err(error) = self.reader.storage().remove(&self.id) {
            // No catalog knows it; it goes when the store is opened next.
            tracing::warn!(pack = %self.id, %error, "an unfinished pack could not be removed");
        }
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(failure.error()),
        }
    }

    fn find(&self, id: &ObjectId) -> Option<&PackedObject> {
        let index = self.by_id.find(hash(id), |index| self.objects[*index as usize].id == *id)?;
        self.objects.get(*index as usize)
    }

    /// Adds an object unless it is there; returns the number of a block that is full now.
    fn add(&mut self, kind: ObjectKind, id: ObjectId, bytes: &[u8]) -> Option<usize> {
        // Another thread may have put it meanwhile.
        if self.find(&id).is_some() {
            return None;
        }
        let group = Group::of(kind);
        let full = group.block_len();
        let number = match self.filling[group as usize] {
            Some(number) if bytes.len() < full => number,
            // A big object has a block of its own.
            _ => {
                self.blocks.push(Block::Filling(Vec::with_capacity(bytes.len())));
                self.blocks.len() - 1
            }
        };
        let Block::Filling(raw) = &mut self.blocks[number] else { return None };
        let (offset, len) = (raw.len() as u32, bytes.len() as u32);
        raw.extend_from_slice(bytes);
        let is_full = raw.len() >= full;
        self.objects.push(PackedObject { id, kind, block: number as u64, offset, len });
        let objects = &self.objects;
        self.by_id
            .insert_unique(hash(&id), objects.len() as u32 - 1, |index| hash(&objects[*index as usize].id));
        if bytes.len() < full {
            self.filling[group as usize] = (!is_full).then_some(number);
        }
        is_full.then_some(number)
    }

    /// A place in the file, which is made if there is none yet.
    fn reserve(
        &mut self,
        reader: &ObjectReader,
        id: &PackId,
        len: usize,
    ) -> Result<(Arc<dyn NewPackFile>, u64)> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let file: Arc<dyn NewPackFile> = reader.storage().create(id)?.into();
                // Kept before anything is written, so that it is removed if writing fails.
                self.file = Some(file.clone());
                file.write_at(&header(id), 0).context(|| format!("write pack {id}"))?;
                self.end = HEADER_LEN as u64;
                file
            }
        };
        let offset = self.end;
        self.end += len as u64;
        Ok((file, offset))
    }

    /// All objects and blocks in the order in which they lie in the file; `None` if a block is not in it.
    fn take_sorted(&mut self) -> Option<(Vec<PackedObject>, Vec<IndexedBlock>)> {
        self.by_id = HashTable::new();
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            // A thread that panicked has left one behind.
            let Block::Written { offset, stored_len, raw_len } = *block else { return None };
            blocks.push(IndexedBlock { offset, stored_len, raw_len, objects: 0 });
        }
        let mut objects = std::mem::take(&mut self.objects);
        for object in &mut objects {
            let block = &mut blocks[object.block as usize];
            block.objects += 1;
            object.block = block.offset;
        }
        // Objects of a block were put in its order, and an empty one may share its place with the next.
        objects.sort_by_key(|object| object.block);
        blocks.sort_by_key(|block| block.offset);
        Some((objects, blocks))
    }
}

impl Block {
    /// Takes what was filled, and keeps it readable until it is written.
    fn begin_sealing(&mut self) -> Option<Arc<[u8]>> {
        let Self::Filling(raw) = self else { return None };
        let raw: Arc<[u8]> = std::mem::take(raw).into();
        *self = Self::Sealing(raw.clone());
        Some(raw)
    }
}

impl Failure {
    fn of(error: &Error) -> Self {
        match error {
            Error::NoSpace { what } => Self::NoSpace(what.clone()),
            other => Self::Other(other.to_string()),
        }
    }

    fn error(&self) -> Error {
        match self {
            Self::NoSpace(what) => Error::NoSpace { what: what.clone() },
            Self::Other(what) => Error::io(what.clone(), io::Error::other("the pack is lost")),
        }
    }
}

/// An id is a hash already.
fn hash(id: &ObjectId) -> u64 {
    id.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
