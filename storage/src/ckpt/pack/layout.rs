//! How a pack's bytes look.
//!
//! ```text
//! header   magic, format version, the pack's id
//! blocks   each: encoding, raw length, stored length, checksum of these and the payload; the payload
//! index    the blocks (stored length, raw length, number of objects), then the objects in the order in which
//!          they lie in the blocks (id, length and kind)
//! trailer  where the index is, checksum of header, index and this, magic
//! ```
//!
//! Fixed-width integers are little-endian, those of the index as in [`Encoder`]. Where a block and an object begin
//! follows from the lengths before them. Every byte is under a checksum or compared.

use super::{PackId, PackedObject};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::{Decoder, Encoder, FORMAT_VERSION, Malformed, ObjectKind};

const MAGIC: &[u8; 8] = b"cofpack\n";
const END_MAGIC: &[u8; 8] = b"cofpend\n";
pub(super) const HEADER_LEN: usize = 32;
pub(super) const BLOCK_HEADER_LEN: usize = 28;
pub(super) const TRAILER_LEN: usize = 40;

/// The longest object, and so the longest block: a longer file is cut.
pub(super) const MAX_OBJECT: usize = 1 << 30;

/// BLAKE3, cut to 128 bits: it finds damage, while an object's id proves it.
pub(super) type Checksum = [u8; 16];

/// The first bytes of a pack.
pub(super) fn header(pack: &PackId) -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[16..].copy_from_slice(&pack.0);
    bytes
}

pub(super) fn check_header(bytes: &[u8; HEADER_LEN], pack: &PackId) -> Result<()> {
    let version = u32_at(bytes, 8);
    if bytes[..8] == *MAGIC && version > FORMAT_VERSION {
        return Err(Error::NewerFormat {
            what: format!("pack {pack}"),
            found: version,
            known: FORMAT_VERSION,
        });
    }
    if *bytes == header(pack) { Ok(()) } else { Err(damaged(pack, "its header is not that of this pack")) }
}

pub(super) fn damaged(pack: &PackId, what: impl std::fmt::Display) -> Error {
    Error::Corrupt(format!("pack {pack}: {what}"))
}

/// How a block's payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As it is.
    Raw = 0,
    /// One zstd frame.
    Zstd = 1,
}

/// What stands before a block's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) encoding: Encoding,
    pub(super) raw_len: u32,
    pub(super) stored_len: u32,
    checksum: Checksum,
}

impl BlockHeader {
    pub(super) fn new(encoding: Encoding, raw_len: u32, payload: &[u8]) -> Self {
        let mut header = Self { encoding, raw_len, stored_len: payload.len() as u32, checksum: [0; 16] };
        header.checksum = header.checksum_of(payload);
        header
    }

    /// Whether this is the payload that was written.
    pub(super) fn proves(&self, payload: &[u8]) -> bool {
        self.checksum == self.checksum_of(payload)
    }

    fn checksum_of(&self, payload: &[u8]) -> Checksum {
        checksum(&[&self.encode()[..12], payload])
    }

    pub(super) fn encode(&self) -> [u8; BLOCK_HEADER_LEN] {
        let mut bytes = [0; BLOCK_HEADER_LEN];
        bytes[..4].copy_from_slice(&(self.encoding as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.raw_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.stored_len.to_le_bytes());
        bytes[12..].copy_from_slice(&self.checksum);
        bytes
    }

    /// `None` if no block begins so.
    pub(super) fn decode(bytes: &[u8; BLOCK_HEADER_LEN]) -> Option<Self> {
        let encoding = match u32_at(bytes, 0) {
            0 => Encoding::Raw,
            1 => Encoding::Zstd,
            _ => return None,
        };
        let (raw_len, stored_len) = (u32_at(bytes, 4), u32_at(bytes, 8));
        let fits = match encoding {
            Encoding::Raw => raw_len == stored_len,
            // Stored so because it is shorter.
            Encoding::Zstd => stored_len < raw_len,
        };
        let checksum = *bytes.last_chunk()?;
        (fits && raw_len as usize <= MAX_OBJECT).then_some(Self { encoding, raw_len, stored_len, checksum })
    }
}

/// A block as the index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexedBlock {
    /// Where it begins.
    pub(super) offset: u64,
    /// Bytes of its payload.
    pub(super) stored_len: u32,
    /// Bytes of its objects.
    pub(super) raw_len: u32,
    /// How many objects it has.
    pub(super) objects: u32,
}

