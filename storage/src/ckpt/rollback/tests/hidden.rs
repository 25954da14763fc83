//! What root has captured and a user could not have read is not given to that user by a rollback.

use std::os::unix::fs::MetadataExt;

use cofferdam_tests::user::{NOBODY, give, give_all};
use cofferdam_tests::{files, skip};

use super::peers::lab;
use super::recovery::dying_at;
use super::*;

const SECRET: &str = "of root only";

/// A snapshot as root takes it.
fn captured_by_root(lab: &mut Lab) -> Manifest {
    let peer = std::mem::replace(&mut lab.peer, Peer::own());
    let manifest = lab.capture();
    lab.peer = peer;
    manifest
}

fn write_secret(lab: &Lab, path: &str) {
    files::write(lab.at(path), SECRET);
    files::chmod(lab.at(path), 0o600);
}

/// A user's directory with some things in it that are root's, some of them for root alone.
fn scene() -> Option<(Lab, Manifest)> {
    let mut lab = lab()?;
    files::write(lab.at("mine"), "target");
    files::write(lab.at("dir/mine"), "target");
    give_all(lab.ws(), NOBODY);
    files::write(lab.at("open"), "for everybody");
    write_secret(&lab, "secret");
    write_secret(&lab, "dir/secret");
    files::write(lab.at("closed/inside"), SECRET);
    files::chmod(lab.at("closed"), 0o700);
    let target = captured_by_root(&mut lab);
    Some((lab, target))
}

/// Everything that a rollback said, by path.
fn said(warnings: &[Warning]) -> Vec<(String, WarningKind)> {
    warnings.iter().map(|warning| (warning.path.to_string(), warning.kind)).collect()
}

fn unreadable(path: &str) -> (String, WarningKind) {
    (path.to_owned(), WarningKind::Unreadable)
}

/// What is in the workspace now, and for files what is in them.
fn contents(lab: &Lab) -> Vec<(String, String)> {
    let tree = lab.tree();
    let names =
        tree.paths().filter(|path| !path.is_empty()).map(|path| String::from_utf8_lossy(path).into_owned());
    let show = |path: &str| match lab.at(path).is_file() {
        true => String::from_utf8_lossy(&files::read(lab.at(path))).into_owned(),
        false => String::new(),
    };
    names.map(|path| (path.clone(), show(&path))).collect()
}

fn gone(lab: &Lab) {
    for name in ["mine", "dir", "open", "secret", "closed"] {
        files::remove(lab.at(name));
    }
}

/// What there is after a rollback that found all of it gone.
#[track_caller]
fn assert_back_without_secrets(lab: &Lab) {
    for path in ["secret", "dir/secret", "closed/inside"] {
        assert!(!lab.at(path).exists(), "{path}");
    }
    for (path, content) in [("mine", "target"), ("dir/mine", "target"), ("open", "for everybody")] {
        assert_eq!(files::read(lab.at(path)), content.as_bytes(), "{path}");
    }
    assert_eq!(std::fs::metadata(lab.at("closed")).unwrap().uid(), NOBODY);
}

#[test]
fn what_is_gone_does_not_come_back_as_the_users_if_only_root_could_read_it() {
    let Some((lab, target)) = scene() else { skip!("only root serves others") };
    gone(&lab);
    let done = lab.roll_back(&target);
    assert_back_without_secrets(&lab);
    let hidden: Vec<_> =
        said(&done.warnings).into_iter().filter(|(_, kind)| *kind == WarningKind::Unreadable).collect();
    assert_eq!(hidden, ["closed", "dir/secret", "secret"].map(unreadable));
    // For root all of it does.
    let root = Lab { peer: Peer::own(), ..lab };
    assert_eq!(root.roll_back(&target).warnings, []);
    assert_eq!(files::read(root.at("closed/inside")), SECRET.as_bytes());
    assert_eq!(files::read(root.at("dir/secret")), SECRET.as_bytes());
    assert_eq!(std::fs::metadata(root.at("secret")).unwrap().uid(), 0);
}

