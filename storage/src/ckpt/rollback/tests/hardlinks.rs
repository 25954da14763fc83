//! Names of one file are names of one file again, and no more than have to be get another.

use std::os::unix::fs::MetadataExt;

use cofferdam_tests::files;
use proptest::prelude::*;

use super::*;

fn ino(lab: &Lab, path: &str) -> u64 {
    std::fs::symlink_metadata(lab.at(path)).unwrap().ino()
}

#[test]
fn a_broken_link_is_a_link_again_and_the_file_that_stays_is_kept() {
    let lab = Lab::new();
    files::write(lab.at("a"), "shared");
    files::hard_link(lab.at("a"), lab.at("b"));
    files::mkdir(lab.at("sub"));
    files::hard_link(lab.at("a"), lab.at("sub/c"));
    let (before, target) = (lab.tree(), lab.capture());
    let kept = ino(&lab, "a");
    files::remove(lab.at("b"));
    files::write(lab.at("b"), "an editor's copy");
    files::remove(lab.at("sub"));
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
    assert_eq!([ino(&lab, "a"), ino(&lab, "b"), ino(&lab, "sub/c")], [kept; 3]);
}

#[test]
fn files_that_became_one_are_several_again() {
    let lab = Lab::new();
    for name in ["a", "b", "c"] {
        files::write(lab.at(name), "same");
    }
    let (before, target) = (lab.tree(), lab.capture());
    for name in ["b", "c"] {
        files::remove(lab.at(name));
        files::hard_link(lab.at("a"), lab.at(name));
    }
    let (linked, undo) = (lab.tree(), lab.capture());
    let kept = ino(&lab, "a");
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
    assert_eq!(ino(&lab, "a"), kept);
    lab.roll_back(&undo);
    linked.assert_same(&lab.tree(), "undone");
    assert_eq!(ino(&lab, "a"), kept);
}

#[test]
fn a_linked_file_with_new_content_is_replaced_under_all_its_names() {
    let lab = Lab::new();
    files::write(lab.at("a"), "old");
    files::hard_link(lab.at("a"), lab.at("b"));
    files::symlink("x", lab.at("l"));
    files::hard_link(lab.at("l"), lab.at("m"));
    files::fifo(lab.at("f"));
    files::hard_link(lab.at("f"), lab.at("g"));
    let (before, target) = (lab.tree(), lab.capture());
    files::write(lab.at("a"), "new content");
    for name in ["l", "m", "f"] {
        files::remove(lab.at(name));
    }
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
}

#[test]
fn metadata_of_a_linked_file_is_set_once() {
    let lab = Lab::new();
    files::write(lab.at("a"), "x");
    files::hard_link(lab.at("a"), lab.at("b"));
    let (before, target) = (lab.tree(), lab.capture());
    files::chmod(lab.at("a"), 0o600);
    files::set_mtime(lab.at("a"), 1_700_000_000, 1);
    assert_eq!(lab.roll_back(&target).changed, 1);
    let after = lab.tree();
    before.assert_same(&after, "rolled back");
    before.assert_same_inodes(&after, before.paths(), "rolled back");
}

#[test]
fn a_rename_onto_another_name_of_the_file_leaves_nothing_behind() {
    let lab = Lab::new();
    files::write(lab.at("dir/a"), "x");
    files::hard_link(lab.at("dir/a"), lab.at("dir/b"));
    files::write(lab.at("c"), "x");
    let (before, target) = (lab.tree(), lab.capture());
    files::remove(lab.at("c"));
    files::remove(lab.at("dir/b"));
    files::hard_link(lab.at("dir/a"), lab.at("c"));
    lab.roll_back(&target);
    before.assert_same(&lab.tree(), "rolled back");
}

/// Which names are one file: for each name the number of its file, with a content that goes with the number; none if
/// there is no such name.
type Grouping = Vec<Option<u8>>;

const NAMES: [&str; 6] = ["a", "b", "d/a", "d/b", "e/a", "e/b"];

fn build(lab: &Lab, grouping: &Grouping, contents: &[u8]) {
    for name in std::fs::read_dir(lab.ws()).unwrap() {
        files::remove(name.unwrap().path());
    }
    let mut first: BTreeMap<u8, &str> = BTreeMap::new();
    for (name, group) in NAMES.iter().zip(grouping) {
        let Some(group) = group else { continue };
        match first.get(group) {
            Some(first) => {
                files::mkdir(lab.at(name).parent().unwrap());
                files::hard_link(lab.at(first), lab.at(name));
            }
            None => {
                let content = contents[usize::from(*group)];
                files::write(lab.at(name), [content]);
                files::set_mtime(lab.at(name), i64::from(content), 5);
                first.insert(*group, name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_grouping_of_names_becomes_any_other(
        old in proptest::collection::vec(proptest::option::weighted(0.8, 0..4u8), NAMES.len()),
        new in proptest::collection::vec(proptest::option::weighted(0.8, 0..4u8), NAMES.len()),
        contents in proptest::collection::vec(0..3u8, 4),
    ) {
        let lab = Lab::new();
        build(&lab, &old, &contents);
        let (before, target) = (lab.tree(), lab.capture());
        build(&lab, &new, &contents);
        let (after, undo) = (lab.tree(), lab.capture());
        lab.roll_back(&target);
        before.assert_same(&lab.tree(), "rolled back");
        lab.roll_back(&undo);
        after.assert_same(&lab.tree(), "undone");
    }
}
