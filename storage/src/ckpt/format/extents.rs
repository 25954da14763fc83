//! A file in pieces.

use super::bytes::{Decoder, Encoder, Malformed};
use super::id::ObjectId;

/// One piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes that read as zero and take no space.
    Hole(u64),
    /// So many bytes, in one `Data` object.
    Data(u64, ObjectId),
}

/// The pieces of a file in order; their lengths add up to its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents(pub Vec<Extent>);

impl Extents {
    /// The object's bytes.
    pub fn encode(&self) -> Vec<u8> {
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
        Ok(Self(extents))
    }
}