/// What a pack has in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) blocks: Vec<IndexedBlock>,
    /// In the order in which they lie in the blocks.
    pub(super) objects: Vec<PackedObject>,
}

pub(super) fn encode_block(block: &IndexedBlock, out: &mut Encoder) {
    out.uint(block.stored_len.into()).uint(block.raw_len.into()).uint(block.objects.into());
}

pub(super) fn encode_object(object: &PackedObject, out: &mut Encoder) {
    out.id(&object.id).uint(u64::from(object.len) << 3 | object.kind as u64);
}

impl Index {
    /// Reads the index's bytes; also says where it expects itself to begin.
    pub(super) fn decode(bytes: &[u8]) -> std::result::Result<(Self, u64), Malformed> {
        let mut input = Decoder::new("pack index", bytes);
        let mut blocks = Vec::new();
        let mut offset = HEADER_LEN as u64;
        for _ in 0..input.uint()? {
            let (stored_len, raw_len, objects) = (input.uint32()?, input.uint32()?, input.uint32()?);
            blocks.push(IndexedBlock { offset, stored_len, raw_len, objects });
            offset += BLOCK_HEADER_LEN as u64 + u64::from(stored_len);
        }
        let mut objects = Vec::new();
        for block in &blocks {
            let mut offset = 0u32;
            for _ in 0..block.objects {
                let (id, tagged) = (input.id()?, input.uint()?);
                let kind = ObjectKind::from_byte((tagged & 7) as u8).ok_or(input.malformed())?;
                let len = u32::try_from(tagged >> 3).map_err(|_| input.malformed())?;
                objects.push(PackedObject { id, kind, block: block.offset, offset, len });
                offset = offset.checked_add(len).ok_or(input.malformed())?;
            }
            if offset != block.raw_len || block.objects == 0 {
                return Err(input.malformed());
            }
        }
        input.end()?;
        Ok((Self { blocks, objects }, offset))
    }
}

/// The last bytes of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) index_offset: u64,
    pub(super) index_len: u64,
    pub(super) checksum: Checksum,
}

impl Trailer {
    pub(super) fn encode(&self) -> [u8; TRAILER_LEN] {
        let mut bytes = [0; TRAILER_LEN];
        bytes[..8].copy_from_slice(&self.index_offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.index_len.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.checksum);
        bytes[32..].copy_from_slice(END_MAGIC);
        bytes
    }

    /// `None` if no pack of `pack_len` bytes ends so.
    pub(super) fn decode(bytes: &[u8; TRAILER_LEN], pack_len: u64) -> Option<Self> {
        let (index_offset, index_len) = (u64_at(bytes, 0), u64_at(bytes, 8));
        let end = index_offset.checked_add(index_len)?.checked_add(TRAILER_LEN as u64)?;
        let checksum = *bytes[..32].last_chunk()?;
        (end == pack_len && bytes[32..] == *END_MAGIC).then_some(Self { index_offset, index_len, checksum })
    }
}

/// The checksum of a trailer, fed with the index piece by piece.
pub(super) struct IndexChecksum(blake3::Hasher);

impl IndexChecksum {
    pub(super) fn new(pack: &PackId) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&header(pack));
        Self(hasher)
    }

    pub(super) fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(super) fn finish(mut self, index_offset: u64, index_len: u64) -> Checksum {
        self.0.update(&index_offset.to_le_bytes());
        self.0.update(&index_len.to_le_bytes());
        cut(&self.0.finalize())
    }
}

fn checksum(parts: &[&[u8]]) -> Checksum {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    cut(&hasher.finalize())
}

fn cut(hash: &blake3::Hash) -> Checksum {
    let mut cut = [0; 16];
    cut.copy_from_slice(&hash.as_bytes()[..16]);
    cut
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}
