//! What only root can make comes back as well, and a diff tells what of it changed.

use cofferdam_tests::site::run;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::user::{NOBODY, SOMEBODY, give};
use cofferdam_tests::{files, project, skip, user};

use crate::site;

#[test]
fn roots_project_comes_back_with_owners_set_id_bits_devices_and_attributes() {
    if !user::is_root() {
        skip!("needs root to make devices and other users' files");
    }
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    files::write(ws.join("plain"), "x");
    files::write(ws.join("of-nobody/file"), "y");
    give(ws.join("of-nobody"), NOBODY);
    give(ws.join("of-nobody/file"), SOMEBODY);
    files::write(ws.join("setuid"), "tool");
    files::chmod(ws.join("setuid"), 0o4755);
    files::mkdir(ws.join("shared"));
    files::chmod(ws.join("shared"), 0o3775);
    files::null_device(ws.join("null"));
    files::fifo(ws.join("pipe"));
    files::socket(ws.join("socket"));
    files::symlink("nowhere", ws.join("link"));
    give(ws.join("link"), NOBODY);
    let attributes: Vec<_> = [
        ("plain", "user.mine", b"value\0with a NUL".to_vec()),
        ("plain", "user.large", project::noise(2000)),
        ("shared", "user.on-a-directory", b"d".to_vec()),
        ("plain", "system.posix_acl_access", files::acl(7, Some((5, NOBODY)), 4, 0)),
        ("plain", "security.capability", files::NET_BIND_SERVICE.to_vec()),
    ]
    .into_iter()
    .filter(|(file, name, value)| files::set_xattr(ws.join(file), name, value))
    .collect();
    assert!(attributes.len() > 1, "a filesystem without attributes proves nothing here");
    for name in ["plain", "null", "pipe", "socket", "link", "shared", ""] {
        files::set_mtime(ws.join(name), 1_400_000_000, 42);
    }
    let before = Tree::read(&ws);
    daemon.checkpoint(&ws, "one");
    assert_eq!(daemon.diff(&ws, "one", "@live"), []);

    for name in ["plain", "null", "pipe", "socket", "link", "of-nobody", "setuid"] {
        files::remove(ws.join(name));
    }
    files::chmod(ws.join("shared"), 0o700);
    let broken = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    let undone = run(&mut site.ws_ckpt(&["undo", "-w", ws.to_str().unwrap()]));
    assert_eq!(undone.code, 0, "{undone:?}");
    broken.assert_same(&Tree::read(&ws), "after undo");
    daemon.rollback(&ws, "one");

    // Changed in nothing but an attribute, or an owner.
    assert!(files::set_xattr(ws.join("plain"), "user.mine", b"other"));
    give(ws.join("setuid"), NOBODY);
    files::set_mtime(&ws, 1_400_000_000, 42);
    let paths: Vec<_> = daemon.diff(&ws, "one", "@live").into_iter().map(|change| change.path).collect();
    assert_eq!(paths, ["plain", "setuid"]);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after attributes and owners were changed");
}
