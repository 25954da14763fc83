//! The identifiers of the protocol, as types that cannot hold a bad one.

use std::fmt;

/// A workspace's name on the wire: `ws-` and six hexadecimal digits, with `-2`, `-3`, … after it where two paths
/// would share them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceId(String);

/// A snapshot's name, chosen by the client and unique within its workspace: 1 to 255 bytes, no control character,
/// no `/`, neither `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(String);

/// Text that cannot be an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// Not of the form `ws-xxxxxx` or `ws-xxxxxx-n`.
    #[error("not a workspace id")]
    Workspace,
    /// Empty.
    #[error("snapshot id is empty; give it a name of 1 to 255 bytes")]
    Empty,
    /// Longer than [`SnapshotId::MAX`].
    #[error("snapshot id has {0} bytes; 255 is the most")]
    TooLong(usize),
    /// Holds a control character or `/`, or is `.` or `..`.
    #[error("snapshot id may hold neither '/' nor control characters, nor be '.' or '..'")]
    Forbidden,
}

impl WorkspaceId {
    /// The id whose six digits are the first three bytes of `digest`; `nth` counts from 1 among the paths that
    /// share them.
    pub fn from_digest(digest: [u8; 3], nth: u32) -> Self {
        let [a, b, c] = digest;
        match nth {
            0 | 1 => Self(format!("ws-{a:02x}{b:02x}{c:02x}")),
            n => Self(format!("ws-{a:02x}{b:02x}{c:02x}-{n}")),
        }
    }

    /// Checks and takes an id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        let well_formed = text.strip_prefix("ws-").is_some_and(|rest| {
            let (hex, suffix) = rest.split_at_checked(6).unwrap_or(("", ""));
            hex.len() == 6
                && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
                && (suffix.is_empty()
                    || suffix.strip_prefix('-').is_some_and(|n| {
                        !n.is_empty() && !n.starts_with('0') && n.bytes().all(|b| b.is_ascii_digit())
                    }))
        });
        if well_formed { Ok(Self(text)) } else { Err(InvalidId::Workspace) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SnapshotId {
    /// The most bytes an id has.
    pub const MAX: usize = 255;

    /// Checks and takes an id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        if text.is_empty() {
            Err(InvalidId::Empty)
        } else if text.len() > Self::MAX {
            Err(InvalidId::TooLong(text.len()))
        } else if text == "." || text == ".." || text.chars().any(|c| c == '/' || c.is_control()) {
            Err(InvalidId::Forbidden)
        } else {
            Ok(Self(text))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_id_is_free_text_but_never_a_path() {
        for good in ["a", "msg1-step0", "before the refactor", "-rf", "检查点 ✓", "..."] {
            assert!(SnapshotId::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "../../x", "/abs", "a\nb", "a\0", "\u{7f}", "\u{85}"] {
            assert!(SnapshotId::new(bad).is_err(), "{bad:?}");
        }
        assert!(SnapshotId::new("x".repeat(255)).is_ok());
        assert_eq!(SnapshotId::new("x".repeat(256)), Err(InvalidId::TooLong(256)));
    }

    #[test]
    fn a_workspace_id_has_six_hexadecimal_digits() {
        assert_eq!(WorkspaceId::from_digest([0x6d, 0x5a, 0xaa], 1).as_str(), "ws-6d5aaa");
        for good in ["ws-6d5aaa", "ws-6d5aaa-2", "ws-000000-10"] {
            assert!(WorkspaceId::new(good).is_ok(), "{good}");
        }
        for bad in
            ["", "ws-", "ws-6d5aa", "ws-6D5AAA", "ws-6d5aaag", "ws-6d5aaa-", "ws-6d5aaa-02", "ws-é5aaaa"]
        {
            assert!(WorkspaceId::new(bad).is_err(), "{bad}");
        }
    }
}
