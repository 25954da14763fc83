//! Nothing is left out of a snapshot in silence: not by size, not by number, not by a name that some list ignores. What
//! cannot be had is named.

use cofferdam_tests::effort::rounds;
use cofferdam_tests::site::{Ran, Site, run};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::{files, project};

use crate::{site, site_of_ordinary_user};

/// Takes a checkpoint as a person does, who is told of warnings.
fn checkpoint(site: &Site, ws: &std::path::Path, id: &str) -> Ran {
    let ran = run(&mut site.cofferdam(&["ckpt", "checkpoint", "-w", ws.to_str().unwrap(), "-i", id]));
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

#[test]
fn what_lists_of_ignored_names_name_is_captured_and_given_back_like_everything_else() {
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    project::make(&ws);
    // Also lists that nobody could read: none is asked.
    files::write(ws.join(".gitignore"), "*.log\n/target\nnode_modules/\n[unclosed\n");
    files::write(ws.join("sub/.ignore"), b"\xff\xfe\0*");
    files::write(ws.join(".git/info/exclude"), "secret\n");
    files::mkdir(ws.join("odd/.gitignore"));
    files::mkdir(ws.join("loop"));
    files::symlink(".gitignore", ws.join("loop/.gitignore"));
    for ignored in
        ["a.log", "target/debug/program", "node_modules/x/index.js", "secret", ".env", "sub/any", "x~"]
    {
        files::write(ws.join(ignored), format!("{ignored}: never committed anywhere"));
    }
    let before = Tree::read(&ws);
    assert_eq!(checkpoint(&site, &ws, "one").stderr, "");
    for gone in ["a.log", "target", "node_modules", "secret", ".env", "sub", ".git", ".gitignore", "x~"] {
        files::remove(ws.join(gone));
    }
    // Made since, ignored or not: it is taken away, and undo has it.
    files::write(ws.join("b.log"), "later");
    let broken = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    let undone = run(&mut site.cofferdam(&["ckpt", "undo", "-w", ws.to_str().unwrap()]));
    assert_eq!(undone.code, 0, "{undone:?}");
    broken.assert_same(&Tree::read(&ws), "after undo");
}

#[test]
fn neither_a_big_file_nor_a_big_directory_is_left_out() {
    // 200 000 in the long mode.
    let entries = rounds(10_000).min(200_000);
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    let piece = project::noise(3 << 20);
    files::mkdir(&ws);
    files::sparse(
        ws.join("model.bin"),
        500 << 20,
        &[(0, &piece), (250 << 20, &piece[..4096]), ((500 << 20) - 9, b"the end!!")],
    );
    files::mkdir(ws.join("node_modules"));
    for n in 0..entries {
        std::fs::File::create(ws.join(format!("node_modules/{n}"))).unwrap();
    }
    let before = Tree::read_without(&ws, &["model.bin"]);
    let blocks = |path| std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(path).unwrap());
    let on_disk = blocks(ws.join("model.bin"));
    assert_eq!(checkpoint(&site, &ws, "one").stderr, "");
    files::remove(ws.join("model.bin"));
    for n in (0..entries).step_by(97) {
        files::remove(ws.join(format!("node_modules/{n}")));
    }
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read_without(&ws, &["model.bin"]), "after the rollback");
    let model = files::read(ws.join("model.bin"));
    assert_eq!(model.len(), 500 << 20);
    assert!(model[..3 << 20] == piece[..] && model[250 << 20..][..4096] == piece[..4096]);
    assert!(model.ends_with(b"the end!!") && model[4 << 20..250 << 20].iter().all(|byte| *byte == 0));
    assert!(blocks(ws.join("model.bin")) <= on_disk + 64, "holes are holes again");
}

#[test]
fn everything_that_cannot_be_read_is_named_and_nothing_else_is() {
    let site = site_of_ordinary_user();
    let daemon = site.start();
    let ws = site.path("project");
    files::write(ws.join("open"), "one");
    files::write(ws.join("closed/inside"), "nobody sees this");
    files::write(ws.join("deep/er/locked"), "nor this");
    site.hand_over(&ws);
    // Whoever owns them may change the mode back; until then they cannot be read.
    files::chmod(ws.join("deep/er/locked"), 0o000);
    files::chmod(ws.join("closed"), 0o000);
    let why = "could not be read; a rollback leaves it alone";
    let told = checkpoint(&site, &ws, "one").stderr;
    assert_eq!(told, format!("Warning: closed: {why}\nWarning: deep/er/locked: {why}\n"));
    files::write(ws.join("open"), "two");
    daemon.rollback(&ws, "one");
    assert_eq!(files::read(ws.join("open")), b"one");
    files::chmod(ws.join("closed"), 0o700);
    files::chmod(ws.join("deep/er/locked"), 0o600);
    assert_eq!(files::read(ws.join("closed/inside")), b"nobody sees this");
    assert_eq!(files::read(ws.join("deep/er/locked")), b"nor this");
    // What can be read by now is captured, and named no more.
    assert_eq!(checkpoint(&site, &ws, "two").stderr, "");
}
