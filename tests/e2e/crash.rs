//! SIGKILL at each named step of a checkpoint, a rollback, an undo, a removal and of recovery itself; then the daemon
//! starts again.
//!
//! A tree is then exactly the old or exactly the new one, everything acknowledged is there, nothing that was not
//! acknowledged is in the way, and the store is sound to its last byte.

use std::path::{Path, PathBuf};

use cofferdam_protocol::ckpt::{WsCkptRequest, WsCkptResponse};
use cofferdam_tests::project;
use cofferdam_tests::site::{Site, run};
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;

use crate::site;

/// One test for each step: its name, and the step at which the daemon is killed.
macro_rules! killed_at {
    ($check:ident: $($name:ident = $step:literal,)*) => {
        $(
            #[test]
            fn $name() {
                $check($step);
            }
        )*
    };
}

/// A project with a snapshot `one`, broken since.
struct Scene {
    site: Site,
    ws: PathBuf,
    original: Tree,
    broken: Tree,
}

impl Scene {
    fn new() -> Self {
        let site = site();
        let ws = site.path("project");
        project::make(&ws);
        let original = Tree::read(&ws);
        let daemon = site.start();
        daemon.checkpoint(&ws, "one");
        daemon.kill();
        project::break_it(&ws);
        let broken = Tree::read(&ws);
        Self { site, ws, original, broken }
    }

    /// Has the daemon killed at `step` of `request`.
    fn kill_during(&self, step: &str, request: &WsCkptRequest) {
        self.site.start_with_fault(&format!("{step}=kill")).call_to_death(request);
    }

    /// The workspace holds one of the two trees and nothing else, no leftover of ours among it.
    #[track_caller]
    fn holds_old_or_new(&self, step: &str) -> bool {
        let now = Tree::read(&self.ws);
        if self.broken.differences(&now).is_empty() {
            return true;
        }
        self.original.assert_same(&now, &format!("killed at {step}: neither the old tree nor the new one"));
        false
    }

    fn undo(&self) -> bool {
        run(&mut self.site.ws_ckpt(&["undo", "-w", self.ws.to_str().unwrap()])).code == 0
    }
}

fn checkpoint_killed_at(step: &str) {
    let scene = Scene::new();
    scene.kill_during(step, &ask::checkpoint(&scene.ws, "two"));
    scene.broken.assert_same(&Tree::read(&scene.ws), "a checkpoint changes nothing");
    let found = scene.site.check();
    let daemon = scene.site.start();
    let ids = daemon.ids(&scene.ws);
    assert_eq!(found, ids.len() as u64);
    match ids.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // The id of a checkpoint that did not happen is free.
        ["one"] => daemon.checkpoint(&scene.ws, "two"),
        // It was durable, only the answer was lost.
        ["one", "two"] => assert_eq!(step, "checkpoint.published"),
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.site.check(), 2);
    daemon.rollback(&scene.ws, "one");
    scene.original.assert_same(&Tree::read(&scene.ws), "the snapshot before");
    daemon.rollback(&scene.ws, "two");
    scene.broken.assert_same(&Tree::read(&scene.ws), "the snapshot that was killed and taken again");
}

killed_at! { checkpoint_killed_at:
    a_checkpoint_killed_when_the_tree_was_captured = "checkpoint.captured",
    a_checkpoint_killed_when_its_pack_was_durable = "checkpoint.pack-synced",
    a_checkpoint_killed_when_it_was_published = "checkpoint.published",
}

/// The very first checkpoint of a store, killed: the registration may have survived, nothing else.
#[test]
fn a_first_checkpoint_that_was_killed_can_be_taken_again_under_its_name() {
    for step in ["checkpoint.captured", "checkpoint.pack-synced"] {
        let site = site();
        let ws = site.workspace("project");
        site.start_with_fault(&format!("{step}=kill")).call_to_death(&ask::checkpoint(&ws, "one"));
        let daemon = site.start();
        daemon.checkpoint(&ws, "one");
        assert_eq!(daemon.ids(&ws), ["one"], "{step}");
        assert_eq!(site.check(), 1, "{step}");
    }
}

fn rollback_killed_at(step: &str) {
    let scene = Scene::new();
    scene.kill_during(step, &ask::rollback(&scene.ws, "one"));
    let daemon = scene.site.start();
    let is_old = scene.holds_old_or_new(step);
    assert_eq!(daemon.ids(&scene.ws), ["one"]);
    assert_eq!(scene.site.check(), 1, "{step}");
    // A rollback that took place can be undone although its answer was lost.
    if !is_old {
        assert!(scene.undo(), "{step}: the rollback took place but cannot be undone");
        scene.broken.assert_same(&Tree::read(&scene.ws), &format!("{step}: undo after the restart"));
    }
    // And the next request finds nothing in its way.
    daemon.checkpoint(&scene.ws, "two");
    daemon.rollback(&scene.ws, "one");
    scene.original.assert_same(&Tree::read(&scene.ws), &format!("{step}: the rollback asked for again"));
    daemon.rollback(&scene.ws, "two");
    scene.broken.assert_same(&Tree::read(&scene.ws), &format!("{step}: and back"));
    assert_eq!(scene.site.check(), 2, "{step}");
}

