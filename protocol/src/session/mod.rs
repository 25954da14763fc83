//! Sessions: the stored history of an agent's conversation, the one-shot management protocol, and the headless line
//! mode (spec: *cosh-core Session Management JSON Protocol*).
//!
//! - [`SessionRequest`], [`SessionResponse`]: one JSON request on stdin, one JSON line on stdout;
//! - [`Envelope`]: what a session's file holds;
//! - [`headless`]: the JSON lines of a running conversation.

mod compaction;
mod cursor;
mod envelope;
mod error;
pub mod headless;
mod id;
pub mod limits;
mod message;
mod object;
mod request;
mod response;
mod text;

pub use compaction::{Compaction, TokenCount, TokenSource};
pub use cursor::{InvalidCursor, ListCursor};
pub use envelope::{Defect, Envelope, SCHEMA_VERSION, TooLarge};
pub use error::{SessionError, SessionErrorCode};
pub use id::{InvalidSessionId, SessionId};
pub use message::{Block, Content, Message, ToolCall, ToolFunction};
pub use request::{
    ClearRequest, InspectRequest, ListRequest, OutOfBounds, PrepareClearAllRequest, SessionRequest,
    UnreadableRequest, ValidateRequest,
};
pub use response::{Health, SessionData, SessionResponse, Skipped, Summary};
pub use text::{bounded, preview};

/// The version of these lines and files, additions included. It changes when, and only when, a golden does.
pub const WIRE_VERSION: u32 = 1;
