//! Directories of which the program takes checkpoints for itself.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_tests::{files, skip, user};

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::disk::{Disk, FaultHook, Op};
use crate::peer::Peer;

fn keep(store: &Store, dir: impl AsRef<Path>) -> WorkspaceId {
    store.keep(dir.as_ref()).unwrap().workspace.id
}

/// Takes a snapshot of a directory that is kept.
fn turn(store: &Store, kept: &WorkspaceId, name: &str) {
    let new = NewSnapshot { even_empty: true, ..named(name) };
    let done = store.checkpoint(&Peer::own(), kept, &new).unwrap();
    assert!(matches!(done, Checkpointed::Created(_)), "{done:?}");
}

fn rewind(store: &Store, kept: &WorkspaceId, to: &str) {
    store.rollback(&Peer::own(), kept, &id(to)).unwrap();
}

/// A task's directory inside a workspace that has files.
fn task() -> (Place, std::path::PathBuf) {
    let place = Place::with_files();
    let task = place.path("ws/task");
    files::mkdir(&task);
    (place, task)
}

#[test]
fn an_empty_directory_has_a_snapshot_and_one_goes_back_to_it_and_forth_again() {
    let (place, task) = task();
    let store = place.open();
    let kept = keep(&store, &task);
    turn(&store, &kept, "turn-1");
    files::write(task.join("deep/file"), "work");
    turn(&store, &kept, "turn-2");
    // One that equals the last one is a snapshot, too.
    turn(&store, &kept, "turn-3");
    let work = place.tree();
    rewind(&store, &kept, "turn-1");
    assert!(files::names(&task).is_empty());
    store.undo(&Peer::own(), &kept).unwrap();
    assert_eq!(place.tree(), work);
    let names: Vec<String> =
        store.kept().unwrap()[0].snapshots.iter().map(|one| one.id.to_string()).collect();
    assert_eq!(names, ["turn-1", "turn-2", "turn-3"]);
    drop(store);
    assert_eq!(place.open().kept().unwrap()[0].snapshots.len(), 3);
}

#[test]
fn the_workspace_around_goes_its_own_way() {
    let (place, task) = task();
    let store = place.open();
    let around = init(&store, place.ws()).unwrap();
    let kept = keep(&store, &task);
    files::write(task.join("file"), "1");
    turn(&store, &kept, "turn-1");
    checkpoint(&store, &around, "all");
    place.write(&[("a", "changed"), ("task/file", "2")]);
    turn(&store, &kept, "turn-2");
    rewind(&store, &kept, "turn-1");
    assert_eq!((place.read("a"), place.read("task/file")), ("changed".to_owned(), "1".to_owned()));
    place.write(&[("task/file", "3")]);
    store.rollback(&Peer::own(), &around, &id("all")).unwrap();
    assert_eq!((place.read("a"), place.read("task/file")), ("first".to_owned(), "1".to_owned()));
    rewind(&store, &kept, "turn-2");
    assert_eq!(place.read("task/file"), "2");
    // What either did the other can take back.
    store.undo(&Peer::own(), &around).unwrap();
    assert_eq!((place.read("a"), place.read("task/file")), ("changed".to_owned(), "3".to_owned()));
    store.undo(&Peer::own(), &kept).unwrap();
    assert_eq!(place.read("task/file"), "1");
    assert_sound(&store, 1);
}

#[test]
fn a_directory_that_was_replaced_is_not_rewound_before_it_is_kept_again() {
    let (place, task) = task();
    let store = place.open();
    let kept = keep(&store, &task);
    files::write(task.join("file"), "old");
    turn(&store, &kept, "turn-1");
    place.move_root("ws/task", "away");
    let refused = |expected: fn(&Error) -> bool| {
        let done = store.rollback(&Peer::own(), &kept, &id("turn-1"));
        assert!(done.as_ref().is_err_and(expected), "{done:?}");
    };
    refused(|error| matches!(error, Error::WorkspaceGone(_)));
    files::write(task.join("file"), "somebody's");
    refused(|error| matches!(error, Error::WorkspaceReplaced(_)));
    assert_eq!(place.read("task/file"), "somebody's");
    let again = store.keep(&task).unwrap();
    assert_eq!((&again.workspace.id, again.snapshots.len()), (&kept, 1));
    rewind(&store, &kept, "turn-1");
    assert_eq!(place.read("task/file"), "old");
}

