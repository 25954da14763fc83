//! What differs between two trees: which paths, and what is in one of them.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::web::{self, Data, Json};
use cofferdam_actors::ckpt::{Ckpt, CompareFile, ComparedFile, DiffSnapshots, Failure, RoutingError};
use cofferdam_protocol::ckpt::{DiffEntry, DiffKind};
use cofferdam_storage::ckpt::{FileKind, Seen};
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use super::Answer;
use crate::api::Endpoint;
use crate::caller::Caller;

/// Changes of a page, if nothing is said.
const PAGE: usize = 1000;
/// The most changes of a page.
const LONGEST_PAGE: usize = 5000;
/// The most bytes of each side that are compared.
const SIDE: usize = 256 << 10;
/// The most lines that are shown, and the most characters of each.
const LINES: usize = 2000;
const LINE: usize = 2000;
/// Lines shown around a change.
const AROUND: usize = 3;
/// How long the comparison may look for the shortest answer; then it takes a longer one.
const PATIENCE: Duration = Duration::from_millis(500);

/// The routes of this module.
pub(super) fn endpoints() -> [Endpoint; 2] {
    [
        Endpoint::new(Method::POST, "/ckpt/diff", || web::to(diff)),
        Endpoint::new(Method::POST, "/ckpt/content", || web::to(content)),
    ]
}

/// Asks how two trees differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffRequest {
    /// A workspace's id or absolute path.
    pub workspace: String,
    /// The earlier snapshot.
    pub from: String,
    /// The later one, or `@live` for the directory as it is now.
    pub to: String,
    /// How many changes are left out.
    #[serde(default)]
    pub offset: usize,
    /// How many are wanted; 1000 if absent, at most 5000.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// A page of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffReport {
    /// Sorted by path.
    pub changes: Vec<ChangeReport>,
    /// How many there are in all.
    pub total: usize,
    /// Of them, paths that are only in the later tree.
    pub added: usize,
    /// Of them, paths that are only in the earlier tree.
    pub deleted: usize,
    /// Of them, paths whose content or metadata differs.
    pub modified: usize,
    /// Of them, files that have another path.
    pub renamed: usize,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReport {
    /// Where, escaped so that it is one line of text; as `content` takes it.
    pub path: String,
    /// `added`, `deleted`, `modified` or `renamed`.
    pub kind: String,
    /// What kind of file it is, if it is no regular one; null where nothing is to be said.
    pub detail: Option<String>,
    /// Where it was before; null unless it was renamed.
    pub old_path: Option<String>,
}

/// Asks what two trees have at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentRequest {
    /// A workspace's id or absolute path.
    pub workspace: String,
    /// The earlier snapshot.
    pub from: String,
    /// The later one, or `@live` for the directory as it is now.
    pub to: String,
    /// Where, as a diff shows it.
    pub path: String,
    /// Where in the earlier one, if it was renamed.
    #[serde(default)]
    pub old_path: Option<String>,
}

/// What two trees have at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentReport {
    /// The earlier tree; null if it has nothing there.
    pub old: Option<SideReport>,
    /// The later one.
    pub new: Option<SideReport>,
    /// Where the texts differ; empty if one of them is none.
    pub hunks: Vec<HunkReport>,
    /// Whether something that differs may be left out: a file or the answer is too long.
    pub truncated: bool,
}

/// What one tree has at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideReport {
    /// `file`, `directory`, `symlink` or `other`.
    pub kind: String,
    /// Bytes of a regular file.
    pub size: u64,
    /// Whether it is a regular file and no text.
    pub binary: bool,
    /// Whether it may not be read.
    pub unreadable: bool,
    /// Whether only its beginning was looked at.
    pub truncated: bool,
    /// Where a link leads, as text; it is not followed.
    pub target: Option<String>,
}

/// Lines that differ, and some around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HunkReport {
    /// The number of its first line in the earlier text, from 1.
    pub old_start: usize,
    /// The same in the later one.
    pub new_start: usize,
    /// In order.
    pub lines: Vec<LineReport>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineReport {
    /// `-` is in the earlier text only, `+` in the later one, a blank in both; `\` says that the line before it is the last of
    /// its text and has no end.
    pub tag: char,
    /// Without its line feed; at most 2000 characters.
    pub text: String,
}

