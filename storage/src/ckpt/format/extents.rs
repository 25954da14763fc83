//! A file in pieces.

use super::bytes::{Decoder, Encoder, Malformed};
use super::id::{ObjectId, ObjectKind};
use super::{ObjectSource, damaged};
use crate::ckpt::error;

/// One piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes that read as zero and take no space.
    Hole(u64),
    /// So many bytes, in one `Data` object.
    Data(u64, ObjectId),
}

/// The pieces of a file in order, none of them empty; their lengths add up to its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents(pub Vec<Extent>);

impl Extents {
    /// The object's bytes.
    pub fn encode(&self) -> Vec<u8> {
        debug_assert!(self.size().is_some(), "what is written could not be read again");
        let mut out = Encoder::new();
        out.uint(self.0.len() as u64);
        for extent in &self.0 {
            match extent {
                Extent::Hole(len) => out.byte(0).uint(*len),
                Extent::Data(len, id) => out.byte(1).uint(*len).id(id),
            };
        }
        out.finish()
    }

    /// Reads an object's bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Decoder::new("extents", bytes);
        let mut extents = Vec::new();
        for _ in 0..input.uint()? {
            extents.push(match input.byte()? {
                0 => Extent::Hole(input.uint()?),
                1 => Extent::Data(input.uint()?, input.id()?),
                _ => return Err(input.malformed()),
            });
        }
        input.end()?;
        let extents = Self(extents);
        if extents.size().is_some() { Ok(extents) } else { Err(input.malformed()) }
    }

    /// Reads the object.
    pub fn load(source: &dyn ObjectSource, id: &ObjectId) -> error::Result<Self> {
        Self::decode(&source.get(ObjectKind::Extents, id)?).map_err(damaged(id))
    }

    /// The size of the file; `None` if a piece is empty or no file can be that long.
    pub fn size(&self) -> Option<u64> {
        self.0.iter().try_fold(0u64, |sum, extent| match extent {
            Extent::Hole(0) | Extent::Data(0, _) => None,
            Extent::Hole(len) | Extent::Data(len, _) => sum.checked_add(*len),
        })
    }
}
