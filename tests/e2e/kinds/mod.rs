//! Every kind of file in every situation, on every filesystem, for root and for an ordinary user: a snapshot, a change,
//! the way back, undo. A filesystem gets one daemon, which the whole table of a kind is run over.

mod attributes;
mod ground;
mod links;
mod pairs;
mod refused;
mod running;
mod table;

use cofferdam_tests::files;
use cofferdam_tests::site::{Daemon, run};
use cofferdam_tests::stamps::Stamps;
use cofferdam_tests::tree::Tree;

use ground::{Filesystem, Ground, Who};

/// The tests of a filesystem, each of them once.
macro_rules! on {
    ($($module:ident: $filesystem:ident,)*) => {$(
        mod $module {
            use super::{Filesystem::$filesystem, Who};

            #[test]
            fn every_kind_of_file_comes_back_and_goes_again() {
                super::every_kind_comes_back($filesystem, Who::Runner);
            }

            #[test]
            fn every_kind_of_file_of_an_ordinary_user_comes_back_and_goes_again() {
                super::every_kind_comes_back($filesystem, Who::OrdinaryUser);
            }

            #[test]
            fn programs_at_work_in_a_workspace_go_on_and_nothing_they_wrote_is_lost() {
                super::running::programs_go_on($filesystem, Who::Runner);
            }

            #[test]
            fn programs_at_work_in_an_ordinary_users_workspace_go_on_and_nothing_they_wrote_is_lost() {
                super::running::programs_go_on($filesystem, Who::OrdinaryUser);
            }

            #[test]
            fn what_may_not_be_changed_is_named_and_nothing_is_touched() {
                super::refused::immutable_files_are_named($filesystem);
            }

            #[test]
            fn what_is_mounted_inside_is_neither_entered_nor_moved_nor_removed() {
                super::refused::mounts_are_left_alone($filesystem, Who::Runner);
            }

            #[test]
            fn what_root_mounted_in_a_users_workspace_is_neither_entered_nor_moved_nor_removed() {
                super::refused::mounts_are_left_alone($filesystem, Who::OrdinaryUser);
            }

            #[test]
            fn roots_files_in_a_users_workspace_are_replaced_by_copies_or_left_alone() {
                super::refused::roots_files($filesystem);
            }

            #[test]
            fn of_ten_thousand_files_one_that_changed_is_the_only_one_touched() {
                super::one_of_many($filesystem);
            }
        }
    )*};
}

on! {
    here: Here,
    ext4: Ext4,
    btrfs: Btrfs,
    xfs: Xfs,
    tmpfs: Tmpfs,
    upper_layer: UpperLayer,
    lower_layer: LowerLayer,
}

#[test]
fn every_kind_of_file_comes_back_on_an_overlay_that_leaves_content_in_its_lower_layer() {
    every_kind_comes_back(Filesystem::Metacopy, Who::Runner);
    every_kind_comes_back(Filesystem::Metacopy, Who::OrdinaryUser);
}

fn every_kind_comes_back(filesystem: Filesystem, who: Who) {
    let Some(ground) = Ground::new(filesystem, who, |scene| {
        table::make(scene);
        pairs::make(scene);
    }) else {
        return;
    };
    let daemon = ground.site.start();
    let change = |scene: &ground::Scene| {
        table::change(scene);
        pairs::change(scene);
    };
    goes_there_and_back(&ground, &daemon, change);
    daemon.stop();
    assert_eq!(ground.site.check(), 1);
}

/// A checkpoint that touches nothing, a change, a rollback, undo, and undo of that.
fn goes_there_and_back(ground: &Ground, daemon: &Daemon, change: impl FnOnce(&ground::Scene) + Send) {
    let (ws, outside) = (&ground.scene.ws, &ground.scene.outside);
    if ground.filesystem.is_overlay() {
        // Registration makes the root of a workspace on an overlay one of the upper layer: it has to stay the same.
        daemon.init(ws);
    }
    let stamps = Stamps::read(ws);
    daemon.checkpoint(ws, "one");
    stamps.assert_same(&Stamps::read(ws), "after the checkpoint");
    let before = Tree::read(ws);
    assert_eq!(daemon.diff(ws, "one", "@live"), []);
    ground.as_owner(|| change(&ground.scene));
    let (changed, outside_before) = (Tree::read(ws), Tree::read(outside));
    daemon.rollback(ws, "one");
    before.assert_same(&Tree::read(ws), "after the rollback");
    for (to, expected) in [("the change", &changed), ("the snapshot", &before)] {
        undo(ground);
        expected.assert_same(&Tree::read(ws), &format!("after undo, back to {to}"));
    }
    outside_before.assert_same(&Tree::read(outside), "outside of the workspace");
}

fn undo(ground: &Ground) {
    let undone = run(&mut ground.site.ws_ckpt(&["undo", "-w", ground.scene.ws.to_str().unwrap()]));
    assert_eq!(undone.code, 0, "{undone:?}");
}

/// What does not differ keeps its inode and all of its times.
fn one_of_many(filesystem: Filesystem) {
    const CHANGED: &str = "dir 42/file 42";
    let Some(ground) = Ground::new(filesystem, Who::Runner, |scene| {
        for n in 0..10_000 {
            files::write(scene.at(&format!("dir {}/file {}", n / 100, n % 100)), format!("{n}"));
        }
    }) else {
        return;
    };
    let daemon = ground.site.start();
    let ws = &ground.scene.ws;
    daemon.checkpoint(ws, "one");
    let (before, stamps) = (Tree::read(ws), Stamps::read(ws));
    files::write(ws.join(CHANGED), "changed");
    daemon.rollback(ws, "one");
    let moved: Vec<_> =
        stamps.moved(&Stamps::read(ws)).iter().map(|path| path.display().to_string()).collect();
    assert_eq!(moved, ["", "dir 42", CHANGED]);
    let after = Tree::read(ws);
    before.assert_same(&after, "after the rollback");
    before.assert_same_inodes(
        &after,
        before.paths().filter(|path| *path != CHANGED.as_bytes()),
        "the others",
    );
    daemon.stop();
}
