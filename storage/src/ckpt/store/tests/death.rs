//! A process that is killed at every single operation of a rollback, and started again.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam_protocol::ckpt::WorkspaceId;

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::{Backend, Store, StoreOptions};
use crate::clock::{RandomIds, SystemClock};
use crate::disk::{Disk, FaultHook, Op};
use crate::peer::Peer;

/// The process to be killed is this one again, with these set.
const DIR: &str = "COFFERDAM_TEST_DIR";
const NTH: &str = "COFFERDAM_TEST_NTH";

/// Ends the process before the operation of that number, counted from when it was armed.
#[derive(Debug)]
struct Killing(AtomicU64);

impl FaultHook for Killing {
    fn before(&self, _: Op) -> io::Result<()> {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::SIGKILL).unwrap();
        }
        Ok(())
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// What the process to be killed does.
fn roll_back_and_die(dir: &Path, nth: u64) {
    let hook = Arc::new(Killing(AtomicU64::new(u64::MAX)));
    let options = StoreOptions {
        state_dir: dir.join("state"),
        disk: Disk::with_faults(hook.clone()),
        clock: Arc::new(SystemClock::new()),
        ids: Arc::new(RandomIds),
    };
    let store = Store::open(options).unwrap().0;
    let ws = init(&store, dir.join("ws")).unwrap();
    hook.0.store(nth, Ordering::Relaxed);
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
}

/// The name of the test that is run again to be killed.
const VICTIM: &str = "a_process_that_is_killed";

#[test]
fn a_process_that_is_killed() {
    if let (Ok(dir), Ok(nth)) = (std::env::var(DIR), std::env::var(NTH)) {
        roll_back_and_die(Path::new(&dir), nth.parse().unwrap());
    }
}

/// A workspace in which a rollback was cut short.
struct Cut {
    place: Place,
    ws: WorkspaceId,
    /// The tree of snapshot `one`.
    target: Tree,
    /// The tree before the rollback.
    before: Tree,
    /// It was not: the process had no more operations.
    finished: bool,
}

fn cut_short(nth: u64) -> Cut {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "one");
    let target = place.tree();
    place.write(&[("a", "changed"), ("new/x", "y")]);
    place.remove("dir/deep/c");
    let before = place.tree();
    drop(store);
    let child = Command::new(std::env::current_exe().unwrap())
        .arg(VICTIM)
        .env(DIR, place.path(""))
        .env(NTH, nth.to_string())
        .output()
        .unwrap();
    let finished = child.status.success();
    assert!(finished || child.status.signal() == Some(9), "operation {nth}: {child:?}");
    Cut { place, ws, target, before, finished }
}

#[test]
fn death_at_any_operation_of_a_rollback_leaves_the_old_or_the_new_tree_and_undo_works() {
    for nth in 0.. {
        let Cut { place, ws, target, before, finished } = cut_short(nth);
        let (store, report) = Store::open(place.options(Disk::default())).unwrap();
        let now = place.tree();
        if now == target {
            store.undo(&Peer::own(), &ws).unwrap();
            assert_eq!(place.tree(), before, "operation {nth}: {report:?}");
        } else {
            assert_eq!(now, before, "operation {nth}: {report:?}");
            let undone = store.undo(&Peer::own(), &ws);
            assert!(matches!(undone, Err(Error::NothingToUndo)), "operation {nth}: {undone:?}");
        }
        assert_sound(&store, 1);
        assert_eq!(place.journals(), 0, "operation {nth}: {report:?}");
        if finished {
            assert!(nth > 20, "{nth}");
            return;
        }
    }
}

#[test]
fn a_rollback_that_was_cut_short_waits_for_its_directory() {
    // At least one of these is behind the journal's beginning and before its end.
    let mut waited = 0;
    for nth in [8, 16, 24] {
        let Cut { place, ws, target, before, .. } = cut_short(nth);
        if place.journals() == 0 {
            continue;
        }
        waited += 1;
        place.move_root("ws", "elsewhere");
        let (store, report) = Store::open(place.options(Disk::default())).unwrap();
        assert!(report.lines.iter().any(|line| line.contains("still pending")), "{report:?}");
        assert_eq!(shown(&store).len(), 1);
        let taken = store.checkpoint(&Peer::own(), &ws, &named("two"));
        assert!(matches!(taken, Err(Error::WorkspaceGone(_))), "{taken:?}");

        // Another directory at its path is not held up by it.
        std::fs::create_dir(place.ws()).unwrap();
        init(&store, place.ws()).unwrap();
        place.write(&[("other", "work")]);
        assert_eq!(checkpoint(&store, &ws, "two"), "created");
        place.move_root("ws", "other");

        place.move_root("elsewhere", "ws");
        init(&store, place.ws()).unwrap();
        assert_eq!(checkpoint(&store, &ws, "three"), "created");
        let now = place.tree();
        assert!(now == target || now == before, "operation {nth}");
        assert_eq!(place.journals(), 0);
        assert_sound(&store, 3);
    }
    assert!(waited > 0);
}

#[test]
fn a_workspace_whose_directory_is_gone_can_be_forgotten_in_the_middle_of_a_rollback() {
    let Cut { place, ws, .. } = cut_short(16);
    assert_eq!(place.journals(), 1);
    place.move_root("ws", "elsewhere");
    let store = place.open();
    store.recover(&Peer::own(), &ws).unwrap();
    assert!(store.workspaces().unwrap().is_empty());
}
