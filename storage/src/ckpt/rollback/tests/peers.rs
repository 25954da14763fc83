//! What a rollback may do for somebody who is not root.

use cofferdam_tests::user::{NOBODY, SOMEBODY, give, give_all, is_root};
use cofferdam_tests::{files, skip};

use super::*;

/// A workspace of an ordinary user, served by root's daemon. `None` for whoever is not root.
pub(super) fn lab() -> Option<Lab> {
    if !is_root() {
        return None;
    }
    let mut lab = Lab::new();
    lab.peer = Peer { uid: NOBODY, gid: NOBODY, groups: Vec::new() };
    files::chmod(lab.dir.path(), 0o755);
    give(lab.ws(), NOBODY);
    Some(lab)
}

#[test]
fn a_users_tree_comes_back_as_the_users() {
    let Some(lab) = lab() else { skip!("only root serves others") };
    files::write(lab.at("dir/file"), "target");
    files::write(lab.at("tool"), "target");
    files::chmod(lab.at("dir"), 0o555);
    give_all(lab.ws(), NOBODY);
    files::chmod(lab.at("tool"), 0o755);
    files::chmod(lab.at("dir"), 0o2555);
    files::chmod(lab.ws(), 0o555);
    let (before, target) = (lab.tree(), lab.capture());
    files::remove(lab.at("dir"));
    files::remove(lab.at("tool"));
    files::write(lab.at("extra/file"), "live");
    give_all(lab.at("extra"), NOBODY);
    files::chmod(lab.at("extra"), 0o500);
    assert_eq!(lab.roll_back(&target).warnings, []);
    before.assert_same(&lab.tree(), "rolled back");
}

#[test]
fn foreign_owners_set_id_bits_and_capabilities_are_not_restored_for_a_user() {
    let Some(lab) = lab() else { skip!("only root serves others") };
    const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    files::write(lab.at("root"), "x");
    files::chmod(lab.at("root"), 0o6755);
    files::write(lab.at("own"), "x");
    give(lab.at("own"), NOBODY);
    files::chmod(lab.at("own"), 0o4755);
    files::write(lab.at("capable"), "x");
    give(lab.at("capable"), NOBODY);
    assert!(files::set_xattr(lab.at("capable"), "security.capability", &CAPABILITY));
    let target = lab.capture();
    for name in ["root", "own", "capable"] {
        files::remove(lab.at(name));
    }
    let done = lab.roll_back(&target);
    let warned: Vec<_> = done.warnings.iter().map(|w| (w.path.to_string(), w.kind)).collect();
    let lost = WarningKind::OwnerNotRestored;
    assert_eq!(warned, ["capable", "own", "root"].map(|path| (path.to_owned(), lost)));
    let now = lab.tree();
    let file = now.get("root").unwrap();
    assert_eq!((file.uid, file.gid, file.mode & 0o7777), (NOBODY, NOBODY, 0o755));
    assert_eq!(now.get("own").unwrap().mode & 0o7777, 0o755);
    assert_eq!(now.get("capable").unwrap().xattrs, BTreeMap::new());
}

#[test]
fn what_became_unreadable_is_not_removed_without_a_copy() {
    let lab = lab().unwrap_or_else(Lab::new);
    let target = lab.capture();
    files::write(lab.at("file"), "live");
    files::write(lab.at("dir/file"), "live");
    if is_root() {
        give_all(lab.ws(), NOBODY);
    }
    let (from, live) = (now(), lab.capture());
    for path in ["file", "dir/file"] {
        files::append(lab.at(path), " and late");
        files::chmod(lab.at(path), 0);
        let (result, late) = lab.attempt_from(&Disk::default(), &live, from, &target);
        assert!(result.unwrap_err().to_string().contains("make it readable"));
        assert_eq!(late.settled, Some(Outcome::TakenBack));
        assert_eq!(late.content(path).unwrap(), b"live");
        lab.assert_nothing_left();
        files::chmod(lab.at(path), 0o644);
        assert_eq!(files::read(lab.at(path)), b"live and late");
    }
}

#[test]
fn a_directory_that_was_opened_since_is_not_closed_again() {
    let lab = lab().unwrap_or_else(Lab::new);
    files::write(lab.at("closed/file"), "whatever it was");
    if is_root() {
        give_all(lab.ws(), NOBODY);
    }
    files::chmod(lab.at("closed"), 0);
    let target = lab.capture();
    files::chmod(lab.at("closed"), 0o755);
    files::write(lab.at("closed/new"), "live");
    files::write(lab.at("other"), "live");
    if is_root() {
        give_all(lab.ws(), NOBODY);
    }
    let (before, live) = (lab.tree(), lab.capture());
    let warned: Vec<_> = lab.roll_back(&target).warnings.into_iter().map(|w| w.path.to_string()).collect();
    assert_eq!(warned, ["closed"]);
    assert!(!lab.at("other").exists());
    assert_eq!(files::read(lab.at("closed/new")), b"live");
    lab.roll_back(&live);
    before.assert_same(&lab.tree(), "undone");
}

