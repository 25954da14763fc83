//! Every kind of file in the place of every other, nothing among them.

use std::path::{Path, PathBuf};

use cofferdam_tests::files;

use super::ground::Scene;

/// Makes one thing at a path. Beside it lies what links point to.
type Make = fn(&Path);

/// What anybody can make.
const KINDS: &[(&str, Make)] = &[
    ("nothing", |_| ()),
    ("empty", |at| files::write(at, "")),
    ("file", |at| files::write(at, "content")),
    ("other-file", |at| files::write(at, "another")),
    ("program", |at| {
        files::write(at, "content");
        files::chmod(at, 0o755);
    }),
    ("holes", |at| files::sparse(at, 1 << 20, &[(300 << 10, b"in the middle")])),
    ("hard-link", |at| files::hard_link(at.with_file_name("a-file"), at)),
    ("link-to-file", |at| files::symlink("a-file", at)),
    ("link-to-directory", |at| files::symlink("a-directory", at)),
    ("link-outside", |at| files::symlink("../../outside/kept", at)),
    ("dangling-link", |at| files::symlink("nowhere/at/all", at)),
    ("empty-directory", |at| files::mkdir(at)),
    ("directory", |at| {
        files::write(at.join("in/deep"), "x");
        files::symlink("deep", at.join("in/link"));
        files::mkdir(at.join("empty"));
    }),
    ("sealed-directory", |at| {
        files::write(at.join("sealed/in"), "x");
        files::set_mtime(at.join("sealed/in"), 1_111_111_111, 1);
        files::chmod(at.join("sealed"), 0o555);
        files::chmod(at, 0o555);
    }),
    ("fifo", |at| files::fifo(at)),
    ("socket", |at| files::socket(at)),
];

/// What only root can make.
const ROOTS_KINDS: &[(&str, Make)] = &[
    ("character-device", |at| files::null_device(at)),
    ("other-device", |at| files::device(at, 1, 5)),
    ("block-device", |at| files::no_disk(at)),
];

fn kinds(scene: &Scene) -> impl Iterator<Item = &'static (&'static str, Make)> + Clone {
    KINDS.iter().chain(if scene.is_root { ROOTS_KINDS } else { &[] })
}

/// Each pair has a path, and each kind that was there first a directory of its own.
fn pairs(scene: &Scene) -> impl Iterator<Item = (PathBuf, Make, Make)> {
    let (ws, kinds) = (scene.ws.clone(), kinds(scene));
    kinds.clone().flat_map(move |(old, make_old)| {
        let dir = ws.join(format!("from-{old}"));
        kinds.clone().map(move |(new, make_new)| (dir.join(format!("to-{new}")), *make_old, *make_new))
    })
}

pub(super) fn make(scene: &Scene) {
    files::write(scene.outside.join("kept/file"), "outside");
    for (at, make_old, _) in pairs(scene) {
        let dir = at.parent().unwrap();
        if !dir.join("a-file").exists() {
            files::write(dir.join("a-file"), "linked to");
            files::write(dir.join("a-directory/file"), "linked to");
        }
        make_old(&at);
        if std::fs::symlink_metadata(&at).is_ok() {
            files::set_mtime(&at, 1_234_567_890, 123_456_789);
        }
    }
}

pub(super) fn change(scene: &Scene) {
    for (at, _, make_new) in pairs(scene) {
        files::remove(&at);
        make_new(&at);
    }
}
