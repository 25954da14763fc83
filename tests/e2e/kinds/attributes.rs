//! What is said of files beside their content: extended attributes, access lists, owners, capabilities.

use std::path::Path;

use cofferdam_tests::user::{NOBODY, SOMEBODY, give};
use cofferdam_tests::{files, project};

/// Sets an attribute where the filesystem has such.
fn attribute(at: impl AsRef<Path>, name: &str, value: &[u8]) {
    let _ = files::set_xattr(at, name, value);
}

pub(super) fn make_attributes(dir: &Path) {
    for name in ["changed", "taken", "given", "removed", "kept", "rewritten"] {
        files::write(dir.join(name).join("file"), "x");
        for at in [dir.join(name), dir.join(name).join("file")] {
            attribute(&at, "user.empty", b"");
            attribute(&at, "user.bytes", b"\0\xff\n");
            attribute(&at, &format!("user.{}", "n".repeat(100)), &project::noise(400));
            files::set_mtime(&at, 1_600_000_000, 6);
        }
    }
    files::write(dir.join("read-only"), "x");
    attribute(dir.join("read-only"), "user.note", b"one");
    files::chmod(dir.join("read-only"), 0o444);
}

pub(super) fn change_attributes(dir: &Path) {
    if !files::set_xattr(dir.join("given"), "user.given", b"1") {
        return;
    }
    attribute(dir.join("given/file"), "user.given", b"1");
    for at in ["changed", "changed/file"] {
        attribute(dir.join(at), "user.bytes", b"other");
        attribute(dir.join(at), "user.empty", b"not");
    }
    for at in ["taken", "taken/file"] {
        files::remove_xattr(dir.join(at), "user.bytes");
        files::remove_xattr(dir.join(at), "user.empty");
    }
    files::remove(dir.join("removed"));
    files::remove(dir.join("rewritten/file"));
    files::write(dir.join("rewritten/file"), "x");
    files::chmod(dir.join("read-only"), 0o644);
    attribute(dir.join("read-only"), "user.note", b"other");
    files::chmod(dir.join("read-only"), 0o444);
}

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

pub(super) fn make_acls(dir: &Path) {
    let (acl, handed_down) =
        (files::acl(6, Some((4, SOMEBODY)), 0, 0), files::acl(7, Some((5, SOMEBODY)), 5, 0));
    for name in ["changed", "taken", "removed", "masked", "kept"] {
        files::write(dir.join(name).join("before"), "x");
        attribute(dir.join(name).join("before"), ACCESS, &acl);
        attribute(dir.join(name), DEFAULT, &handed_down);
        attribute(dir.join(name), ACCESS, &handed_down);
        // What gets its list from the directory, and what has none in spite of that.
        files::write(dir.join(name).join("sub/after"), "x");
        files::write(dir.join(name).join("plain"), "x");
        if files::set_xattr(dir.join(name).join("plain"), ACCESS, &files::acl(6, None, 4, 4)) {
            files::chmod(dir.join(name).join("plain"), 0o644);
        }
    }
    files::write(dir.join("given/file"), "x");
    files::mkdir(dir.join("given/sub"));
}

pub(super) fn change_acls(dir: &Path) {
    let other = files::acl(7, Some((7, SOMEBODY)), 7, 1);
    if !files::set_xattr(dir.join("given"), DEFAULT, &other) {
        return;
    }
    attribute(dir.join("given/file"), ACCESS, &other);
    attribute(dir.join("given/sub"), DEFAULT, &other);
    files::write(dir.join("given/new"), "gets the list");
    for name in [DEFAULT, ACCESS] {
        attribute(dir.join("changed"), name, &other);
        files::remove_xattr(dir.join("taken"), name);
    }
    attribute(dir.join("changed/before"), ACCESS, &other);
    files::remove_xattr(dir.join("taken/before"), ACCESS);
    files::remove(dir.join("taken/sub"));
    files::remove(dir.join("removed"));
    // With a list, the bits of the group are its mask.
    files::chmod(dir.join("masked/before"), 0o600);
    files::chmod(dir.join("masked"), 0o700);
    files::write(dir.join("masked/sub/after"), "changed");
}

pub(super) fn make_owners(dir: &Path) {
    for name in ["kept", "changed", "removed"] {
        let at = dir.join(name);
        files::write(at.join("file"), "x");
        files::write(at.join("tool"), "x");
        files::write(at.join("sub/file"), "x");
        files::symlink("file", at.join("link"));
        files::fifo(at.join("fifo"));
        files::socket(at.join("socket"));
        files::null_device(at.join("null"));
        for (n, path) in
            ["file", "tool", "sub/file", "sub", "link", "fifo", "socket", "null", ""].iter().enumerate()
        {
            std::os::unix::fs::lchown(at.join(path), Some(NOBODY - n as u32), Some(1000 + n as u32)).unwrap();
        }
        files::chmod(at.join("tool"), 0o6755);
        files::chmod(at.join("sub"), 0o2770);
        files::set_mtime(at.join("link"), 1_100_000_000, 9);
    }
}

pub(super) fn change_owners(dir: &Path) {
    for path in ["file", "tool", "sub/file", "sub", "link", "fifo", "socket", "null", ""] {
        give(dir.join("changed").join(path), 4242);
    }
    files::remove(dir.join("removed"));
}

pub(super) fn make_capabilities(dir: &Path) {
    for name in ["kept", "taken", "given away", "removed", "written", "changed"] {
        files::write(dir.join(name), "x");
        give(dir.join(name), NOBODY);
        files::chmod(dir.join(name), 0o755);
        attribute(dir.join(name), "security.capability", &files::NET_BIND_SERVICE);
    }
    files::write(dir.join("given"), "x");
}

pub(super) fn change_capabilities(dir: &Path) {
    files::remove_xattr(dir.join("taken"), "security.capability");
    give(dir.join("given away"), SOMEBODY);
    files::remove(dir.join("removed"));
    files::append(dir.join("written"), "to write takes it away");
    let mut other = files::NET_BIND_SERVICE;
    other[5] = 0x20;
    attribute(dir.join("changed"), "security.capability", &other);
    attribute(dir.join("given"), "security.capability", &other);
}

/// Nobody but root may read these.
pub(super) fn make_unreadable(dir: &Path) {
    for name in ["kept", "changed", "removed"] {
        files::write(dir.join(name).join("none/file"), "x");
        files::write(dir.join(name).join("write-only"), "x");
        files::write(dir.join(name).join("file"), "x");
        files::chmod(dir.join(name).join("none"), 0);
        files::chmod(dir.join(name).join("write-only"), 0o222);
        files::chmod(dir.join(name).join("file"), 0);
        give(dir.join(name).join("none"), NOBODY);
    }
}

pub(super) fn change_unreadable(dir: &Path) {
    files::write(dir.join("changed/none/file"), "changed");
    files::write(dir.join("changed/none/new"), "new");
    files::append(dir.join("changed/file"), "changed");
    files::chmod(dir.join("changed/write-only"), 0o333);
    files::remove(dir.join("removed"));
}