#[test]
fn nothing_of_it_is_seen_and_nobody_gets_at_it_by_its_id() {
    let (place, task) = task();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "mine");
    let kept = keep(&store, &task);
    for name in ["turn-1", "turn-2", "turn-3"] {
        files::write(task.join("file"), name);
        turn(&store, &kept, name);
    }
    // This leaves trees from before rollbacks behind.
    rewind(&store, &kept, "turn-1");
    rewind(&store, &kept, "turn-2");
    let own = Peer::own();
    let states = store.workspaces().unwrap();
    assert_eq!(states.iter().map(|state| &state.workspace.id).collect::<Vec<_>>(), [&ws]);
    assert_eq!(shown(&store).len(), 1);
    assert_eq!(store.trash(&own).unwrap(), []);
    for item in 0..20 {
        let back = store.restore_trashed(&own, &ws, item, Some(&id("theirs")), false);
        assert!(matches!(back, Err(Error::NotInTrash(_))), "{item}: {back:?}");
    }
    let is_unknown = |error: Error| assert!(matches!(error, Error::WorkspaceNotFound(_)), "{error}");
    let one = || TreeRef::Snapshot(id("turn-1"));
    is_unknown(store.diff(&own, &kept, &one(), &TreeRef::Live).unwrap_err());
    is_unknown(store.delete(&own, &kept, &[id("turn-1")], Removal::Trash).unwrap_err());
    is_unknown(store.recover(&own, &kept).unwrap_err());
    is_unknown(store.restore_trashed(&own, &kept, 1, None, false).unwrap_err());
    is_unknown(store.forget_kept(&ws).unwrap_err());
    // Nor does the directory's owner, if that is not the daemon's user.
    let owner = Peer { uid: own.uid + 1, gid: 1, groups: Vec::new() };
    is_unknown(store.checkpoint(&owner, &kept, &named("x")).unwrap_err());
    is_unknown(store.rollback(&owner, &kept, &id("turn-1")).unwrap_err());
    is_unknown(store.undo(&owner, &kept).unwrap_err());
    is_unknown(store.warnings(&owner, &kept, &id("turn-1")).unwrap_err());
    assert_sound(&store, 1);
}

#[test]
fn the_same_directory_and_those_around_and_inside_it_may_be_workspaces_as_if_it_were_not_kept() {
    let (place, task) = task();
    place.write(&[("task/inner/file", "x")]);
    let alone = {
        // What their ids are where nothing is kept.
        let store = place.open();
        let all = ["ws/task/inner", "ws/task", "ws"].map(|path| init(&store, place.path(path)).unwrap());
        all.iter().for_each(|id| store.recover(&Peer::own(), id).unwrap());
        all
    };
    let store = place.open();
    let kept = keep(&store, &task);
    turn(&store, &kept, "turn-1");
    let ids = ["ws/task/inner", "ws/task", "ws"].map(|path| init(&store, place.path(path)).unwrap());
    assert_eq!(ids, alone);
    checkpoint(&store, &ids[1], "mine");
    place.write(&[("task/inner/file", "y")]);
    turn(&store, &kept, "mine");
    rewind(&store, &kept, "turn-1");
    assert!(matches!(store.undo(&Peer::own(), &ids[1]), Err(Error::NothingToUndo)));
    store.recover(&Peer::own(), &ids[1]).unwrap();
    rewind(&store, &kept, "mine");
    assert_eq!(place.read("task/inner/file"), "y");
    let again = init(&store, &task);
    assert!(matches!(again, Err(Error::InsideWorkspace { .. })), "as without: {again:?}");
    store.forget_kept(&kept).unwrap();
    assert_eq!(store.workspaces().unwrap().len(), 2);
    assert_eq!(store.trash(&Peer::own()).unwrap().len(), 1);
}