#[test]
fn what_was_kept_before_the_rollback_failed_is_durable_before_it_is_removed() {
    let lab = lab().unwrap_or_else(Lab::new);
    files::mkdir(lab.at("dir"));
    let target = lab.capture();
    files::write(lab.at("dir/file"), "live");
    files::write(lab.at("secret"), "live");
    if is_root() {
        give_all(lab.ws(), NOBODY);
    }
    let (from, live) = (now(), lab.capture());
    files::append(lab.at("dir/file"), " and late");
    files::append(lab.at("secret"), " and late");
    files::chmod(lab.at("secret"), 0);
    let (dir, away) = (lab.at("dir"), lab.at("away"));
    let act = move |_| {
        files::rename(&dir, &away);
        Ok(())
    };
    let (result, late) = lab.attempt_from(&at_step("rollback.switched", act), &live, from, &target);
    assert!(result.unwrap_err().to_string().contains("make it readable"));
    assert_eq!(late.settled, Some(Outcome::TakenBack));
    lab.assert_nothing_left();
    // The directory it would have gone back to is not there.
    assert!(!lab.at("away/file").exists());
    assert_eq!(late.content("dir/file").unwrap(), b"live and late");
    assert_eq!(late.published, late.kept.len());
}

#[test]
fn a_foreign_file_that_changed_is_replaced_by_a_copy_of_our_own() {
    let Some(lab) = lab() else { skip!("only root serves others") };
    files::write(lab.at("theirs"), "x");
    give(lab.at("theirs"), SOMEBODY);
    files::set_mtime(lab.at("theirs"), 1_500_000_000, 5);
    let target = lab.capture();
    files::chmod(lab.at("theirs"), 0o444);
    files::set_mtime(lab.at("theirs"), 1_600_000_000, 5);
    let done = lab.roll_back(&target);
    assert_eq!(done.warnings.len(), 1, "{done:?}");
    let now = lab.tree();
    let file = now.get("theirs").unwrap();
    assert_eq!((file.uid, file.mode & 0o7777, file.mtime), (NOBODY, 0o644, (1_500_000_000, 5)));
    // Once it is ours there is nothing more to do, and the user is told again that it was not always so.
    let again = lab.roll_back(&target);
    assert_eq!((again.changed, again.warnings), (0, done.warnings));
}

#[test]
fn what_a_user_may_not_do_is_refused_with_every_path() {
    let Some(lab) = lab() else { skip!("only root serves others") };
    files::write(lab.at("root-dir/file"), "target");
    files::write(lab.at("sticky/theirs"), "target");
    files::write(lab.at("fine"), "target");
    give(lab.at("fine"), NOBODY);
    let target = lab.capture();
    files::write(lab.at("root-dir/file"), "live");
    files::write(lab.at("sticky/theirs"), "live");
    files::write(lab.at("fine"), "live");
    files::write(lab.at("secret"), "live");
    files::chmod(lab.at("secret"), 0o600);
    files::write(lab.at("mine/root-made/file"), "live");
    give(lab.at("mine"), NOBODY);
    files::chmod(lab.at("sticky"), 0o1777);
    let refused = lab.refuse(&target);
    let paths: std::collections::BTreeSet<_> = refused.iter().map(|(path, _)| path.as_str()).collect();
    let expected = ["mine/root-made", "root-dir", "secret", "sticky", "sticky/theirs"];
    assert!(paths.iter().eq(&expected), "{refused:?}");
}

#[test]
fn recovery_has_no_more_rights_than_the_rollback_had() {
    let Some(lab) = lab() else { skip!("only root serves others") };
    files::write(lab.at("file"), "target");
    give_all(lab.ws(), NOBODY);
    let target = lab.capture();
    files::write(lab.at("file"), "live");
    // In the middle of it the directory stops being the user's, so that it can be neither finished nor taken back.
    let ws = lab.ws();
    let disk = at_step("rollback.switching", move |_| {
        crate::peer::as_daemon(|| give(&ws, 0));
        Ok(())
    });
    let (result, late) = lab.attempt(&disk, &target);
    assert!(result.is_err(), "{result:?}");
    assert_eq!(late.settled, None);
    let recovered = lab.recover(&Disk::default());
    assert!(recovered[0].outcome.is_err(), "{recovered:?}");
    give(lab.ws(), NOBODY);
    assert_eq!(lab.recover(&Disk::default())[0].outcome, Ok(Outcome::TakenBack));
    assert_eq!(files::read(lab.at("file")), b"live");
    lab.assert_nothing_left();
}

#[test]
fn metadata_of_every_kind_comes_back_with_no_more_than_the_users_rights() {
    let Some(lab) = lab() else { skip!("only root serves others") };
    files::write(lab.at("file"), "x");
    files::symlink("x", lab.at("link"));
    files::fifo(lab.at("fifo"));
    let attributes = files::set_xattr(lab.at("file"), "user.note", b"target");
    give_all(lab.ws(), NOBODY);
    let dress = |mode, secs| {
        for name in ["file", "fifo"] {
            files::chmod(lab.at(name), mode);
        }
        for name in ["file", "link", "fifo"] {
            files::set_mtime(lab.at(name), secs, 5);
        }
    };
    dress(0o444, 1_500_000_000);
    let (before, target) = (lab.tree(), lab.capture());
    dress(0o600, 1_600_000_000);
    if attributes {
        assert!(files::set_xattr(lab.at("file"), "user.note", b"live"));
        assert!(files::set_xattr(lab.at("file"), "user.more", b"live"));
    }
    let inode = |name| std::os::unix::fs::MetadataExt::ino(&std::fs::symlink_metadata(lab.at(name)).unwrap());
    let inodes = ["file", "link", "fifo"].map(inode);
    assert_eq!(lab.roll_back(&target).warnings, []);
    before.assert_same(&lab.tree(), "rolled back");
    // The user's own file needs no copy for that.
    assert_eq!(["file", "link", "fifo"].map(inode), inodes);
}
