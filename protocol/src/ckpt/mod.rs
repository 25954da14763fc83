//! The ws-ckpt protocol: a 4-byte little-endian length, then one bincode enum.
//!
//! The order of the variants *is* the wire: bincode writes an enum by its index. New ones may only be added at
//! the end, and the tests hold every one of them to frozen bytes.

mod codec;
mod frame;
mod ids;
mod request;
mod response;
mod retention;
mod timestamp;

pub use codec::{DecodeError, EncodeError};
pub use frame::{Frame, FrameCodec, FrameError, Message, read_message, write_message};
pub use ids::{InvalidId, SnapshotId, WorkspaceId};
pub use request::WsCkptRequest;
pub use response::{
    ConfigReport, DiffEntry, DiffKind, SnapshotEntry, SnapshotMeta, StatusReport, WorkspaceInfo,
    WsCkptErrorCode, WsCkptResponse,
};
pub use retention::{CleanupRetention, InvalidRetention, RetentionAge};
pub use timestamp::{InvalidTimestamp, Timestamp};

/// The version of these bytes. It changes when, and only when, a frozen frame does.
pub const WIRE_VERSION: u32 = 1;