#[test]
fn what_works_around_or_inside_is_waited_for() {
    let (place, task) = task();
    let store = place.open_impatient();
    let around = init(&store, place.ws()).unwrap();
    let kept = keep(&store, &task);
    turn(&store, &kept, "turn-1");
    let held = store.hold(&Peer::own(), &around).unwrap();
    assert!(matches!(store.checkpoint(&Peer::own(), &kept, &named("x")), Err(Error::Busy)));
    assert!(matches!(store.rollback(&Peer::own(), &kept, &id("turn-1")), Err(Error::Busy)));
    assert!(matches!(store.forget_kept(&kept), Err(Error::Busy)));
    drop(held);
    let held = store.hold(&Peer::own(), &kept).unwrap();
    assert!(matches!(store.checkpoint(&Peer::own(), &around, &named("x")), Err(Error::Busy)));
    drop(held);
    store.forget_kept(&kept).unwrap();
}

#[test]
fn below_the_state_directory_only_agents_have_directories_that_can_be_kept() {
    let place = Place::with_files();
    let store = place.open();
    let agents = place.path("state/pod/agents");
    files::mkdir(agents.join("task/home"));
    files::symlink("task", agents.join("link"));
    let refused = |dir: &Path, reason: &str| match store.keep(dir) {
        Err(Error::InvalidPath(text)) => assert!(text.contains(reason), "{text}"),
        other => panic!("{}: {other:?}", dir.display()),
    };
    for inside in ["state/pod/agents", "state/pod", "state/ckpt/packs", "state"] {
        refused(&place.path(inside), "inside the state directory");
    }
    refused(&place.path("."), "contains the state directory");
    refused(&agents.join("none"), "does not exist");
    refused(&agents.join("link"), "leads elsewhere by a link");
    let kept = keep(&store, agents.join("task"));
    turn(&store, &kept, "turn-1");
    refused(&agents.join("task/home"), "both kept");
    let inner = init(&store, agents.join("task"));
    assert!(matches!(inner, Err(Error::InvalidPath(_))), "{inner:?}");
    files::mkdir(place.path("around/inner"));
    keep(&store, place.path("around/inner"));
    refused(&place.path("around"), "both kept");
    assert_eq!(store.kept().unwrap().len(), 2);
}

#[test]
fn what_is_forgotten_leaves_nothing_behind_whether_its_directory_is_there_or_not() {
    let (place, task) = task();
    let store = place.open();
    let ws = init(&store, place.path("ws/dir")).unwrap();
    checkpoint(&store, &ws, "mine");
    collect_all(&store);
    let before = (store.size().unwrap().objects, place.packs());
    for gone in [false, true] {
        let kept = keep(&store, &task);
        files::write(task.join("file"), noise(7, 9000));
        turn(&store, &kept, "turn-1");
        files::write(task.join("file"), noise(8, 9000));
        rewind(&store, &kept, "turn-1");
        if gone {
            files::remove(&task);
        }
        store.forget_kept(&kept).unwrap();
        assert!(matches!(store.forget_kept(&kept), Err(Error::WorkspaceNotFound(_))));
        assert!(store.kept().unwrap().is_empty());
        assert_eq!(store.catalog.every_tree().unwrap().len(), 1);
        collect_all(&store);
        assert_eq!((store.size().unwrap().objects, place.packs()), before);
    }
    files::mkdir(&task);
    assert_eq!(store.keep(&task).unwrap().snapshots, []);
    assert_sound(&store, 1);
}