killed_at! { rollback_killed_at:
    a_rollback_killed_when_its_safety_snapshot_was_published = "rollback.safety-published",
    a_rollback_killed_when_its_plan_was_journaled = "rollback.journaled",
    a_rollback_killed_when_all_that_is_new_was_staged = "rollback.staged",
    a_rollback_killed_when_the_switch_was_journaled = "rollback.switch-journaled",
    a_rollback_killed_before_the_first_switch = "rollback.switching#1",
    a_rollback_killed_before_the_second_switch = "rollback.switching#2",
    a_rollback_killed_before_the_fifth_switch = "rollback.switching#5",
    a_rollback_killed_before_the_ninth_switch = "rollback.switching#9",
    a_rollback_killed_before_the_fourteenth_switch = "rollback.switching#14",
    a_rollback_killed_when_all_was_switched = "rollback.switched",
    a_rollback_killed_when_modes_and_times_were_set = "rollback.metadata",
    a_rollback_killed_when_it_was_journaled_as_done = "rollback.done-journaled",
    a_rollback_killed_when_staging_was_removed = "rollback.cleaned",
    a_rollback_killed_when_it_was_published = "rollback.published",
}

/// Every single switch, until there is none left to be killed at.
#[test]
fn a_rollback_killed_before_any_of_its_switches_leaves_the_old_or_the_new_tree() {
    let mut switches = 0;
    loop {
        let site = site();
        let ws = site.path("project");
        for name in ["a", "b", "dir/c", "dir/d"] {
            cofferdam_tests::files::write(ws.join(name), name);
        }
        let original = Tree::read(&ws);
        let daemon = site.start();
        daemon.checkpoint(&ws, "one");
        daemon.kill();
        cofferdam_tests::files::write(ws.join("a"), "changed");
        cofferdam_tests::files::remove(ws.join("b"));
        cofferdam_tests::files::write(ws.join("new"), "n");
        cofferdam_tests::files::rename(ws.join("dir/c"), ws.join("dir/e"));
        let broken = Tree::read(&ws);
        let daemon = site.start_with_fault(&format!("rollback.switching#{}=kill", switches + 1));
        let mut wire = daemon.connect();
        wire.send(&ask::rollback(&ws, "one"));
        if let Some(answer) = wire.receive() {
            assert!(matches!(answer, WsCkptResponse::RollbackOk { .. }), "{answer:?}");
            break;
        }
        drop(daemon);
        let daemon = site.start();
        let now = Tree::read(&ws);
        if !broken.differences(&now).is_empty() {
            original.assert_same(&now, &format!("killed before switch {}", switches + 1));
        }
        daemon.rollback(&ws, "one");
        original.assert_same(&Tree::read(&ws), "the rollback asked for again");
        site.check();
        switches += 1;
    }
    assert!(switches >= 4, "only {switches} switches for five changes");
}

fn undo_killed_at(step: &str) {
    let scene = Scene::new();
    let daemon = scene.site.start();
    daemon.rollback(&scene.ws, "one");
    daemon.kill();
    let mut daemon = scene.site.start_with_fault(&format!("{step}=kill"));
    assert!(!scene.undo(), "{step}: the fault did not happen");
    daemon.wait();
    let _daemon = scene.site.start();
    let was_undone = scene.holds_old_or_new(step);
    assert_eq!(scene.site.check(), 1, "{step}");
    assert!(scene.undo(), "{step}: undo after the restart");
    let expected = if was_undone { &scene.original } else { &scene.broken };
    expected.assert_same(&Tree::read(&scene.ws), &format!("{step}: undo after the restart"));
}

killed_at! { undo_killed_at:
    an_undo_killed_when_its_plan_was_journaled = "rollback.journaled",
    an_undo_killed_in_the_middle_of_its_switches = "rollback.switching#3",
    an_undo_killed_when_all_was_switched = "rollback.switched",
    an_undo_killed_when_it_was_journaled_as_done = "rollback.done-journaled",
}

