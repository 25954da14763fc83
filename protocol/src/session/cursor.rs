//! Where a list goes on.

use std::fmt;

use super::id::SessionId;

/// The last entry that a page looked at. Listing goes on behind it, whether it still exists or not.
///
/// On the wire it is opaque: `v1:` time `:` id; where all workspaces are listed, the directory stands between them,
/// since two workspaces may have the same id at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// The file's time, milliseconds since 1970.
    pub modified_ms: u64,
    /// The directory of its workspace, where all are listed.
    pub scope: Option<String>,
    /// The session.
    pub id: SessionId,
}

/// A text that is no cursor. Holds the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid session pagination cursor: {0}")]
pub struct InvalidCursor(pub String);

impl ListCursor {
    /// Reads a cursor.
    pub fn parse(text: &str) -> Result<Self, InvalidCursor> {
        todo!("{text}")
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}
