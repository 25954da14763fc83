//! What a rollback may not touch: it is named, or left alone, and nothing else suffers.

use std::os::unix::fs::MetadataExt;

use cofferdam_protocol::ckpt::WsCkptErrorCode as Code;
use cofferdam_tests::mount::Mount;
use cofferdam_tests::site::Daemon;
use cofferdam_tests::stamps::Stamps;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::user::{self, NOBODY};
use cofferdam_tests::wire::ask;
use cofferdam_tests::{files, skip};

use super::ground::{Filesystem, Ground, Who};
use super::undo;

/// Asks for a rollback that must be refused without a trace; returns the text.
fn refused(ground: &Ground, daemon: &Daemon) -> String {
    let ws = &ground.scene.ws;
    let before = Stamps::read_of_changes(ws);
    let (code, message) = daemon.refused(&ask::rollback(ws, "one"));
    assert_eq!(code, Code::IoError, "{message}");
    before.assert_same(&Stamps::read_of_changes(ws), "after a refused rollback");
    message
}

pub(super) fn immutable_files_are_named(filesystem: Filesystem) {
    if !user::is_root() {
        skip!("only root makes files immutable");
    }
    let Some(ground) = Ground::new(filesystem, Who::Runner, |scene| {
        for name in
            ["replaced", "replaced log", "removed log", "mode", "name in/file", "names to/file", "kept"]
        {
            files::write(scene.at(name), "target");
        }
    }) else {
        return;
    };
    let (daemon, ws) = (ground.site.start(), &ground.scene.ws);
    daemon.checkpoint(ws, "one");
    let before = Tree::read(ws);
    for name in ["replaced", "replaced log", "name in/file", "new/deep/file", "new/deep/log"] {
        files::write(ws.join(name), "live");
    }
    files::chmod(ws.join("mode"), 0o600);
    files::remove(ws.join("names to/file"));
    let changed = Tree::read(ws);
    let flags = [
        ("i", "replaced"),
        ("a", "replaced log"),
        ("i", "mode"),
        ("i", "name in"),
        ("a", "names to"),
        ("i", "new/deep/file"),
        ("a", "new/deep/log"),
        // In nobody's way.
        ("i", "kept"),
    ];
    if !files::chattr("+i", ws.join("replaced")) {
        skip!("the filesystem does not know immutable files");
    }
    for (flag, path) in flags {
        assert!(files::chattr(&format!("+{flag}"), ws.join(path)), "{path}");
    }
    let message = refused(&ground, &daemon);
    assert!(message.contains("mode: ") && message.contains("chattr"), "{message}");
    assert!(message.ends_with("and 2 more"), "{message}");
    for (flag, path) in flags {
        assert!(files::chattr(&format!("-{flag}"), ws.join(path)), "{path}");
    }
    // One of them alone is enough.
    for (flag, path) in flags.into_iter().filter(|(_, path)| *path != "kept") {
        assert!(files::chattr(&format!("+{flag}"), ws.join(path)), "{path}");
        let message = refused(&ground, &daemon);
        assert!(message.contains(path) && message.contains("chattr"), "{path}: {message}");
        assert!(files::chattr(&format!("-{flag}"), ws.join(path)), "{path}");
    }
    assert!(files::chattr("+i", ws.join("kept")));
    daemon.rollback(ws, "one");
    before.assert_same(&Tree::read(ws), "after the rollback");
    undo(&ground);
    changed.assert_same(&Tree::read(ws), "after undo");
    assert!(files::chattr("-i", ws.join("kept")));
    daemon.stop();
}

