//! Identifiers and path pieces of the protocol, as types that cannot hold a bad one.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::methods::lenient;

/// The longest name that a host chooses (a session, a preset, a model, a lease), in characters.
pub(super) const MAX_NAME: usize = 256;

/// A task's record id, chosen by the host; also the name of its directory. At most 160 characters, and no path
/// (spec §7).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

/// Why a text cannot be a task's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot name a task's directory: it {0}")]
pub struct InvalidTaskId(String);

impl TaskId {
    /// The most characters of an id.
    const MAX_CHARS: usize = 160;

    /// Checks and takes an id.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidTaskId> {
        let text = text.into();
        let broken = match text.contains(['/', '\\']) {
            true => Some("holds a path separator".to_owned()),
            false => broken_rule(&text, Self::MAX_CHARS),
        };
        match broken {
            None => Ok(Self(text)),
            Some(rule) => Err(InvalidTaskId(rule)),
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

/// Who holds a task, chosen by the host afresh each time it takes one. On the wire it has 1 to 256 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(#[serde(deserialize_with = "lenient::name")] pub String);

/// Where below the sandbox root a task's directory is made: at most 8 segments of at most 64 characters (spec §7).
/// Empty: directly in the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subdir(Vec<String>);

impl Subdir {
    /// The most segments.
    const MAX_SEGMENTS: usize = 8;
    /// The most characters of a segment.
    const MAX_CHARS: usize = 64;

    /// Checks and takes a subdirectory; `/` and `\` both separate. The error says which rule it breaks.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let segments: Vec<&str> = text.split(['/', '\\']).collect();
        if segments.len() > Self::MAX_SEGMENTS {
            return Err(format!(
                "subdir has {} segments; {} is the most",
                segments.len(),
                Self::MAX_SEGMENTS
            ));
        }
        for segment in &segments {
            let broken = match segment.contains(['<', '>', ':', '"', '|', '?', '*']) {
                true => Some("holds one of < > : \" | ? *".to_owned()),
                false => broken_rule(segment, Self::MAX_CHARS),
            };
            if let Some(rule) = broken {
                return Err(format!("subdir cannot be used: a segment {rule}"));
            }
        }
        Ok(Self(segments.into_iter().map(str::to_owned).collect()))
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

/// Which rule a text breaks that is to name a directory on any platform, if it breaks one.
fn broken_rule(name: &str, max_chars: usize) -> Option<String> {
    // What the filesystems of Linux have room for.
    const MAX_BYTES: usize = 255;
    let rules = [
        (name.is_empty(), "is empty"),
        (name == "." || name == "..", "is . or .."),
        (name.chars().any(char::is_control), "holds a control character"),
        (name.ends_with(['.', ' ']), "ends in a dot or a blank"),
        (is_device(name), "is a name that Windows reserves for a device"),
        (name.len() > MAX_BYTES, "has more than 255 bytes"),
    ];
    match rules.into_iter().find(|(broken, _)| *broken) {
        Some((_, rule)) => Some(rule.to_owned()),
        None => (name.chars().count() > max_chars).then(|| format!("has more than {max_chars} characters")),
    }
}

/// Whether Windows takes a name for a device, whatever its extension and case.
fn is_device(name: &str) -> bool {
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end_matches(' ').to_ascii_uppercase();
    let port = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || matches!(port, Some("1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"))
}

/// What the ids of conversations begin with of tasks that a host of ours has made.
const POD_SESSION: &str = "pod-session-";

/// The `sessionId` of a task whose conversation is stored under `uuid`.
pub fn pod_session_id(uuid: &str) -> String {
    format!("{POD_SESSION}{uuid}")
}

/// The id under which the conversation of a task with this `sessionId` is stored; nothing for one that no host of ours has made.
pub fn session_uuid(session_id: &str) -> Option<&str> {
    session_id.strip_prefix(POD_SESSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: [&str; 11] = [
        "con",
        "Aux.txt",
        "NUL",
        "prn.",
        "LPT9",
        "com1.tar.gz",
        "COM¹",
        "lpt³.x",
        "CONIN$",
        "conout$.log",
        "nul .txt",
    ];

    #[test]
    fn a_task_id_can_name_a_directory_anywhere() {
        for good in ["pod-1", "a b", "...a", "检查", "COM10", "COM0", "console", "a:b", &"x".repeat(160)] {
            assert_eq!(TaskId::new(good).unwrap().as_str(), good);
        }
        let (long, bytes) = ("x".repeat(161), "检".repeat(86));
        for bad in [
            "", ".", "..", "../a", "a/b", "a\\b", "a\0b", "a\n", "\u{7f}", "\u{85}", "a.", "a ", &long,
            &bytes,
        ]
        .into_iter()
        .chain(DEVICES)
        {
            assert!(TaskId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_subdirectory_has_up_to_8_segments_that_are_file_names_on_every_platform() {
        let segments = |text: &str| Subdir::new(text).unwrap().to_string();
        assert_eq!(segments(""), "");
        assert_eq!(segments("x/y\\z"), "x/y/z");
        let longest = vec!["é".repeat(64); 8].join("/");
        assert_eq!(segments(&longest), longest);

        let (many, long, bytes) = ("a/".repeat(8) + "a", "x".repeat(65), "😀".repeat(64));
        for bad in ["/", "/a", "a/", "a//b", "\\a", "..", "a/../b", "a/.", "a ", "a.", "a:b", "a\u{1}", "a\0"]
            .into_iter()
            .chain(["<", ">", "\"", "|", "?", "*", &many, &long, &bytes])
            .chain(DEVICES)
        {
            assert!(Subdir::new(bad).is_err(), "{bad:?}");
            assert!(Subdir::new(&format!("good/{bad}")).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_task_knows_under_which_id_its_conversation_is_stored() {
        let uuid = "11111111-2222-3333-4444-555555555555";
        assert_eq!(session_uuid(&pod_session_id(uuid)), Some(uuid));
        for foreign in ["", uuid, "session-1", "pod-session", "a-pod-session-b"] {
            assert_eq!(session_uuid(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_lease_from_the_wire_has_1_to_256_characters() {
        let read = |text: String| serde_json::from_value::<LeaseId>(text.into());
        assert_eq!(read("é".repeat(256)).unwrap(), LeaseId("é".repeat(256)));
        for bad in [String::new(), "x".repeat(257)] {
            assert!(read(bad).is_err());
        }
    }
}
