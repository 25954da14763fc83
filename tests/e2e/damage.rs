//! A store whose files are damaged, as its user sees it.

use cofferdam_protocol::ckpt::WsCkptErrorCode;
use cofferdam_tests::files;
use cofferdam_tests::site::{Ran, Site, run};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;

use crate::site;

fn ws_ckpt(site: &Site, words: &[&str]) -> Ran {
    run(&mut site.ws_ckpt(words))
}

#[test]
fn a_damaged_snapshot_is_shown_as_missing_refused_by_name_and_mended_by_the_next_checkpoint() {
    let site = site();
    let ws = site.workspace("project");
    let daemon = site.start();
    daemon.init(&ws);
    daemon.checkpoint(&ws, "old");
    // What hashes give cannot be compressed: most of a pack is this file.
    let precious: String =
        (0..2000u32).map(|n| blake3::hash(&n.to_le_bytes()).to_hex().to_string()).collect();
    files::write(ws.join("precious"), &precious);
    daemon.checkpoint(&ws, "new");
    daemon.stop();
    let packs = site.state().join("ckpt/packs");
    let mut packs: Vec<_> = files::names(&packs).into_iter().map(|name| packs.join(name)).collect();
    packs.sort_by_key(|pack| pack.metadata().unwrap().len());
    let pack = packs.pop().unwrap();
    let mut content = files::read(&pack);
    let middle = content.len() / 2;
    content[middle] ^= 1;
    files::write(&pack, content);

    let daemon = site.start();
    let found = ws_ckpt(&site, &["check", "--read-data"]);
    assert_eq!(found.code, 1, "{found:?}");
    assert!(found.stdout.contains("snapshot 'new' of "), "{found:?}");
    assert!(!found.stdout.contains("snapshot 'old' of "), "{found:?}");
    let marks = |daemon: &cofferdam_tests::site::Daemon| -> Vec<(String, bool)> {
        daemon.list(&ws).into_iter().map(|entry| (entry.id, entry.meta.missing)).collect()
    };
    let mark = |name: &str, missing| (name.to_owned(), missing);
    assert_eq!(marks(&daemon), [mark("old", false), mark("new", true)]);
    let listed = ws_ckpt(&site, &["list"]);
    let lines: Vec<_> = listed.stdout.lines().filter(|line| line.contains("[MISSING]")).collect();
    assert!(matches!(lines[..], [line] if line.contains("new")), "{listed:?}");

    files::append(ws.join("file"), "newer\n");
    let before = Tree::read(&ws);
    let (code, text) = daemon.refused(&ask::rollback(&ws, "new"));
    assert_eq!(code, WsCkptErrorCode::SnapshotNotFound);
    assert!(text.contains("'new'"), "{text}");
    before.assert_same(&Tree::read(&ws), "refused");

    daemon.checkpoint(&ws, "mending");
    ws_ckpt(&site, &["check", "--read-data"]);
    assert_eq!(marks(&daemon), [mark("old", false), mark("new", false), mark("mending", false)]);
    for name in ["old", "new"] {
        daemon.rollback(&ws, name);
    }
    assert_eq!(files::read(ws.join("precious")), precious.as_bytes());
}
