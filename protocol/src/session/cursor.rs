//! Where a list goes on.

use std::fmt;

use super::id::SessionId;

/// The last entry that a page looked at. Listing goes on behind it, whether it still exists or not.
///
/// On the wire it is opaque: `v1:` time `:` id; where all workspaces are listed, `v2:` time `:` directory `:` id, since
/// two workspaces may have the same id at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// The file's time, milliseconds since 1970.
    pub modified_ms: u64,
    /// The directory of its workspace, 24 lowercase hexadecimal digits, where all are listed.
    pub scope: Option<String>,
    /// The session.
    pub id: SessionId,
}

/// A text that is no cursor. Holds the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid session pagination cursor: {0}")]
pub struct InvalidCursor(pub String);

/// How many hexadecimal digits the name of a workspace's directory has.
const SCOPE_DIGITS: usize = 24;

impl ListCursor {
    /// Reads a cursor.
    pub fn parse(text: &str) -> Result<Self, InvalidCursor> {
        let parts: Vec<&str> = text.splitn(5, ':').collect();
        let read = match parts[..] {
            ["v1", modified, id] => Self::of(modified, None, id),
            ["v2", modified, scope, id] => Self::of(modified, Some(scope), id),
            _ => None,
        };
        read.ok_or_else(|| InvalidCursor(text.to_owned()))
    }

    fn of(modified: &str, scope: Option<&str>, id: &str) -> Option<Self> {
        // `from_str_radix` takes a sign.
        let modified = Some(modified).filter(|digits| !digits.starts_with('+'))?;
        let modified_ms = u64::from_str_radix(modified, 16).ok()?;
        if scope.is_some_and(|scope| !is_scope(scope)) {
            return None;
        }
        Some(Self { modified_ms, scope: scope.map(str::to_owned), id: SessionId::new(id).ok()? })
    }
}

fn is_scope(text: &str) -> bool {
    text.len() == SCOPE_DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            None => write!(f, "v1:{:016x}:{}", self.modified_ms, self.id),
            Some(scope) => write!(f, "v2:{:016x}:{scope}:{}", self.modified_ms, self.id),
        }
    }
}
