//! What is in the trash, and how it comes back.

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::peer::Peer;

fn trash(store: &Store) -> Vec<Trashed> {
    store.trash(&Peer::own()).unwrap()
}

/// What is in the trash: names of snapshots, and what is known of trees before rollbacks.
fn names(store: &Store) -> Vec<String> {
    let name = |one: Trashed| match one.tree {
        TrashedTree::Snapshot { id, .. } => id.to_string(),
        TrashedTree::Before(kind) => kind.before(),
    };
    trash(store).into_iter().map(name).collect()
}

fn item(store: &Store, name: &str) -> u64 {
    let at = names(store).iter().position(|one| one == name).unwrap();
    trash(store)[at].item
}

#[test]
fn a_snapshot_that_was_deleted_by_force_comes_back_whole() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let new = NewSnapshot { message: Some("why".to_owned()), pin: true, ..named("one") };
    store.checkpoint(&Peer::own(), &ws, &new).unwrap();
    let before = shown(&store);
    let tree = place.tree();
    assert_eq!(names(&store), [""; 0]);
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Trash).unwrap();
    place.write(&[("a", "changed")]);
    collect_all(&store);
    assert_eq!(names(&store), ["one"]);
    let one = &trash(&store)[0];
    assert_eq!((&one.workspace.id, one.workspace.path.as_path()), (&ws, place.ws().as_path()));
    assert!(one.until > one.created_at);
    let back = store.restore_trashed(&Peer::own(), &ws, one.item, None, false).unwrap();
    assert_eq!(vec![("one".to_owned(), back)], before);
    assert_eq!(shown(&store), before);
    assert_eq!(names(&store), [""; 0]);
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    assert_eq!(place.tree(), tree);
    assert_sound(&store, 1);
}

#[test]
fn what_a_forgotten_workspace_had_comes_back_into_the_one_registered_anew() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    store.recover(&Peer::own(), &ws).unwrap();
    let lost = item(&store, "one");
    let gone = store.restore_trashed(&Peer::own(), &ws, lost, None, false);
    assert!(matches!(gone, Err(Error::WorkspaceNotFound(_))));
    let anew = init(&store, place.ws()).unwrap();
    store.restore_trashed(&Peer::own(), &anew, lost, None, true).unwrap();
    collect_all(&store);
    assert_eq!(
        shown(&store).iter().map(|(name, one)| (name.as_str(), one.pinned)).collect::<Vec<_>>(),
        [("one", true)]
    );
    assert_sound(&store, 1);
}

#[test]
fn the_tree_before_an_older_rollback_comes_back_as_a_snapshot_that_says_what_it_is() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    place.write(&[("a", "the day before")]);
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    place.write(&[("a", "today")]);
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    let lost = item(&store, "the tree before the rollback to one");
    let back = store.restore_trashed(&Peer::own(), &ws, lost, None, false).unwrap();
    assert_eq!(back.id.as_str(), format!("safety-{lost}"));
    assert_eq!(back.message.as_deref(), Some("the tree before the rollback to one"));
    store.rollback(&Peer::own(), &ws, &back.id).unwrap();
    assert_eq!(place.read("a"), "the day before");
    assert_sound(&store, 2);
}

#[test]
fn a_name_that_is_taken_meanwhile_is_refused_and_another_can_be_given() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Trash).unwrap();
    checkpoint(&store, &ws, "one");
    let lost = item(&store, "one");
    let taken = store.restore_trashed(&Peer::own(), &ws, lost, None, false);
    assert!(matches!(taken, Err(Error::SnapshotExists(name)) if name == id("one")));
    assert_eq!(names(&store), ["one"]);
    store.restore_trashed(&Peer::own(), &ws, lost, Some(&id("the older one")), false).unwrap();
    let listed: Vec<_> = shown(&store).into_iter().map(|(name, _)| name).collect();
    // In the order in which they were taken.
    assert_eq!(listed, ["the older one", "one"]);
    assert_sound(&store, 2);
}

#[test]
fn what_is_not_in_the_trash_or_anothers_does_not_come_back() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    checkpoint(&store, &ws, "two");
    store.delete(&Peer::own(), &ws, &[id("one")], Removal::Trash).unwrap();
    let lost = item(&store, "one");
    for wrong in [0, lost + 1, lost + 2, u64::MAX] {
        let missing = store.restore_trashed(&Peer::own(), &ws, wrong, Some(&id("x")), false);
        assert!(matches!(missing, Err(Error::NotInTrash(number)) if number == wrong), "{wrong}");
    }
    let stranger = Peer { uid: Peer::own().uid + 1, gid: 1, groups: Vec::new() };
    assert_eq!(store.trash(&stranger).unwrap(), []);
    let hidden = store.restore_trashed(&stranger, &ws, lost, None, false);
    assert!(matches!(hidden, Err(Error::WorkspaceNotFound(_))));
    store.restore_trashed(&Peer::own(), &ws, lost, None, false).unwrap();
    // A second time it is not there any more.
    assert!(store.restore_trashed(&Peer::own(), &ws, lost, None, false).is_err());
}
