//! Taking snapshots.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::clock::Clock;
use crate::peer::Peer;

#[test]
fn a_checkpoint_is_listed_with_what_was_said_about_it() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let new = NewSnapshot {
        message: Some("before".to_owned()),
        metadata: Some("{\"b\": 1, \"a\": 2}".to_owned()),
        pin: true,
        ..named("one")
    };
    let began = place.clock.wall();
    let Checkpointed::Created(snapshot) = store.checkpoint(&Peer::own(), &ws, &new).unwrap() else {
        panic!("nothing was created");
    };
    assert_eq!(
        snapshot,
        Snapshot {
            id: id("one"),
            message: Some("before".into()),
            metadata: Some("{\"a\":2,\"b\":1}".into()),
            pinned: true,
            created_at: snapshot.created_at,
            missing: false,
            warnings: 0,
        }
    );
    assert!((began..=place.clock.wall()).contains(&snapshot.created_at));
    drop(store);
    assert_eq!(shown(&place.open()), [("one".to_owned(), snapshot)]);
}

#[test]
fn an_unchanged_tree_gets_a_snapshot_without_a_pack_unless_it_is_to_be_skipped() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let packs = store.size().unwrap().packs;
    assert_eq!(checkpoint(&store, &ws, "two"), "created");
    assert_eq!(store.size().unwrap().packs, packs);
    let skip = NewSnapshot { skip_unchanged: true, ..named("three") };
    assert_eq!(store.checkpoint(&Peer::own(), &ws, &skip).unwrap(), Checkpointed::Unchanged(id("two")));
    place.write(&[("a", "changed")]);
    assert!(matches!(store.checkpoint(&Peer::own(), &ws, &skip).unwrap(), Checkpointed::Created(_)));
    assert_sound(&store, 3);
}

#[test]
fn a_skipped_checkpoint_knows_the_tree_the_next_time_although_the_caches_were_given_up() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let known = store.registered(&ws).unwrap().last_capture;
    store.catalog.suspect(&[]).unwrap();
    assert_eq!(store.registered(&ws).unwrap().last_capture, None);
    let skip = NewSnapshot { skip_unchanged: true, ..named("two") };
    assert_eq!(store.checkpoint(&Peer::own(), &ws, &skip).unwrap(), Checkpointed::Unchanged(id("one")));
    assert_eq!(store.registered(&ws).unwrap().last_capture, known);
}

#[test]
fn captures_that_come_to_nothing_use_up_no_names_of_packs() {
    let place = Place::with_files();
    place.write(&[("big", &noise(1, 1_000_000))]);
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let names = store.catalog.load_pool().unwrap();
    for _ in 0..2 * names.len() {
        let held = store.hold(&Peer::own(), &ws).unwrap();
        store.capture_live(&Peer::own(), &held, |_| Err(Error::Busy)).map(drop).unwrap_err();
        store.capture_live(&Peer::own(), &held, |_| Ok(None)).unwrap();
    }
    assert_eq!(store.catalog.load_pool().unwrap(), names);
    assert_eq!(place.packs(), 0);
}

#[test]
fn an_empty_directory_is_skipped_and_an_empty_one_inside_is_not() {
    let place = Place::new();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    let result = store.checkpoint(&Peer::own(), &ws, &named("one")).unwrap();
    assert_eq!(result, Checkpointed::EmptyWorkspace);
    std::fs::create_dir(place.ws().join("inside")).unwrap();
    assert_eq!(checkpoint(&store, &ws, "one"), "created");
}

#[test]
fn a_name_is_taken_until_its_snapshot_is_removed() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    for how in [Removal::Trash, Removal::Unlink] {
        match store.checkpoint(&Peer::own(), &ws, &named("one")) {
            Err(Error::SnapshotExists(name)) => assert_eq!(name, id("one")),
            other => panic!("{other:?}"),
        }
        store.delete(&Peer::own(), &ws, &[id("one")], how).unwrap();
        assert_eq!(checkpoint(&store, &ws, "one"), "created");
    }
}

#[test]
fn bad_metadata_is_refused_before_anything_is_written_and_the_name_stays_free() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    for bad in ["", "{", "not json", &"[".repeat(200)] {
        let new = NewSnapshot { metadata: Some(bad.to_owned()), ..named("one") };
        let result = store.checkpoint(&Peer::own(), &ws, &new);
        assert!(matches!(result, Err(Error::InvalidMetadata(_))), "{result:?}");
    }
    assert_eq!(store.size().unwrap().packs, 0);
    assert_eq!(checkpoint(&store, &ws, "one"), "created");
}

#[test]
fn the_first_checkpoint_after_priming_reads_nothing_again() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    store.prime(&Peer::own(), &ws).unwrap();
    let packs = store.size().unwrap().packs;
    assert_eq!(packs, 1);
    assert!(shown(&store).is_empty());
    checkpoint(&store, &ws, "one");
    assert_eq!(store.size().unwrap().packs, packs);
    assert_sound(&store, 1);
}

#[test]
fn what_was_read_in_advance_is_not_collected_before_it_is_needed() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    store.prime(&Peer::own(), &ws).unwrap();
    place.clock.advance(Duration::from_secs(8 * 24 * 3600));
    collect_all(&store);
    assert_eq!(place.packs(), 1);
    checkpoint(&store, &ws, "one");
    assert_eq!(place.packs(), 1, "nothing had to be stored again");
    assert_sound(&store, 1);
}

