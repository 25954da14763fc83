//! Hard links within the workspace and out of it, and symbolic links that lead outside.

use std::path::Path;

use cofferdam_tests::files;

pub(super) fn make_links(dir: &Path) {
    let group = |names: &[&str]| {
        files::write(dir.join(names[0]), format!("shared by {}", names[0]));
        files::set_mtime(dir.join(names[0]), 1_500_000_000, 5);
        for name in &names[1..] {
            files::mkdir(dir.join(name).parent().unwrap());
            files::hard_link(dir.join(names[0]), dir.join(name));
        }
    };
    group(&["kept/a", "kept/b", "kept/sub/c"]);
    group(&["one name goes/a", "one name goes/b", "one name goes/c"]);
    group(&["one name comes/a", "one name comes/b"]);
    group(&["one is rewritten/a", "one is rewritten/b", "one is rewritten/c"]);
    group(&["content changes/a", "content changes/b", "content changes/sub/c"]);
    group(&["mode changes/a", "mode changes/b", "mode changes/sub/c"]);
    group(&["time changes/a", "time changes/b"]);
    group(&["merged/a1", "merged/a2"]);
    group(&["merged/b1", "merged/b2"]);
    group(&["joined/a", "joined/b"]);
    group(&["joined/single"]);
    group(&["split/a1", "split/a2", "split/b1", "split/b2"]);
    group(&["a directory goes/a", "a directory goes/gone/b", "a directory goes/gone/deep/c"]);
    group(&["a directory moves/a", "a directory moves/from/b"]);
    group(&["names change places/a1", "names change places/a2"]);
    group(&["names change places/b1", "names change places/b2"]);
    group(&["across/left/a", "across/right/a"]);
    group(&["all go/a", "all go/b"]);
    files::fifo(dir.join("kept/fifo"));
    files::hard_link(dir.join("kept/fifo"), dir.join("kept/fifo 2"));
    files::symlink("a", dir.join("all go/link"));
    files::hard_link(dir.join("all go/link"), dir.join("all go/link 2"));
    // The other name of each of these is no part of the workspace.
    for name in ["written", "replaced", "gone", "kept"] {
        let outside = outside(dir).join(format!("linked {name}"));
        files::write(&outside, "inside and outside");
        files::mkdir(dir.join("outside"));
        files::hard_link(&outside, dir.join("outside").join(name));
    }
    files::hard_link(outside(dir).join("linked written"), dir.join("outside/written 2"));
}

pub(super) fn change_links(dir: &Path) {
    let at = |path: &str| dir.join(path);
    let link = |from: &str, to: &str| {
        files::remove(at(to));
        files::hard_link(at(from), at(to));
    };
    let rewrite = |path: &str| {
        files::remove(at(path));
        files::write(at(path), "a file of its own");
    };
    files::remove(at("one name goes/b"));
    link("one name comes/a", "one name comes/c");
    rewrite("one is rewritten/b");
    files::write(at("content changes/b"), "changed under every name");
    files::chmod(at("mode changes/b"), 0o600);
    files::set_mtime(at("time changes/b"), 1_555_555_555, 5);
    link("merged/a1", "merged/b1");
    link("merged/a1", "merged/b2");
    link("joined/single", "joined/a");
    rewrite("split/b1");
    link("split/b1", "split/b2");
    files::remove(at("a directory goes/gone"));
    files::rename(at("a directory moves/from"), at("a directory moves/to"));
    link("names change places/a1", "names change places/x");
    link("names change places/b1", "names change places/a1");
    link("names change places/x", "names change places/b1");
    files::remove(at("names change places/x"));
    rewrite("across/left/a");
    files::remove(at("all go"));
    files::write(at("outside/written"), "changed under every name");
    rewrite("outside/replaced");
    files::remove(at("outside/gone"));
}

/// The directory beside the workspace.
fn outside(dir: &Path) -> std::path::PathBuf {
    dir.parent().unwrap().with_file_name("outside")
}

pub(super) fn make_outside(dir: &Path) {
    let outside = outside(dir);
    files::write(outside.join("precious/file"), "never touched");
    files::write(outside.join("precious/a"), "never touched");
    files::symlink("../../outside/precious/file", dir.join("to a file"));
    files::symlink(outside.join("precious"), dir.join("to a directory"));
    files::symlink("..", dir.join("up"));
    files::symlink(".", dir.join("itself"));
    files::symlink("loop", dir.join("loop"));
    files::symlink("x".repeat(1000), dir.join("long"));
    files::write(dir.join("becomes a link"), "inside");
    files::write(dir.join("directory becomes a link/a"), "inside");
    files::write(dir.join("directory becomes a link/sub/b"), "inside");
}

pub(super) fn change_outside(dir: &Path) {
    let outside = outside(dir);
    for name in ["to a file", "to a directory"] {
        files::remove(dir.join(name));
    }
    files::write(dir.join("to a file"), "now inside");
    files::write(dir.join("to a directory/a"), "now inside");
    for name in ["becomes a link", "directory becomes a link"] {
        files::remove(dir.join(name));
    }
    files::symlink(outside.join("precious/file"), dir.join("becomes a link"));
    files::symlink(outside.join("precious"), dir.join("directory becomes a link"));
    files::remove(dir.join("long"));
    files::remove(dir.join("up"));
    files::symlink("../../outside", dir.join("up"));
}
