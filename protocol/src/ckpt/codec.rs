//! The only module that knows bincode.
//!
//! bincode 1.3.3 *is* this wire: fixed-width little-endian integers, 64-bit lengths, 32-bit variant indices. Its
//! defaults differ between its entry points, so every option is spelt out here: fixed-width integers, bytes after
//! a value ignored (newer clients append fields), and a limit on what a length may announce. It decodes from
//! slices only, because its readers allocate what a length announces before the data is there.

use std::io::Write;

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A payload that is not a message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

/// A message that does not fit the peer's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("message exceeds the limit of {limit} bytes")]
pub struct EncodeError {
    /// That limit.
    pub limit: u32,
}

fn options(limit: u32) -> impl Options {
    bincode::DefaultOptions::new().with_fixint_encoding().allow_trailing_bytes().with_limit(u64::from(limit))
}

/// How many bytes `value` takes, or that they exceed `limit`.
pub(super) fn encoded_len(value: &impl Serialize, limit: u32) -> Result<u32, EncodeError> {
    let len = options(limit).serialized_size(value).ok().and_then(|len| u32::try_from(len).ok());
    len.ok_or(EncodeError { limit })
}

/// Writes `value` to `out`, which takes everything.
pub(super) fn encode(value: &impl Serialize, limit: u32, out: impl Write) -> Result<(), EncodeError> {
    options(limit).serialize_into(out, value).map_err(|_| EncodeError { limit })
}

/// Reads a value from the front of `payload`.
pub(super) fn decode<T: DeserializeOwned>(payload: &[u8], limit: u32) -> Result<T, DecodeError> {
    options(limit).deserialize(payload).map_err(|error| DecodeError(describe(*error)))
}

/// In the words of the protocol. Where bincode's own texts quote raw input, these do not; a value that its type
/// refuses is quoted as the text it is.
fn describe(error: bincode::ErrorKind) -> String {
    use bincode::ErrorKind;
    match error {
        ErrorKind::Io(_) => "payload is too short".to_owned(),
        ErrorKind::InvalidUtf8Encoding(_) => "text is not UTF-8".to_owned(),
        ErrorKind::InvalidBoolEncoding(byte) => format!("{byte} is not a bool"),
        ErrorKind::InvalidTagEncoding(tag) => format!("{tag} is not an option tag"),
        ErrorKind::SizeLimit => "a length exceeds the frame".to_owned(),
        ErrorKind::Custom(text) => text,
        other => other.to_string(),
    }
}
