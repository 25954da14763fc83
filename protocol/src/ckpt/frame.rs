//! Frames: where one message ends and the next begins, for an event loop and for a blocking stream.
//!
//! No length is believed before its bytes have arrived: what a peer merely announces costs no memory.

use std::io::{self, Read, Write};
use std::marker::PhantomData;

use bytes::{Buf, BufMut, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::codec::{Decoder, Encoder};

use super::codec::{self, DecodeError, EncodeError};
use super::{WsCkptRequest, WsCkptResponse};

/// Bytes of the length before each payload.
const PREFIX: usize = 4;

/// Room for what has not arrived yet: most requests come whole in one read.
const FIRST_ROOM: usize = 1024;

/// What travels in a frame of its own.
pub trait Message: Serialize + DeserializeOwned {
    /// The most bytes its payload may have.
    const LIMIT: u32;
}

impl Message for WsCkptRequest {
    const LIMIT: u32 = 16 << 20;
}

impl Message for WsCkptResponse {
    const LIMIT: u32 = 64 << 20;
}

/// Why a stream of frames cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length before a payload exceeds the limit; the payload was not read.
    #[error("Frame too large: {length} bytes (max {max})")]
    TooLarge {
        /// The length announced.
        length: u32,
        /// The limit.
        max: u32,
    },
    /// The stream ended, but not between two frames.
    #[error("connection closed inside a frame")]
    Truncated,
    /// A whole frame holds something else than a message.
    #[error("malformed frame: {0}")]
    Malformed(#[from] DecodeError),
    /// Nothing was written: the message exceeds the limit.
    #[error(transparent)]
    Unsendable(#[from] EncodeError),
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One frame off a stream. Where a frame's end is known, a bad payload does not end the stream.
#[derive(Debug)]
pub enum Frame<M> {
    /// A message.
    Message(M),
    /// Something else, of known length; the next frame is not affected.
    Malformed(DecodeError),
}

/// Takes frames of `In` off a buffer and puts frames of `Out` into one. Does no I/O itself.
#[derive(Debug)]
pub struct FrameCodec<In, Out> {
    directions: PhantomData<fn(In) -> Out>,
}

impl<In, Out> FrameCodec<In, Out> {
    /// A codec; it has no state besides the buffers it is given.
    pub fn new() -> Self {
        Self { directions: PhantomData }
    }
}

impl<In, Out> Default for FrameCodec<In, Out> {
    fn default() -> Self {
        Self::new()
    }
}

impl<In: Message, Out> Decoder for FrameCodec<In, Out> {
    type Item = Frame<In>;
    type Error = FrameError;

    fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame<In>>, FrameError> {
        let Some(prefix) = buffer.first_chunk::<PREFIX>() else {
            buffer.reserve(FIRST_ROOM);
            return Ok(None);
        };
        let length = checked_length::<In>(*prefix)?;
        let missing = (PREFIX + length).saturating_sub(buffer.len());
        if missing > 0 {
            // Room grows with what has arrived, not with what was announced.
            buffer.reserve(missing.min(buffer.len().max(FIRST_ROOM)));
            return Ok(None);
        }
        buffer.advance(PREFIX);
        let payload = buffer.split_to(length);
        Ok(Some(match codec::decode(&payload, In::LIMIT) {
            Ok(message) => Frame::Message(message),
            Err(error) => Frame::Malformed(error),
        }))
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame<In>>, FrameError> {
        match self.decode(buffer)? {
            None if !buffer.is_empty() => Err(FrameError::Truncated),
            frame => Ok(frame),
        }
    }
}

impl<In, Out: Message> Encoder<&Out> for FrameCodec<In, Out> {
    type Error = FrameError;

    /// Appends one frame, or, if the message exceeds the limit, nothing.
    fn encode(&mut self, message: &Out, buffer: &mut BytesMut) -> Result<(), FrameError> {
        let length = codec::encoded_len(message, Out::LIMIT)?;
        buffer.reserve(PREFIX + length as usize);
        buffer.put_u32_le(length);
        Ok(codec::encode(message, Out::LIMIT, buffer.writer())?)
    }
}

/// Writes one frame. Nothing is written of a message that exceeds the limit.
pub fn write_message<M: Message>(stream: &mut impl Write, message: &M) -> Result<(), FrameError> {
    let length = codec::encoded_len(message, M::LIMIT)?;
    let mut frame = Vec::with_capacity(PREFIX + length as usize);
    frame.extend_from_slice(&length.to_le_bytes());
    codec::encode(message, M::LIMIT, &mut frame)?;
    stream.write_all(&frame)?;
    Ok(stream.flush()?)
}

/// Reads one frame; `None` if the stream ends before its first byte. The payload behind a length over the limit is
/// left unread: the stream is of no more use then.
pub fn read_message<M: Message>(stream: &mut impl Read) -> Result<Option<M>, FrameError> {
    let mut prefix = Vec::with_capacity(PREFIX);
    stream.by_ref().take(PREFIX as u64).read_to_end(&mut prefix)?;
    let prefix = match prefix.first_chunk::<PREFIX>() {
        Some(prefix) => *prefix,
        None if prefix.is_empty() => return Ok(None),
        None => return Err(FrameError::Truncated),
    };
    let length = checked_length::<M>(prefix)?;
    let mut payload = Vec::new();
    stream.by_ref().take(length as u64).read_to_end(&mut payload)?;
    if payload.len() < length {
        return Err(FrameError::Truncated);
    }
    Ok(Some(codec::decode(&payload, M::LIMIT)?))
}

fn checked_length<M: Message>(prefix: [u8; PREFIX]) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(prefix);
    if length > M::LIMIT {
        return Err(FrameError::TooLarge { length, max: M::LIMIT });
    }
    Ok(length as usize)
}
