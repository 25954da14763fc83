//! Diff: what is shown of each kind of change, in which order, and against the live tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cofferdam_protocol::ckpt::{DiffEntry, DiffKind};
use cofferdam_tests::files;

use crate::site;

/// As a client shows them: `A path (detail)`.
fn shown(changes: &[DiffEntry]) -> Vec<String> {
    changes
        .iter()
        .map(|change| {
            let letter = match change.change_type {
                DiffKind::Added => 'A',
                DiffKind::Modified => 'M',
                DiffKind::Deleted => 'D',
                DiffKind::Renamed => 'R',
            };
            match &change.detail {
                Some(detail) => format!("{letter} {} ({detail})", change.path),
                None => format!("{letter} {}", change.path),
            }
        })
        .collect()
}

#[test]
fn each_kind_of_change_is_shown_once_sorted_by_path() {
    type Change = fn(&Path);
    let cases: &[(&str, Change, &[&str])] = &[
        ("nothing", |_| {}, &[]),
        ("only times", |d| files::set_mtime(d.join("a"), 5, 5), &[]),
        ("a new file", |d| files::write(d.join("n"), "new"), &["A n"]),
        ("a new directory", |d| files::write(d.join("n/f"), "new"), &["A n (directory)", "A n/f"]),
        ("a new link", |d| files::symlink("a", d.join("n")), &["A n (symlink)"]),
        ("a removed file", |d| files::remove(d.join("a")), &["D a"]),
        (
            "a removed directory",
            |d| files::remove(d.join("dir")),
            &["D dir (directory)", "D dir/one", "D dir/two"],
        ),
        ("content", |d| files::append(d.join("a"), "!"), &["M a"]),
        ("mode", |d| files::chmod(d.join("a"), 0o700), &["M a"]),
        ("the root's mode", |d| files::chmod(d, 0o711), &["M ."]),
        ("a directory's mode", |d| files::chmod(d.join("dir"), 0o700), &["M dir"]),
        (
            "a link's target",
            |d| {
                files::remove(d.join("link"));
                files::symlink("b", d.join("link"));
            },
            &["M link"],
        ),
        ("a rename", |d| files::rename(d.join("a"), d.join("z")), &["R z (a → z)"]),
        (
            "a rename into another directory",
            |d| files::rename(d.join("dir/one"), d.join("b1")),
            &["R b1 (dir/one → b1)"],
        ),
        (
            "an editor's save",
            |d| {
                files::write(d.join("a~"), "saved");
                files::rename(d.join("a~"), d.join("a"));
            },
            &["M a"],
        ),
        (
            "two files that change places",
            |d| {
                files::rename(d.join("a"), d.join("t"));
                files::rename(d.join("b"), d.join("a"));
                files::rename(d.join("t"), d.join("b"));
            },
            &["M a", "M b"],
        ),
        (
            "the same content twice is no rename",
            |d| {
                files::remove(d.join("a"));
                files::write(d.join("y"), "aaa");
                files::write(d.join("z"), "aaa");
            },
            &["D a", "A y", "A z"],
        ),
        (
            "a file becomes a directory",
            |d| {
                files::remove(d.join("a"));
                files::write(d.join("a/b"), "x");
            },
            &["M a", "A a/b"],
        ),
        (
            "everything in order",
            |d| {
                files::write(d.join("dir.txt"), "");
                files::write(d.join("dir/three"), "3");
                files::write(d.join("dir-"), "x");
                files::remove(d.join("b"));
            },
            &["D b", "A dir-", "A dir.txt", "A dir/three"],
        ),
    ];
    let site = site();
    let daemon = site.start();
    for (n, (what, change, expected)) in cases.iter().enumerate() {
        let ws = site.path(format!("project-{n}"));
        files::write(ws.join("a"), "aaa");
        files::write(ws.join("b"), "bbb");
        files::write(ws.join("dir/one"), "first");
        files::write(ws.join("dir/two"), "second");
        files::symlink("a", ws.join("link"));
        daemon.checkpoint(&ws, "before");
        change(&ws);
        assert_eq!(shown(&daemon.diff(&ws, "before", "@live")), *expected, "{what}, live");
        daemon.checkpoint(&ws, "after");
        assert_eq!(shown(&daemon.diff(&ws, "before", "after")), *expected, "{what}");
        assert_eq!(daemon.diff(&ws, "after", "after"), [], "{what}");
        assert_eq!(daemon.diff(&ws, "after", "before").len(), expected.len(), "{what}, the other way");
    }
}

#[test]
fn a_name_that_is_not_text_is_shown_escaped_and_a_line_stays_a_line() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "before");
    files::write(ws.join(OsStr::from_bytes(b"\xff\xfe")), "bytes");
    files::write(ws.join("new\nline"), "newline");
    files::write(ws.join("日本"), "text");
    files::write(ws.join("with a blank"), "blank");
    let paths: Vec<_> = daemon.diff(&ws, "before", "@live").into_iter().map(|change| change.path).collect();
    assert_eq!(paths, [r"new\x0aline", "with a blank", "日本", r"\xff\xfe"]);
}

#[test]
fn a_snapshot_of_the_name_at_live_wins_over_the_live_tree() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("new"), "n");
    assert_eq!(shown(&daemon.diff(&ws, "one", "@live")), ["A new"]);
    daemon.checkpoint(&ws, "@live");
    files::write(ws.join("newer"), "n");
    assert_eq!(shown(&daemon.diff(&ws, "one", "@live")), ["A new"]);
}

#[test]
fn a_diff_with_the_live_tree_leaves_no_snapshot_behind() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    for n in 0..3 {
        files::write(ws.join("file"), format!("{n}"));
        assert_eq!(shown(&daemon.diff(&ws, "one", "@live")), ["M file"]);
    }
    assert_eq!(daemon.ids(&ws), ["one"]);
    assert_eq!(site.check(), 1);
}
