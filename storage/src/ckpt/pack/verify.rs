//! Reading whole packs: to rebuild a catalog, and to find damage.

use super::block::{read, read_block};
use super::layout::{
    HEADER_LEN, Index, IndexChecksum, IndexedBlock, TRAILER_LEN, Trailer, check_header, damaged,
};
use super::{PackFile, PackId, PackStorage, PackedObject};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::ObjectId;

/// What reading every byte of a pack found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackCheck {
    /// Objects in its index.
    pub objects: u64,
    /// The length of its file.
    pub bytes: u64,
    /// One line for each damaged thing; empty means sound.
    pub damage: Vec<String>,
}

/// The objects of a pack, in the order in which they lie there. `Error::Corrupt` if the index is damaged or the pack
/// was not finished.
pub fn read_index(storage: &dyn PackStorage, pack: &PackId) -> Result<Vec<PackedObject>> {
    Ok(load_index(&*storage.open(pack)?, pack)?.objects)
}

/// Reads every byte of a pack and proves every block and object. An error only if the pack cannot be opened. Where the
/// index is damaged the blocks are not read: nothing says any more what should be in them.
pub fn verify(storage: &dyn PackStorage, pack: &PackId) -> Result<PackCheck> {
    let file = storage.open(pack)?;
    let bytes = file.size().context(|| format!("read pack {pack}"))?;
    let mut check = PackCheck { bytes, ..PackCheck::default() };
    let index = match load_index(&*file, pack) {
        Ok(index) => index,
        Err(error) => {
            check.damage.push(line(error));
            return Ok(check);
        }
    };
    check.objects = index.objects.len() as u64;
    let mut objects = index.objects.as_slice();
    for block in &index.blocks {
        let (these, rest) = objects.split_at(block.objects as usize);
        objects = rest;
        if let Err(error) = check_block(&*file, pack, block, these) {
            check.damage.push(format!("{} ({} objects are in it)", line(error), these.len()));
        }
    }
    Ok(check)
}

/// What a report says of an error.
fn line(error: Error) -> String {
    match error {
        Error::Corrupt(what) => what,
        other => other.to_string(),
    }
}

fn check_block(
    file: &dyn PackFile,
    pack: &PackId,
    block: &IndexedBlock,
    objects: &[PackedObject],
) -> Result<()> {
    let (header, raw) = read_block(file, pack, block.offset)?;
    if (header.stored_len, header.raw_len) != (block.stored_len, block.raw_len) {
        return Err(damaged(pack, format_args!("the block at {} is not the one in the index", block.offset)));
    }
    let is_sound = |object: &&PackedObject| {
        let from = object.offset as usize;
        ObjectId::of(object.kind, &raw[from..from + object.len as usize]) == object.id
    };
    match objects.iter().find(|object| !is_sound(object)) {
        Some(object) => Err(damaged(pack, format_args!("object {} is not what its id says", object.id))),
        None => Ok(()),
    }
}

/// Reads header, trailer and index and proves them.
fn load_index(file: &dyn PackFile, pack: &PackId) -> Result<Index> {
    let mut header = [0; HEADER_LEN];
    read(file, pack, &mut header, 0)?;
    check_header(&header, pack)?;

    let size = file.size().context(|| format!("read pack {pack}"))?;
    let unfinished = || damaged(pack, "it has no end: it was not finished, or cut short");
    let trailer_at = size.checked_sub(TRAILER_LEN as u64).ok_or_else(unfinished)?;
    let mut trailer = [0; TRAILER_LEN];
    read(file, pack, &mut trailer, trailer_at)?;
    let trailer = Trailer::decode(&trailer, size).ok_or_else(unfinished)?;

    let bad = || damaged(pack, "its index is damaged");
    let mut bytes = vec![0; usize::try_from(trailer.index_len).map_err(|_| bad())?];
    read(file, pack, &mut bytes, trailer.index_offset)?;
    let mut checksum = IndexChecksum::new(pack);
    checksum.update(&bytes);
    if checksum.finish(trailer.index_offset, trailer.index_len) != trailer.checksum {
        return Err(bad());
    }
    match Index::decode(&bytes) {
        Ok((index, end)) if end == trailer.index_offset => Ok(index),
        _ => Err(bad()),
    }
}
