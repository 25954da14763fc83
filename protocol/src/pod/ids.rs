//! Identifiers and path pieces of the protocol, as types that cannot hold a bad one.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A task's record id, chosen by the host; also the name of its directory. At most 160 characters and 255 bytes,
/// usable as a file name on every platform (spec §7).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

/// Text that cannot be a task's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("taskId cannot be used: it must be a file name of 1 to 160 characters")]
pub struct InvalidTaskId;

impl TaskId {
    /// Checks and takes an id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidTaskId> {
        let text = text.into();
        match text.is_empty() || text.chars().count() > 160 || text.contains(['/', '\\', '\0']) {
            true => Err(InvalidTaskId),
            false => Ok(Self(text)),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TaskId {
    type Error = InvalidTaskId;
    fn try_from(text: String) -> Result<Self, InvalidTaskId> {
        Self::new(text)
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}

impl Borrow<str> for TaskId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who holds a task, chosen by the host afresh each time it takes one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(pub String);

/// An export record's id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExportId(pub String);

/// Where below the sandbox root a task's directory is made: at most 8 segments of at most 64 characters (spec §7).
/// Empty: directly in the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subdir(Vec<String>);

impl Subdir {
    /// Checks and takes a subdirectory; `/` and `\` both separate. The error says which rule it breaks.
    pub fn new(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::default()),
            text => Ok(Self(text.split(['/', '\\']).map(str::to_owned).collect())),
        }
    }

    /// The segments, outermost first.
    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Subdir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}