#[test]
fn what_stands_in_the_place_of_something_hidden_is_left_alone() {
    let Some((lab, target)) = scene() else { skip!("only root serves others") };
    files::remove(lab.at("secret"));
    files::remove(lab.at("closed"));
    files::write(lab.at("secret"), "the user's own");
    files::write(lab.at("closed/inside"), "the user's own");
    files::write(lab.at("closed/other"), "the user's own");
    for name in ["secret", "closed"] {
        give_all(lab.at(name), NOBODY);
    }
    // Root's, and still unreadable.
    files::write(lab.at("dir/secret"), "newer");
    files::write(lab.at("mine"), "live");
    let done = lab.roll_back(&target);
    let said = said(&done.warnings);
    for path in ["closed", "dir/secret", "secret"] {
        assert!(said.contains(&unreadable(path)), "{path}: {said:?}");
    }
    for path in ["secret", "closed/inside", "closed/other"] {
        assert_eq!(files::read(lab.at(path)), b"the user's own", "{path}");
    }
    assert_eq!(files::read(lab.at("dir/secret")), b"newer");
    assert_eq!(files::read(lab.at("mine")), b"target");
}

#[test]
fn what_is_still_there_and_hidden_stays_as_it_is() {
    let Some((lab, target)) = scene() else { skip!("only root serves others") };
    let before = lab.tree();
    files::write(lab.at("mine"), "live");
    files::write(lab.at("closed/more"), SECRET);
    lab.roll_back(&target);
    files::remove(lab.at("closed/more"));
    let (secs, nanos) = before.get("closed").unwrap().mtime;
    files::set_mtime(lab.at("closed"), secs, nanos);
    before.assert_same(&lab.tree(), "rolled back");
}

#[test]
fn names_of_a_hidden_file_are_neither_made_nor_taken_apart() {
    let Some(mut lab) = lab() else { skip!("only root serves others") };
    files::mkdir(lab.at("sub"));
    give_all(lab.ws(), NOBODY);
    write_secret(&lab, "a");
    files::hard_link(lab.at("a"), lab.at("sub/b"));
    files::hard_link(lab.at("a"), lab.at("c"));
    files::write(lab.at("p"), "own");
    write_secret(&lab, "q");
    give(lab.at("p"), NOBODY);
    let target = captured_by_root(&mut lab);
    // One name of the secret stays; the user's own file has got the name of another.
    files::remove(lab.at("a"));
    files::remove(lab.at("sub/b"));
    files::remove(lab.at("q"));
    files::hard_link(lab.at("p"), lab.at("q"));
    let before = contents(&lab);
    let done = lab.roll_back(&target);
    assert_eq!(contents(&lab), before);
    let said = said(&done.warnings);
    for path in ["a", "q", "sub/b"] {
        assert!(said.contains(&unreadable(path)), "{path}: {said:?}");
    }
}

#[test]
fn recovery_reveals_no_more_than_the_rollback() {
    const STEPS: [&str; 8] = [
        "rollback.journaled",
        "rollback.staged",
        "rollback.switch-journaled",
        "rollback.switching",
        "rollback.switched",
        "rollback.metadata",
        "rollback.done-journaled",
        "rollback.cleaned",
    ];
    for step in STEPS {
        let Some((lab, target)) = scene() else { skip!("only root serves others") };
        gone(&lab);
        let _ = lab.attempt(&dying_at(step, 1), &target);
        assert!(contents(&lab).iter().all(|(_, content)| content != SECRET), "{step}");
        match &lab.recover(&Disk::default())[0].outcome {
            Ok(Outcome::Finished) => assert_back_without_secrets(&lab),
            Ok(Outcome::TakenBack) => assert_eq!(contents(&lab), [], "{step}"),
            Err(why) => panic!("{step}: {why}"),
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn of_a_workspace_that_was_roots_alone_nothing_is_given_back() {
    let Some(mut lab) = lab() else { skip!("only root serves others") };
    files::write(lab.at("file"), SECRET);
    give(lab.ws(), 0);
    files::chmod(lab.ws(), 0o700);
    let target = captured_by_root(&mut lab);
    files::remove(lab.at("file"));
    files::write(lab.at("mine"), "live");
    give_all(lab.ws(), NOBODY);
    let before = contents(&lab);
    let done = lab.roll_back(&target);
    assert_eq!(contents(&lab), before);
    let root = Warning { path: RelPath::ROOT, kind: WarningKind::Unreadable };
    assert!(done.warnings.contains(&root), "{done:?}");
}
