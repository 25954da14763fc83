//! Every kind of file in the place of every other.

use cofferdam_tests::files;

use super::*;

type Make = fn(&Path);

/// Everything a name can stand for, made at a path.
const KINDS: [(&str, Make); 8] = [
    ("nothing", |_| ()),
    ("file", |path| files::write(path, "content")),
    ("other-file", |path| files::write(path, "other content")),
    ("directory", |path| {
        files::write(path.join("in/deep"), "x");
        files::symlink("deep", path.join("in/link"));
    }),
    ("link", |path| files::symlink("file", path)),
    ("link-to-a-directory", |path| files::symlink("/etc", path)),
    ("fifo", |path| files::fifo(path)),
    ("socket", |path| files::socket(path)),
];

#[test]
fn every_kind_of_file_replaces_every_other() {
    let lab = Lab::new();
    let every = || KINDS.iter().flat_map(|(old, make_old)| KINDS.iter().map(move |new| (old, make_old, new)));
    for (old, make, (new, _)) in every() {
        make(&lab.at(&format!("{old}-to-{new}")));
    }
    let (before, target) = (lab.tree(), lab.capture());
    for (old, _, (new, make)) in every() {
        let at = lab.at(&format!("{old}-to-{new}"));
        files::remove(&at);
        make(&at);
    }
    let (after, undo) = (lab.tree(), lab.capture());
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
    lab.roll_back(&undo);
    after.assert_same(&lab.tree(), "undone");
}

#[test]
fn a_link_that_took_a_files_place_is_replaced_and_not_followed() {
    let lab = Lab::new();
    files::write(lab.at("a"), "inside");
    files::write(lab.at("d/a"), "inside");
    let (before, target) = (lab.tree(), lab.capture());
    let outside = lab.dir.path().join("outside");
    files::write(outside.join("a"), "outside");
    let kept = Tree::read(&outside);
    files::remove(lab.at("a"));
    files::symlink(outside.join("a"), lab.at("a"));
    files::remove(lab.at("d"));
    files::symlink(&outside, lab.at("d"));
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
    kept.assert_same(&Tree::read(&outside), "outside");
}

#[test]
fn modes_and_attributes_come_back() {
    let lab = Lab::new();
    let modes = [0o755, 0o4755, 0o2711, 0o600, 0o444, 0o640];
    for mode in modes {
        files::write(lab.at(&format!("{mode:o}")), "x");
        files::write(lab.at(&format!("kept-{mode:o}")), "x");
    }
    files::mkdir(lab.at("sticky"));
    files::mkdir(lab.at("shared"));
    let user = |path: &str| files::set_xattr(lab.at(path), "user.note", b"a note");
    if !user("755") {
        cofferdam_tests::skip!("the filesystem has no extended attributes");
    }
    assert!(user("kept-444") && user("shared"));
    for mode in modes {
        files::chmod(lab.at(&format!("{mode:o}")), mode);
        files::chmod(lab.at(&format!("kept-{mode:o}")), mode);
    }
    files::chmod(lab.at("sticky"), 0o1777);
    files::chmod(lab.at("shared"), 0o2775);
    let (before, target) = (lab.tree(), lab.capture());
    for mode in modes {
        files::remove(lab.at(&format!("{mode:o}")));
        files::chmod(lab.at(&format!("kept-{mode:o}")), 0o666);
    }
    assert!(files::set_xattr(lab.at("kept-444"), "user.note", b"another"));
    assert!(files::set_xattr(lab.at("kept-640"), "user.more", b"more"));
    files::remove(lab.at("sticky"));
    rustix::fs::removexattr(lab.at("shared"), c"user.note").unwrap();
    files::chmod(lab.at("shared"), 0o755);
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
}

#[test]
fn owners_devices_and_capabilities_come_back_for_root() {
    if !cofferdam_tests::user::is_root() {
        cofferdam_tests::skip!("only root gives files away");
    }
    use cofferdam_tests::user::{NOBODY, give};
    /// `cap_net_raw+ep` as the kernel keeps it.
    const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let lab = Lab::new();
    for name in ["replaced", "changed"] {
        files::write(lab.at(name), "x");
        give(lab.at(name), NOBODY);
        files::chmod(lab.at(name), 0o6755);
        assert!(files::set_xattr(lab.at(name), "security.capability", &CAPABILITY));
    }
    files::null_device(lab.at("null"));
    files::symlink("x", lab.at("link"));
    give(lab.at("link"), NOBODY);
    files::mkdir(lab.at("theirs"));
    give(lab.at("theirs"), NOBODY);
    let (before, target) = (lab.tree(), lab.capture());
    for name in ["replaced", "null", "theirs"] {
        files::remove(lab.at(name));
    }
    for name in ["changed", "link"] {
        give(lab.at(name), 0);
    }
    assert_eq!(lab.roll_back(&target).warnings, []);
    before.assert_same(&lab.tree(), "rolled back");
}

#[test]
fn what_a_directory_hands_down_reaches_nothing_that_is_restored() {
    let lab = Lab::new();
    files::write(lab.at("dir/file"), "x");
    files::write(lab.at("file"), "x");
    let (before, target) = (lab.tree(), lab.capture());
    files::remove(lab.at("dir"));
    files::write(lab.at("file"), "other");
    // user::rwx, group::r-x, group 1: rwx, mask::rwx, other::r-x
    let acl: Vec<u8> = [
        &2u32.to_le_bytes()[..],
        &[1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff],
        &[4, 0, 5, 0, 0xff, 0xff, 0xff, 0xff],
        &[8, 0, 7, 0, 1, 0, 0, 0],
        &[16, 0, 7, 0, 0xff, 0xff, 0xff, 0xff],
        &[32, 0, 5, 0, 0xff, 0xff, 0xff, 0xff],
    ]
    .concat();
    files::chmod(lab.ws(), 0o2755);
    if !files::set_xattr(lab.ws(), "system.posix_acl_default", &acl) {
        cofferdam_tests::skip!("the filesystem has no access control lists");
    }
    let (live, undo) = (lab.tree(), lab.capture());
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
    lab.roll_back(&undo);
    live.assert_same(&lab.tree(), "undone");
}
