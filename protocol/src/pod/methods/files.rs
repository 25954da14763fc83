//! `files.list`, `files.stat`, `files.read`.

use serde::{Deserialize, Serialize};

use super::lenient;
use super::{Answer, drop_last, json_size};

/// Asks for a task's files (spec §7).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesList {
    /// Whose.
    pub task_id: String,
}

/// A task's files, depth first, names in byte order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileRows {
    /// The task's directory.
    pub root: String,
    /// What is in it, to a depth of 8 and at most 2000.
    pub entries: Vec<FileRow>,
    /// Whether there is more.
    pub truncated: bool,
    /// Whether the directory is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
}

/// What kind of thing a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum FileType {
    File,
    Directory,
    Symlink,
    Other,
}

/// One name below a task's directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileRow {
    /// Its path below the task's directory, `/` between the segments.
    pub rel_path: String,
    /// What it is; a link is a link, whatever it leads to.
    #[serde(rename = "type")]
    pub kind: FileType,
    /// Bytes of a file, else 0.
    pub size: u64,
    /// When its content last changed, in milliseconds since the epoch.
    pub mtime: i64,
    /// Whether the name is not Unicode: then `rel_path` only resembles it and cannot be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lossy: bool,
}

/// Asks about one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesStat {
    /// Whose.
    pub task_id: String,
    /// Which, below the task's directory.
    pub rel_path: String,
}

/// What is known of one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileStat {
    /// As in a list.
    #[serde(flatten)]
    pub row: FileRow,
    /// Whether it looks as if it were no text.
    pub binary: bool,
}

/// Asks for a file's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesRead {
    /// Whose.
    pub task_id: String,
    /// Which, below the task's directory.
    pub rel_path: String,
    /// The most characters wanted.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub max_chars: Option<i64>,
}

/// A file's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileText {
    /// The text, from the beginning.
    pub text: String,
    /// Whether there is more.
    pub truncated: bool,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Characters of `text`.
    pub chars: usize,
    /// `utf-8`, `utf-16le` or `utf-16be`.
    pub encoding: String,
    /// Always `false`.
    pub binary: bool,
}

impl Answer for FileRows {
    fn shorten(&mut self, excess: usize) -> bool {
        self.truncated = true;
        drop_last(&mut self.entries, excess)
    }
}

impl Answer for FileStat {}

impl Answer for FileText {
    fn shorten(&mut self, excess: usize) -> bool {
        let mut dropped = 0;
        let mut end = self.text.len();
        for (at, _) in self.text.char_indices().rev() {
            if dropped >= excess.max(1) {
                break;
            }
            // Without its quotes.
            dropped += json_size(&self.text[at..end]) - 2;
            end = at;
        }
        self.truncated = true;
        let any = end < self.text.len();
        self.text.truncate(end);
        self.chars = self.text.chars().count();
        any
    }
}
