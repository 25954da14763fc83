//! The id of a session.

use std::fmt;

use serde::Serialize;

/// A UUID in its canonical form: 36 characters, lowercase, hyphenated; of any version, the nil UUID included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionId(String);

/// A text that is no session's id. Holds the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid session ID: {0}")]
pub struct InvalidSessionId(pub String);

impl SessionId {
    /// Checks and takes an id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidSessionId> {
        let text = text.into();
        let canonical = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            });
        if canonical { Ok(Self(text)) } else { Err(InvalidSessionId(text)) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