#[test]
fn what_is_damaged_is_found_like_any_other_tree() {
    let (place, task) = task();
    let store = place.open();
    let kept = keep(&store, &task);
    files::write(task.join("file"), noise(7, 9000));
    turn(&store, &kept, "turn-1");
    files::write(task.join("file"), "changed");
    drop(store);
    place.destroy_packs();
    let store = place.open();
    let report = store.check(false).unwrap();
    let line = format!("the program's own snapshot 'turn-1' of {}: ", task.display());
    assert!(report.damage.iter().any(|damage| damage.starts_with(&line)), "{report:?}");
    let lost = store.rollback(&Peer::own(), &kept, &id("turn-1"));
    assert!(matches!(lost, Err(Error::SnapshotMissing(_))), "{lost:?}");
    assert!(store.kept().unwrap()[0].snapshots[0].missing);
    assert_eq!(place.read("task/file"), "changed");
}

#[test]
fn what_another_user_owns_comes_back_as_that_users() {
    if !rustix::process::geteuid().is_root() {
        cofferdam_tests::skipped(format_args!("only root can give a directory away"));
        return;
    }
    let (place, task) = task();
    let store = place.open();
    let owned = |path: &Path| std::os::unix::fs::lchown(path, Some(65_534), Some(65_534)).unwrap();
    files::write(task.join("file"), "theirs");
    files::chmod(task.join("file"), 0o600);
    owned(&task);
    owned(&task.join("file"));
    let kept = keep(&store, &task);
    turn(&store, &kept, "turn-1");
    files::remove(task.join("file"));
    rewind(&store, &kept, "turn-1");
    let found = std::fs::metadata(task.join("file")).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (65_534, 65_534, 0o600));
}

/// Lets nothing reach the disk any more from a step on, as a death would.
#[derive(Debug)]
struct Stop {
    at: &'static str,
    stopped: AtomicBool,
}

impl FaultHook for Stop {
    fn before(&self, _: Op) -> std::io::Result<()> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("planned")),
            false => Ok(()),
        }
    }

    fn step(&self, name: &str) -> std::io::Result<()> {
        self.stopped.fetch_or(name == self.at, Ordering::Relaxed);
        self.before(Op::Fsync)
    }
}

#[test]
fn what_was_cut_short_is_ended_by_the_next_start() {
    for (at, journals, after) in [
        ("rollback.safety-published", 0, "new"),
        ("rollback.switching", 1, "old"),
        ("rollback.published", 0, "old"),
    ] {
        let (place, task) = task();
        files::write(task.join("file"), "old");
        let hook = Arc::new(Stop { at, stopped: AtomicBool::new(false) });
        let store = Store::open(place.options(Disk::with_faults(hook))).unwrap().0;
        let kept = keep(&store, &task);
        turn(&store, &kept, "turn-1");
        files::write(task.join("file"), "new");
        store.rollback(&Peer::own(), &kept, &id("turn-1")).unwrap_err();
        drop(store);
        assert_eq!(place.journals(), journals, "{at}");
        let store = place.open();
        assert_eq!((place.journals(), place.read("task/file").as_str()), (0, after), "{at}");
        rewind(&store, &kept, "turn-1");
        store.undo(&Peer::own(), &kept).unwrap();
        assert_eq!(place.read("task/file"), "new", "{at}");
    }
}

#[test]
fn a_directory_that_is_given_to_another_user_keeps_what_is_kept_of_it() {
    if !user::is_root() {
        skip!("root alone gives directories to others");
    }
    let (place, task) = task();
    let store = place.open();
    let kept = keep(&store, &task);
    files::write(task.join("file"), "old");
    turn(&store, &kept, "turn-1");
    user::give(&task, user::NOBODY);
    files::write(task.join("file"), "new");
    turn(&store, &kept, "turn-2");
    rewind(&store, &kept, "turn-1");
    assert_eq!(place.read("task/file"), "old");
    // Also if it was put back by somebody else in the meantime.
    place.move_root("ws/task", "away");
    files::mkdir(&task);
    user::give(&task, user::NOBODY);
    let again = store.keep(&task).unwrap();
    assert_eq!((&again.workspace.id, again.workspace.owner, again.snapshots.len()), (&kept, user::NOBODY, 2));
    rewind(&store, &kept, "turn-2");
    assert_eq!(place.read("task/file"), "new");
}
