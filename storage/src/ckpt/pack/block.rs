//! Compressing blocks, and reading and proving them.

use std::io;
use std::sync::{Arc, Mutex};

use super::layout::{BLOCK_HEADER_LEN, BlockHeader, Encoding, damaged};
use super::{PackFile, PackId, lock};
use crate::ckpt::error::{Context, Error, Result};

const ZSTD_LEVEL: i32 = 3;

/// Turns raw blocks into stored ones. Keeps its working memory for the next block.
#[derive(Default)]
pub(super) struct Sealer {
    idle: Mutex<Vec<zstd::bulk::Compressor<'static>>>,
}

impl Sealer {
    /// A block's header and payload.
    pub(super) fn seal(&self, raw: &[u8]) -> Result<Vec<u8>> {
        let what = || "compress a block".to_owned();
        let idle = lock(&self.idle).pop();
        let mut compressor = match idle {
            Some(compressor) => compressor,
            None => zstd::bulk::Compressor::new(ZSTD_LEVEL).context(what)?,
        };
        let mut block = vec![0; BLOCK_HEADER_LEN + zstd::zstd_safe::compress_bound(raw.len())];
        let len = compressor.compress_to_buffer(raw, &mut block[BLOCK_HEADER_LEN..]).context(what)?;
        lock(&self.idle).push(compressor);

        let encoding = if len < raw.len() { Encoding::Zstd } else { Encoding::Raw };
        if encoding == Encoding::Raw {
            block[BLOCK_HEADER_LEN..][..raw.len()].copy_from_slice(raw);
        }
        block.truncate(BLOCK_HEADER_LEN + len.min(raw.len()));
        let header = BlockHeader::new(encoding, raw.len() as u32, &block[BLOCK_HEADER_LEN..]);
        block[..BLOCK_HEADER_LEN].copy_from_slice(&header.encode());
        Ok(block)
    }
}

/// Reads the block at `offset`, proves it by its checksum, and decompresses it.
pub(super) fn read_block(
    file: &dyn PackFile,
    pack: &PackId,
    offset: u64,
) -> Result<(BlockHeader, Arc<[u8]>)> {
    let bad = |what: &str| damaged(pack, format_args!("the block at {offset} {what}"));
    let mut header = [0; BLOCK_HEADER_LEN];
    read(file, pack, &mut header, offset)?;
    let header = BlockHeader::decode(&header).ok_or_else(|| bad("has a damaged header"))?;

    let payload_at = offset + BLOCK_HEADER_LEN as u64;
    // Nothing is allocated for a length that a damaged header invented.
    let size = file.size().context(|| format!("read pack {pack}"))?;
    if size < payload_at + u64::from(header.stored_len) {
        return Err(bad("is longer than the file"));
    }
    let mut payload = vec![0; header.stored_len as usize];
    read(file, pack, &mut payload, payload_at)?;
    if !header.proves(&payload) {
        return Err(bad("does not match its checksum"));
    }
    let raw = match header.encoding {
        Encoding::Raw => payload,
        Encoding::Zstd => zstd::bulk::decompress(&payload, header.raw_len as usize)
            .ok()
            .filter(|raw| raw.len() == header.raw_len as usize)
            .ok_or_else(|| bad("cannot be decompressed"))?,
    };
    Ok((header, raw.into()))
}

/// Fills `buffer` from a pack.
pub(super) fn read(file: &dyn PackFile, pack: &PackId, buffer: &mut [u8], offset: u64) -> Result<()> {
    file.read_at(buffer, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(pack, "the file ends early"),
        _ => Error::io(format!("read pack {pack}"), error),
    })
}
