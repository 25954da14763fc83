//! The one binary encoding of everything the store writes: LEB128 integers, length-prefixed byte strings.

use super::id::ObjectId;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub struct Malformed(pub &'static str);

/// Appends values to a buffer.
#[derive(Debug, Default)]
pub struct Encoder {
    buffer: Vec<u8>,
}

/// Takes values from a slice. Every length is checked against what is left before anything is allocated.
#[derive(Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl Encoder {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// An unsigned integer: seven bits a byte, lowest first.
    pub fn uint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.buffer.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.push(value as u8);
        self
    }

    /// A signed integer: zigzag, then as [`Encoder::uint`].
    pub fn int(&mut self, value: i64) -> &mut Self {
        self.uint(((value << 1) ^ (value >> 63)) as u64)
    }

    /// One byte.
    pub fn byte(&mut self, value: u8) -> &mut Self {
        self.buffer.push(value);
        self
    }

    /// A byte string with its length before it.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.uint(value.len() as u64);
        self.raw(value)
    }

    /// Bytes as they are; the reader knows how many.
    pub fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(value);
        self
    }

    /// An object id.
    pub fn id(&mut self, value: &ObjectId) -> &mut Self {
        self.raw(&value.0)
    }

    /// What has been written.
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer
    }

    /// What has been written, taken.
    pub fn finish(self) -> Vec<u8> {
        self.buffer
    }

    /// Forgets what has been written and keeps the allocation.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }
}

impl<'a> Decoder<'a> {
    /// Reads from `bytes`; errors name `what`.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, what }
    }

    /// The error for this input.
    pub fn malformed(&self) -> Malformed {
        Malformed(self.what)
    }

    /// An unsigned integer.
    pub fn uint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds the one bit that is left, and a value has one encoding only.
            if (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                return Err(self.malformed());
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.malformed())
    }

    /// An unsigned integer that fits 32 bits.
    pub fn uint32(&mut self) -> Result<u32, Malformed> {
        self.uint()?.try_into().map_err(|_| self.malformed())
    }

    /// A signed integer.
    pub fn int(&mut self) -> Result<i64, Malformed> {
        let raw = self.uint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed(self.what))?;
        self.rest = rest;
        Ok(*first)
    }

    /// A byte string.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.uint()?;
        self.raw(usize::try_from(len).map_err(|_| self.malformed())?)
    }

    /// So many bytes.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed(self.what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// An object id.
    pub fn id(&mut self) -> Result<ObjectId, Malformed> {
        let raw = self.raw(32)?;
        raw.try_into().map(ObjectId).map_err(|_| self.malformed())
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if anything is left.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}
