//! Stores that earlier versions wrote are opened for ever. A new version adds a directory beside the old ones.

use std::path::Path;

use super::fixture::*;
use crate::ckpt::catalog::Registered;
use crate::ckpt::format::{Content, EntryKind, Extent, Extents, HardLinks, ObjectKind, ObjectSource, Tree};
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store, check_state_dir};
use crate::clock::WallTime;
use crate::path::RelPath;

/// A copy of a store that lies in the repository.
fn place_with(version: &str) -> Place {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ckpt/store/tests").join(version);
    // Made by this version, as a private directory; its own files make way.
    drop(place.open());
    let to = place.path("state/ckpt");
    std::fs::copy(from.join("catalog.sqlite3"), to.join("catalog.sqlite3")).unwrap();
    for pack in std::fs::read_dir(from.join("packs")).unwrap() {
        let pack = pack.unwrap();
        std::fs::copy(pack.path(), to.join("packs").join(pack.file_name())).unwrap();
    }
    place
}

fn content(store: &Store, root: &crate::ckpt::format::ObjectId, path: &str) -> Vec<u8> {
    let path = RelPath::new(path.as_bytes()).unwrap();
    let entry = Tree::new(&*store.reader, *root).lookup(&path).unwrap().unwrap();
    match entry.kind {
        EntryKind::File { content: Content::Whole(id), .. } => {
            store.reader.get(ObjectKind::Data, &id).unwrap().to_vec()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_of_version_1_is_read() {
    let place = place_with("v1");
    let store = place.open();
    let states = store.workspaces().unwrap();
    assert_eq!(states.len(), 1);
    let WorkspaceState { workspace, snapshots } = &states[0];
    let names: Vec<&str> = snapshots.iter().map(|snapshot| snapshot.id.as_str()).collect();
    assert_eq!((workspace.id.as_str(), &names[..]), ("ws-43ac8e", &["one", "two"][..]));
    let one = &snapshots[0];
    assert_eq!(one.message.as_deref(), Some("the first"));
    assert_eq!(one.metadata.as_deref(), Some("{\"n\":1}"));
    assert!(one.pinned && !snapshots[1].pinned);
    assert_sound(&store, 2);

    let row = store.registered(&workspace.id).unwrap();
    let manifest = |name| store.manifest_of(&store.snapshot_row(row.key, &id(name)).unwrap()).unwrap();
    let (one, two) = (manifest("one"), manifest("two"));
    assert_eq!(content(&store, &one.root, "a"), b"first");
    assert_eq!(content(&store, &one.root, "big"), noise(1, 70_000).as_bytes());
    assert_eq!(content(&store, &two.root, "new"), b"file");
    let groups = HardLinks::load(&*store.reader, &one.hard_links.unwrap()).unwrap().groups;
    assert_eq!(format!("{groups:?}"), "[[\"a\", \"dir/a2\"]]");
    let entry = |path: &str| {
        Tree::new(&*store.reader, one.root)
            .lookup(&RelPath::new(path.as_bytes()).unwrap())
            .unwrap()
            .unwrap()
            .kind
    };
    assert_eq!(entry("link"), EntryKind::Symlink(Box::from(&b"dir/b"[..])));
    assert_eq!(entry("dir/empty"), EntryKind::File { size: 0, content: Content::Empty });
    let EntryKind::File { size, content: Content::Extents(id) } = entry("sparse") else { panic!() };
    let extents = Extents::load(&*store.reader, &id).unwrap();
    assert_eq!((size, extents.0.len()), ((1 << 20) + 3, 2));
    assert_eq!(extents.0[0], Extent::Hole(1 << 20));

    // What undo goes back to, and what is in the trash.
    assert!(store.catalog.undo_target(row.key).unwrap().is_some());
    assert_eq!(store.catalog.every_tree().unwrap().len(), 4);
    drop(store);
    assert_eq!(check_state_dir(&place.path("state"), true).unwrap().damage, Vec::<String>::new());
}

#[test]
fn what_a_store_of_version_1_has_are_workspaces_and_any_of_them_can_be_kept_besides() {
    let place = place_with("v1");
    let store = place.open();
    let rows = store.catalog.workspaces().unwrap();
    assert!(rows.iter().all(|row| !row.kept));
    let before = &rows[0];
    let (path, owner) = (&before.workspace.path, before.workspace.owner);
    let register = |kept| store.catalog.register(path, owner, &before.identity, kept, WallTime(1)).unwrap();
    assert!(matches!(register(false), Registered::Known(row) if row.key == before.key));
    assert!(matches!(register(true), Registered::New(row) if row.workspace.id != before.workspace.id));
    assert_eq!((store.workspaces().unwrap().len(), store.kept().unwrap().len()), (1, 1));
    drop(store);
    // Nothing is migrated a second time.
    let store = place.open();
    assert_eq!((store.workspaces().unwrap().len(), store.kept().unwrap().len()), (1, 1));
}