async fn diff(Caller(peer): Caller, ckpt: Data<Ckpt>, body: Json<DiffRequest>) -> Answer<DiffReport> {
    let DiffRequest { workspace, from, to, offset, limit } = body.into_inner();
    let changes = ckpt.ask(DiffSnapshots { peer, workspace, from, to }).await?;
    let count = |kind| changes.iter().filter(|change| change.change_type == kind).count();
    Ok(Json(DiffReport {
        total: changes.len(),
        added: count(DiffKind::Added),
        deleted: count(DiffKind::Deleted),
        modified: count(DiffKind::Modified),
        renamed: count(DiffKind::Renamed),
        changes: changes
            .into_iter()
            .skip(offset)
            .take(limit.unwrap_or(PAGE).min(LONGEST_PAGE))
            .map(ChangeReport::from)
            .collect(),
    }))
}

async fn content(
    Caller(peer): Caller,
    ckpt: Data<Ckpt>,
    body: Json<ContentRequest>,
) -> Answer<ContentReport> {
    let ContentRequest { workspace, from, to, path, old_path } = body.into_inner();
    let most = SIDE + 1;
    let found = ckpt.ask(CompareFile { peer, workspace, from, to, path, old_path, most }).await?;
    // What is compared has limits, so that this ends soon; still it is no work for the thread that serves everybody.
    let report = tokio::task::spawn_blocking(move || ContentReport::from(found)).await;
    Ok(Json(report.map_err(|_| Failure::from(RoutingError::Panicked))?))
}

impl From<DiffEntry> for ChangeReport {
    fn from(DiffEntry { path, change_type, detail }: DiffEntry) -> Self {
        let kind = match change_type {
            DiffKind::Added => "added",
            DiffKind::Deleted => "deleted",
            DiffKind::Modified => "modified",
            DiffKind::Renamed => "renamed",
        };
        let (old_path, detail) = match (change_type, detail) {
            (DiffKind::Renamed, Some(both)) => {
                let old = both.strip_suffix(&format!(" \u{2192} {path}")).map(str::to_owned);
                (old, None)
            }
            (_, detail) => (None, detail),
        };
        Self { path, kind: kind.to_owned(), detail, old_path }
    }
}

impl From<ComparedFile> for ContentReport {
    fn from(ComparedFile { old, new }: ComparedFile) -> Self {
        let (old_side, new_side) = (old.as_ref().map(SideReport::from), new.as_ref().map(SideReport::from));
        let cut = [&old_side, &new_side].into_iter().flatten().any(|side| side.truncated);
        let (hunks, left_out) = match (text(&old), text(&new)) {
            (Some(old), Some(new)) => hunks(old, new),
            _ => (Vec::new(), false),
        };
        Self { old: old_side, new: new_side, hunks, truncated: cut || left_out }
    }
}

impl From<&Seen> for SideReport {
    fn from(seen: &Seen) -> Self {
        let kind = match seen.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symlink",
            _ => "other",
        };
        let is_file = seen.kind == FileKind::File;
        let target = match (seen.kind, &seen.bytes) {
            (FileKind::Symlink, Some(target)) => Some(cofferdam_storage::path::escape(target)),
            _ => None,
        };
        Self {
            kind: kind.to_owned(),
            size: seen.size,
            binary: is_file && seen.bytes.as_deref().is_some_and(|bytes| as_text(bytes).is_none()),
            unreadable: seen.bytes.is_none(),
            truncated: is_file && seen.bytes.as_ref().is_some_and(|bytes| bytes.len() > SIDE),
            target,
        }
    }
}

/// The text of one side, which is empty where there is nothing; `None` if it is no text.
fn text(seen: &Option<Seen>) -> Option<&str> {
    match seen {
        None => Some(""),
        Some(Seen { kind: FileKind::File, bytes: Some(bytes), .. }) => as_text(bytes),
        Some(_) => None,
    }
}