pub(super) fn mounts_are_left_alone(filesystem: Filesystem, who: Who) {
    if !user::is_root() {
        skip!("only root mounts");
    }
    let Some(ground) = Ground::new(filesystem, who, |scene| {
        files::write(scene.at("file"), "target");
        files::write(scene.at("mounted before"), "under the mount");
        files::mkdir(scene.at("dir/mounted before"));
        files::mkdir(scene.at("stays/mounted after"));
        files::write(scene.at("becomes a file"), "target");
        files::write(scene.outside.join("precious/file"), "outside");
        files::write(scene.outside.join("file"), "outside");
    }) else {
        return;
    };
    let (daemon, ws, outside) = (ground.site.start(), &ground.scene.ws, &ground.scene.outside);
    // Of the same filesystem: no device number tells them from what is around.
    let precious = outside.join("precious");
    let _file = Mount::bind_file(&outside.join("file"), &ws.join("mounted before"));
    let _dir = Mount::bind(&precious, &ws.join("dir/mounted before"));
    daemon.checkpoint(ws, "one");
    let _after = Mount::bind(&precious, &ws.join("stays/mounted after"));
    ground.as_owner(|| {
        files::write(ws.join("file"), "live");
        files::write(precious.join("file"), "written through no workspace");
        files::write(ws.join("stays/new"), "live");
        files::mkdir(ws.join("goes/deep/mounted"));
        files::remove(ws.join("becomes a file"));
        files::mkdir(ws.join("becomes a file/mounted"));
    });
    let precious_before = Tree::read(outside);
    for (at, named) in
        [("goes/deep/mounted", "goes/deep/mounted"), ("becomes a file/mounted", "becomes a file")]
    {
        let mount = Mount::bind(&precious, &ws.join(at));
        let message = refused(&ground, &daemon);
        assert!(message.contains(named) && message.contains("mount"), "{message}");
        drop(mount);
    }
    // With something mounted on it a directory that stays is one that could not be looked into.
    let message = refused(&ground, &daemon);
    assert!(message.contains("stays/mounted after"), "{message}");
    drop(_after);
    daemon.rollback(ws, "one");
    assert_eq!(files::read(ws.join("file")), b"target");
    assert_eq!(files::read(ws.join("becomes a file")), b"target");
    assert_eq!(files::names(ws.join("stays")), ["mounted after"]);
    assert!(!ws.join("goes").exists());
    undo(&ground);
    assert_eq!(files::read(ws.join("file")), b"live");
    assert!(ws.join("goes/deep/mounted").exists());
    assert_eq!(files::read(ws.join("mounted before")), b"outside");
    assert_eq!(files::names(ws.join("dir/mounted before")), ["file"]);
    precious_before.assert_same(&Tree::read(outside), "what is mounted");
    daemon.stop();
}

/// As a build in a container leaves them behind.
pub(super) fn roots_files(filesystem: Filesystem) {
    if !user::is_root() {
        skip!("only root makes root's files");
    }
    let Some(ground) = Ground::new(filesystem, Who::OrdinaryUser, |scene| {
        files::write(scene.at("own"), "target");
    }) else {
        return;
    };
    let (daemon, ws) = (ground.site.start(), &ground.scene.ws);
    for name in ["kept", "changed", "removed", "mode", "build/in"] {
        files::write(ws.join(name), "target");
    }
    files::write(ws.join("secret"), "root's alone");
    files::chmod(ws.join("secret"), 0o600);
    daemon.checkpoint(ws, "one");
    let before = Tree::read(ws);
    for name in ["own", "changed"] {
        files::write(ws.join(name), "live");
    }
    files::remove(ws.join("removed"));
    files::chmod(ws.join("mode"), 0o664);
    daemon.rollback(ws, "one");
    let after = Tree::read(ws);
    for name in ["own", "kept", "changed", "removed", "mode", "secret", "build/in"] {
        let (was, is) = (before.get(name).unwrap(), after.get(name).unwrap());
        assert_eq!((was.mode, was.mtime, was.content), (is.mode, is.mtime, is.content), "{name}");
    }
    let owner = |name: &str| std::fs::metadata(ws.join(name)).unwrap().uid();
    for name in ["kept", "secret", "build/in"] {
        assert_eq!(owner(name), 0, "{name} was in nobody's way");
    }
    for name in ["own", "changed", "removed", "mode"] {
        assert_eq!(owner(name), NOBODY, "{name} is a copy of the user's own");
    }
    // Nobody but root can take a name out of root's directory, or keep what only root can read.
    files::write(ws.join("build/new"), "live");
    let message = refused(&ground, &daemon);
    assert!(message.contains("build"), "{message}");
    files::remove(ws.join("build/new"));
    let time = before.get("build").unwrap().mtime;
    files::set_mtime(ws.join("build"), time.0, time.1);
    files::write(ws.join("new secret"), "root's alone");
    files::chmod(ws.join("new secret"), 0o600);
    let message = refused(&ground, &daemon);
    assert!(message.contains("new secret"), "{message}");
    daemon.stop();
}