/// A rollback killed in its middle, and then the recovery from that killed as well.
fn recovery_killed_at(step: &str) {
    for first in ["rollback.staged", "rollback.switching#4", "rollback.switched", "rollback.done-journaled"] {
        let scene = Scene::new();
        scene.kill_during(first, &ask::rollback(&scene.ws, "one"));
        let mut command = scene.site.serve();
        let mut killed = cofferdam_tests::site::Daemon::spawn(
            command.env("COFFERDAM_FAULT", format!("{step}=kill")),
            &scene.site.socket(),
        );
        let (code, stderr) = killed.wait();
        assert_eq!(code, -9, "{first}, then {step}: {stderr}");
        let daemon = scene.site.start();
        scene.holds_old_or_new(&format!("{first}, then {step}"));
        assert_eq!(scene.site.check(), 1, "{first}, then {step}");
        daemon.rollback(&scene.ws, "one");
        scene.original.assert_same(&Tree::read(&scene.ws), &format!("{first}, then {step}"));
    }
}

killed_at! { recovery_killed_at:
    a_recovery_killed_at_its_beginning_is_done_by_the_next = "recovery.begun",
    a_recovery_killed_at_its_end_is_done_by_the_next = "recovery.done",
}

/// Files that appear where an interrupted rollback left off are newer than it, and stay.
#[test]
fn work_done_between_the_kill_and_the_restart_is_not_lost() {
    let scene = Scene::new();
    scene.kill_during("rollback.switching#4", &ask::rollback(&scene.ws, "one"));
    cofferdam_tests::files::write(scene.ws.join("written-meanwhile"), "precious");
    let _daemon = scene.site.start();
    let kept = |path: &Path| cofferdam_tests::files::read(path.join("written-meanwhile")) == b"precious";
    assert!(kept(&scene.ws));
    scene.site.check();
}

/// The workspace is not there when the daemon starts: the operation waits, the daemon serves.
#[test]
fn a_rollback_of_a_workspace_that_is_away_is_finished_when_it_is_back() {
    let scene = Scene::new();
    scene.kill_during("rollback.switching#4", &ask::rollback(&scene.ws, "one"));
    let away = scene.site.path("away");
    cofferdam_tests::files::rename(&scene.ws, &away);
    let other = scene.site.workspace("other");
    let daemon = scene.site.start();
    daemon.checkpoint(&other, "works");
    let half = Tree::read(&away);
    daemon.kill();
    half.assert_same(&Tree::read(&away), "what is away is left alone");
    cofferdam_tests::files::rename(&away, &scene.ws);
    let daemon = scene.site.start();
    scene.holds_old_or_new("rollback.switching#4, away for one start");
    daemon.rollback(&scene.ws, "one");
    scene.original.assert_same(&Tree::read(&scene.ws), "the rollback asked for again");
    assert_eq!(scene.site.check(), 2);
}

/// Ids and contents that must be there after a removal was killed.
fn removal_killed_at(step: &str) {
    let site = site();
    let ws = site.path("project");
    let daemon = site.start();
    for n in 0..6 {
        cofferdam_tests::files::write(ws.join("file"), project::noise(50_000 + n));
        cofferdam_tests::files::write(ws.join(format!("only-{n}")), project::noise(10_000 + n));
        daemon.checkpoint(&ws, &format!("v{n}"));
    }
    daemon.kill();
    let daemon = site.start_with_fault(&format!("{step}=kill"));
    let mut wire = daemon.connect();
    wire.send(&ask::cleanup(&ws, Some(3)));
    // Collection comes later than the answer; deletion itself before it.
    let answer = wire.receive();
    let mut daemon = daemon;
    let (code, stderr) = daemon.wait();
    assert_eq!(code, -9, "{stderr}");
    let found = site.check();
    let daemon = site.start();
    let ids = daemon.ids(&ws);
    assert_eq!(ids.len() as u64, found, "{step}");
    if answer.is_some() {
        assert_eq!(ids, ["v3", "v4", "v5"], "{step}: an acknowledged removal came back");
    }
    for id in &ids {
        daemon.rollback(&ws, id);
        let n: usize = id[1..].parse().unwrap();
        assert_eq!(cofferdam_tests::files::read(ws.join("file")), project::noise(50_000 + n), "{step}");
    }
    for id in &ids {
        let target = id.clone();
        assert_eq!(daemon.call(&ask::delete(&ws, id, false)), WsCkptResponse::DeleteOk { target }, "{step}");
    }
    assert_eq!(site.check(), 0, "{step}");
}

killed_at! { removal_killed_at:
    a_removal_killed_when_it_was_committed = "delete.committed",
    a_collection_killed_when_what_is_needed_was_written_anew = "collect.rewritten",
    a_collection_killed_when_a_pack_was_condemned = "collect.condemned",
    a_collection_killed_when_a_pack_was_removed = "collect.removed",
}