/// The beginning of a file as text, if it is one. A character that the end cuts in two is left out.
fn as_text(bytes: &[u8]) -> Option<&str> {
    let bytes = &bytes[..bytes.len().min(SIDE)];
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() && bytes.len() == SIDE => {
            str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

/// Where two texts differ, and whether some of it is left out.
fn hunks(old: &str, new: &str) -> (Vec<HunkReport>, bool) {
    let mut config = TextDiff::configure();
    let diff = config.timeout(PATIENCE).diff_lines(old, new);
    let (mut hunks, mut room, mut left_out) = (Vec::new(), LINES, false);
    for group in diff.grouped_ops(AROUND) {
        let Some(first) = group.first() else { continue };
        let (old_start, new_start) = (first.old_range().start + 1, first.new_range().start + 1);
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if lines.len() >= room {
                hunks.push(HunkReport { old_start, new_start, lines });
                return (hunks, true);
            }
            let tag = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value().strip_suffix('\n').unwrap_or(change.value());
            let text: String = line.chars().take(LINE).collect();
            left_out |= text.len() < line.len();
            lines.push(LineReport { tag, text });
            if change.missing_newline() && tag != ' ' {
                lines.push(LineReport { tag: '\\', text: String::new() });
            }
        }
        room = room.saturating_sub(lines.len());
        hunks.push(HunkReport { old_start, new_start, lines });
    }
    (hunks, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Option<Seen> {
        let size = bytes.len() as u64;
        Some(Seen { kind: FileKind::File, size, bytes: Some(bytes[..bytes.len().min(SIDE + 1)].to_vec()) })
    }

    fn report(old: Option<Seen>, new: Option<Seen>) -> ContentReport {
        ComparedFile { old, new }.into()
    }

    /// The lines of all hunks, as a patch has them.
    fn lines(report: &ContentReport) -> Vec<String> {
        let line = |line: &LineReport| format!("{}{}", line.tag, line.text);
        let hunk = |hunk: &HunkReport| {
            let head = format!("@{} {}", hunk.old_start, hunk.new_start);
            std::iter::once(head).chain(hunk.lines.iter().map(line)).collect::<Vec<_>>()
        };
        report.hunks.iter().flat_map(hunk).collect()
    }

    #[test]
    fn lines_that_differ_are_shown_with_three_around_them() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n10\n", "\nten\r\n");
        let report = report(file(old.as_bytes()), file(new.as_bytes()));
        assert_eq!(lines(&report), ["@7 7", " 7", " 8", " 9", "-10", "+ten\r", " 11", " 12", " 13"]);
        assert!(!report.truncated);
    }

    #[test]
    fn what_is_on_one_side_only_is_shown_whole() {
        assert_eq!(lines(&report(None, file(b"a\nb"))), ["@1 1", "+a", "+b", "\\"]);
        assert_eq!(lines(&report(file(b"a\n"), None)), ["@1 1", "-a"]);
        assert_eq!(report(None, file(b"")).hunks, []);
    }

    #[test]
    fn what_is_no_text_is_told_and_not_shown() {
        for bytes in [&b"a\0b"[..], b"\xff\xfe", b"cut \xc3"] {
            let report = report(file(b"text"), file(bytes));
            assert!(report.new.unwrap().binary && report.hunks.is_empty(), "{bytes:?}");
        }
        let link = Seen { kind: FileKind::Symlink, size: 0, bytes: Some(b"/a\n\xff".to_vec()) };
        let report = report(file(b"text"), Some(link));
        let new = report.new.unwrap();
        assert_eq!((new.kind.as_str(), new.target.as_deref()), ("symlink", Some("/a\\x0a\\xff")));
        assert_eq!(report.hunks, []);
    }

    #[test]
    fn long_files_and_long_answers_are_cut_and_said_to_be() {
        let mut long = "é".repeat(SIDE / 2 - 1) + "x";
        long.push('é');
        let cut = report(None, file(long.as_bytes()));
        let new = cut.new.unwrap();
        assert!(cut.truncated && new.truncated && !new.binary);
        assert_eq!(cut.hunks[0].lines[0].text.chars().count(), LINE);
        let (one, other) = ("x".repeat(LINE) + "one\n", "x".repeat(LINE) + "other\n");
        let cut = report(file(one.as_bytes()), file(other.as_bytes()));
        assert!(cut.truncated, "where they differ is not shown: {:?}", lines(&cut));
        let many: String = (0..LINES + 1).map(|n| format!("{n}\n")).collect();
        let cut = report(None, file(many.as_bytes()));
        assert!(cut.truncated && !cut.new.unwrap().truncated);
        assert_eq!(cut.hunks[0].lines.len(), LINES);
    }

    #[test]
    fn a_file_that_was_renamed_is_told_with_both_of_its_names() {
        let entry = |change_type, detail: Option<&str>| {
            let detail = detail.map(str::to_owned);
            ChangeReport::from(DiffEntry { path: "b \u{2192} c".to_owned(), change_type, detail })
        };
        let renamed = entry(DiffKind::Renamed, Some("a \u{2192} b \u{2192} b \u{2192} c"));
        assert_eq!((renamed.kind.as_str(), renamed.old_path.as_deref()), ("renamed", Some("a \u{2192} b")));
        let added = entry(DiffKind::Added, Some("directory"));
        assert_eq!((added.old_path, added.detail.as_deref()), (None, Some("directory")));
    }
}