#[test]
fn ten_first_checkpoints_at_once_all_succeed() {
    let place = Place::with_files();
    let store = place.open();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..10)
            .map(|n| {
                let (store, place) = (&store, &place);
                scope.spawn(move || {
                    let ws = init(store, place.ws()).unwrap();
                    checkpoint(store, &ws, &format!("n{n}"))
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), "created");
        }
    });
    assert_eq!(store.workspaces().unwrap().len(), 1);
    assert_sound(&store, 10);
}

#[test]
fn workspaces_that_share_content_share_packs_also_when_they_write_at_once() {
    let place = Place::with_files();
    for n in 0..4 {
        std::fs::create_dir(place.path(&format!("w{n}"))).unwrap();
        std::fs::write(place.path(&format!("w{n}/a")), "the same").unwrap();
    }
    let store = place.open();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (store, place) = (&store, &place);
            scope.spawn(move || {
                let ws = init(store, place.path(&format!("w{n}"))).unwrap();
                for m in 0..5 {
                    std::fs::write(place.path(&format!("w{n}/b{m}")), format!("shared {m}")).unwrap();
                    checkpoint(store, &ws, &format!("s{m}"));
                }
            });
        }
    });
    assert_sound(&store, 20);
}

#[test]
fn a_workspace_whose_directory_is_gone_or_another_is_an_error_until_it_is_taken_over() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let take = |store: &Store| store.checkpoint(&Peer::own(), &ws, &named("two"));

    #[allow(clippy::disallowed_methods, reason = "a user's command")]
    std::fs::rename(place.ws(), place.path("elsewhere")).unwrap();
    assert!(matches!(take(&store), Err(Error::WorkspaceGone(_))));
    std::fs::write(place.ws(), "a file").unwrap();
    assert!(matches!(take(&store), Err(Error::WorkspaceReplaced(_))));
    #[allow(clippy::disallowed_methods, reason = "a user's command")]
    std::fs::remove_file(place.ws()).unwrap();
    std::os::unix::fs::symlink("elsewhere", place.ws()).unwrap();
    assert!(matches!(take(&store), Err(Error::WorkspaceReplaced(_))));
    #[allow(clippy::disallowed_methods, reason = "a user's command")]
    std::fs::remove_file(place.ws()).unwrap();
    std::fs::create_dir(place.ws()).unwrap();
    assert!(matches!(take(&store), Err(Error::WorkspaceReplaced(_))));
    assert!(matches!(store.rollback(&Peer::own(), &ws, &id("one")), Err(Error::WorkspaceReplaced(_))));

    let adopted = store.init(&Peer::own(), &place.ws()).unwrap();
    assert_eq!((adopted.workspace.id, adopted.snapshots.len()), (ws.clone(), 1));
    place.write(&[("new", "content")]);
    assert!(matches!(take(&store), Ok(Checkpointed::Created(_))));
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    assert_eq!(std::fs::read_to_string(place.ws().join("a")).unwrap(), "first");
    assert_sound(&store, 2);
}

#[test]
fn what_cannot_be_read_is_named_in_the_warnings() {
    if rustix::process::geteuid().is_root() {
        cofferdam_tests::skipped(format_args!("root can read everything"));
        return;
    }
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    std::fs::set_permissions(place.ws().join("a"), std::fs::Permissions::from_mode(0o000)).unwrap();
    checkpoint(&store, &ws, "one");
    let warnings = store.warnings(&Peer::own(), &ws, &id("one")).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].path.to_string().as_str(), warnings[0].kind), ("a", WarningKind::Unreadable));
    assert_eq!(shown(&store)[0].1.warnings, 1);
}

#[test]
fn snapshots_are_listed_in_the_order_in_which_they_were_taken() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    for name in ["c", "a", "b"] {
        checkpoint(&store, &ws, name);
        place.clock.advance(Duration::from_secs(1));
    }
    let names: Vec<String> = shown(&store).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["c", "a", "b"]);
}

#[test]
fn another_process_at_work_on_the_directory_makes_it_busy() {
    let place = Place::with_files();
    let store = place.open_impatient();
    let ws = init(&store, place.ws()).unwrap();
    let other = std::fs::File::open(place.ws()).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(matches!(store.checkpoint(&Peer::own(), &ws, &named("one")), Err(Error::Busy)));
    drop(other);
    assert_eq!(checkpoint(&store, &ws, "one"), "created");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "what a user does to the store")]
fn a_checkpoint_needs_no_stat_cache() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let caches = place.path("state/ckpt/cache");
    std::fs::remove_dir_all(&caches).unwrap();
    place.write(&[("a", "changed")]);
    checkpoint(&store, &ws, "two");
    std::fs::create_dir_all(caches.join(format!("{ws}.stat"))).unwrap();
    place.write(&[("a", "changed again")]);
    checkpoint(&store, &ws, "three");
    store.rollback(&Peer::own(), &ws, &id("two")).unwrap();
    assert_eq!(place.read("a"), "changed");
    assert_sound(&store, 3);
}
