//! No write that a program was told is done gets lost, whenever it came.

use std::io;
use std::os::unix::fs::FileExt;

use cofferdam_tests::{files, skip};

use super::*;

/// Why nothing can happen in a directory that was displaced: only empty ones are.
const PIECE_BY_PIECE: &str = "on an overlay directories are emptied one by one, and one that is not empty then is no more than an error";

/// A workspace whose live tree has been captured, and what it is to be rolled back to.
struct Captured {
    lab: Lab,
    live: Manifest,
    from: Timestamp,
    target: Manifest,
    target_tree: Tree,
}

impl Captured {
    fn new(target: impl FnOnce(&Lab), live: impl FnOnce(&Lab)) -> Self {
        let lab = Lab::new();
        target(&lab);
        basics::rest(&lab.ws(), 1_500_000_000);
        let (target_tree, target) = (lab.tree(), lab.capture());
        live(&lab);
        basics::rest(&lab.ws(), 1_600_000_000);
        let from = now();
        let live = lab.capture();
        Self { lab, live, from, target, target_tree }
    }

    /// Rolls back; the tree must be exactly the target. Returns the paths the user is warned of.
    fn roll_back(&self, disk: &Disk) -> (Vec<String>, Safety<'_>) {
        let (result, late) = self.lab.attempt_from(disk, &self.live, self.from, &self.target);
        self.target_tree.assert_same(&self.lab.tree(), "rolled back");
        self.lab.assert_nothing_left();
        assert_eq!(late.settled, Some(Outcome::Finished));
        let warnings = result.unwrap().warnings;
        assert!(warnings.iter().all(|warning| warning.kind == WarningKind::LateWrite), "{warnings:?}");
        (warnings.iter().map(|warning| warning.path.to_string()).collect(), late)
    }
}

#[test]
fn what_is_written_after_the_capture_is_in_the_safety_snapshot() {
    let scene = Captured::new(
        |lab| {
            files::write(lab.at("replaced"), "target");
            files::write(lab.at("created"), "target");
            files::write(lab.at("quiet"), "target");
        },
        |lab| {
            files::write(lab.at("replaced"), "live");
            files::write(lab.at("deleted"), "live");
            files::remove(lab.at("created"));
            files::write(lab.at("quiet"), "live");
        },
    );
    files::append(scene.lab.at("replaced"), " and more");
    files::write(scene.lab.at("deleted"), "LIVE");
    files::write(scene.lab.at("created"), "appeared");
    let (warned, late) = scene.roll_back(&Disk::default());
    assert_eq!(warned, ["created", "deleted", "replaced"]);
    assert_eq!(late.content("replaced").unwrap(), b"live and more");
    assert_eq!(late.content("deleted").unwrap(), b"LIVE");
    assert_eq!(late.content("created").unwrap(), b"appeared");
    assert_eq!(late.content("quiet").unwrap(), b"live");
}

#[test]
fn what_happens_in_a_directory_that_goes_is_in_the_safety_snapshot() {
    if Lab::new().root().is_overlay().unwrap() {
        skip!("{PIECE_BY_PIECE}");
    }
    let scene = Captured::new(
        |_| (),
        |lab| {
            for name in ["dir/quiet", "dir/changed", "dir/sub/changed", "dir/gone", "dir/turned"] {
                files::write(lab.at(name), "live");
            }
        },
    );
    let dir = scene.lab.at("dir");
    files::write(dir.join("changed"), "changed");
    files::write(dir.join("sub/changed"), "changed");
    files::write(dir.join("sub/new"), "new");
    files::write(dir.join("new/tree/file"), "new");
    files::remove(dir.join("gone"));
    files::remove(dir.join("turned"));
    files::write(dir.join("turned/into"), "a directory");
    let (warned, late) = scene.roll_back(&Disk::default());
    assert_eq!(warned, ["dir/changed", "dir/new", "dir/sub/changed", "dir/sub/new", "dir/turned"]);
    for (path, content) in [
        ("dir/quiet", "live"),
        ("dir/changed", "changed"),
        ("dir/sub/changed", "changed"),
        ("dir/sub/new", "new"),
        ("dir/new/tree/file", "new"),
        ("dir/turned/into", "a directory"),
    ] {
        assert_eq!(late.content(path).unwrap(), content.as_bytes(), "{path}");
    }
}

#[test]
fn a_write_that_moved_no_time_is_found_while_the_file_is_open() {
    let mut scene = Captured::new(|_| (), |lab| files::write(lab.at("mapped"), "live"));
    // So that the time of change tells nothing, as after a store through a mapping.
    scene.from = Timestamp { secs: scene.from.secs + 100, nanos: 0 };
    let writer = std::fs::File::options().write(true).open(scene.lab.at("mapped")).unwrap();
    writer.write_all_at(b"LIVE", 0).unwrap();
    files::set_mtime(scene.lab.at("mapped"), 1_600_000_000, 123_456_789);
    let (_, late) = scene.roll_back(&Disk::default());
    assert_eq!(late.content("mapped").unwrap(), b"LIVE");
}

#[test]
fn a_file_that_only_gets_metadata_keeps_what_is_written_to_it() {
    let scene =
        Captured::new(|lab| files::write(lab.at("file"), "same"), |lab| files::chmod(lab.at("file"), 0o600));
    files::append(scene.lab.at("file"), ", but more");
    let disk = Disk::default();
    let (result, late) = scene.lab.attempt_from(&disk, &scene.live, scene.from, &scene.target);
    assert_eq!(result.unwrap().warnings.len(), 1);
    assert_eq!(files::read(scene.lab.at("file")), b"same, but more");
    assert_eq!(late.content("file").unwrap(), b"same, but more");
    let now = scene.lab.tree();
    let file = now.get("file").unwrap();
    assert_eq!(file.mode, scene.target_tree.get("file").unwrap().mode);
    assert_ne!(file.mtime, scene.target_tree.get("file").unwrap().mtime, "its time says that it is newer");
}

#[test]
fn a_save_in_the_middle_of_the_switch_is_displaced_and_kept() {
    let scene = Captured::new(
        |lab| files::write(lab.at("a"), "target"),
        |lab| {
            files::write(lab.at("a"), "live");
            files::write(lab.at("b"), "live");
        },
    );
    let ws = scene.lab.ws();
    let save = move |count| {
        if count == 1 {
            for name in ["a", "b"] {
                files::write(ws.join("saving"), "saved");
                files::rename(ws.join("saving"), ws.join(name));
            }
        }
        Ok(())
    };
    let (warned, late) = scene.roll_back(&at_step("rollback.switching", save));
    assert_eq!(warned, ["a", "b"]);
    assert_eq!(late.content("a").unwrap(), b"saved");
    assert_eq!(late.content("b").unwrap(), b"saved");
}

#[test]
fn a_write_to_what_was_just_displaced_is_kept() {
    if Lab::new().root().is_overlay().unwrap() {
        skip!("{PIECE_BY_PIECE}");
    }
    let scene = Captured::new(
        |_| (),
        |lab| {
            files::write(lab.at("file"), "live");
            files::write(lab.at("dir/in"), "live");
        },
    );
    let open = |path: &str| std::fs::File::options().append(true).open(scene.lab.at(path)).unwrap();
    let (mut file, mut inside) = (open("file"), open("dir/in"));
    let dir = std::fs::File::open(scene.lab.at("dir")).unwrap();
    let act = move |_| {
        io::Write::write_all(&mut file, b" and late")?;
        io::Write::write_all(&mut inside, b" and late")?;
        rustix::fs::mkdirat(&dir, "made", rustix::fs::Mode::RWXU)?;
        Ok(())
    };
    let (warned, late) = scene.roll_back(&at_step("rollback.switched", act));
    assert_eq!(warned, ["dir/in", "dir/made", "file"]);
    assert_eq!(late.content("file").unwrap(), b"live and late");
    assert_eq!(late.content("dir/in").unwrap(), b"live and late");
}

#[test]
fn a_victim_that_vanished_keeps_nothing_from_being_restored() {
    let scene = Captured::new(
        |lab| files::write(lab.at("a"), "target"),
        |lab| {
            files::write(lab.at("a"), "live");
            files::write(lab.at("b"), "live");
        },
    );
    files::remove(scene.lab.at("a"));
    let ws = scene.lab.ws();
    let act = move |count| {
        if count == 1 {
            files::remove(ws.join("b"));
        }
        Ok(())
    };
    assert_eq!(scene.roll_back(&at_step("rollback.switching", act)).0, [""; 0]);
}

#[test]
fn what_is_written_to_a_new_file_is_kept_when_the_rollback_is_taken_back() {
    let scene = Captured::new(
        |lab| {
            files::write(lab.at("file"), "target");
            files::write(lab.at("dir/in"), "target");
        },
        |lab| {
            files::write(lab.at("file"), "live");
            files::remove(lab.at("dir"));
        },
    );
    let (ws, before) = (scene.lab.ws(), scene.lab.tree());
    let act = move |_| {
        files::append(ws.join("file"), " and late");
        files::write(ws.join("dir/late"), "late");
        Err(rustix::io::Errno::IO.into())
    };
    let disk = at_step("rollback.switched", act);
    let (result, late) = scene.lab.attempt_from(&disk, &scene.live, scene.from, &scene.target);
    assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
    assert_eq!(late.settled, Some(Outcome::TakenBack));
    before.assert_same(&scene.lab.tree(), "taken back");
    scene.lab.assert_nothing_left();
    assert_eq!(late.content("file").unwrap(), b"target and late");
    assert_eq!(late.content("dir/late").unwrap(), b"late");
}

#[test]
fn a_victim_whose_name_is_taken_when_the_rollback_is_taken_back_is_in_the_safety_snapshot() {
    let scene = Captured::new(
        |lab| files::write(lab.at("file"), "target"),
        |lab| {
            files::write(lab.at("file"), "live");
            files::write(lab.at("gone"), "live");
            files::write(lab.at("dir/in"), "live");
        },
    );
    // Written too late for the capture, too.
    files::write(scene.lab.at("gone"), "late");
    let ws = scene.lab.ws();
    let act = move |_| {
        files::write(ws.join("gone"), "made again");
        files::write(ws.join("dir/other"), "made again");
        files::remove(ws.join("file"));
        files::write(ws.join("file"), "made again");
        Err(rustix::io::Errno::IO.into())
    };
    let disk = at_step("rollback.switched", act);
    let (result, late) = scene.lab.attempt_from(&disk, &scene.live, scene.from, &scene.target);
    assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
    assert_eq!(late.settled, Some(Outcome::TakenBack));
    assert_eq!(late.published, late.kept.len());
    scene.lab.assert_nothing_left();
    for path in ["gone", "dir/other", "file"] {
        assert_eq!(files::read(scene.lab.at(path)), b"made again", "{path}");
    }
    assert_eq!(late.content("gone").unwrap(), b"late");
    assert_eq!(late.content("dir/in").unwrap(), b"live");
    assert_eq!(late.content("file").unwrap(), b"live");
}

#[test]
fn a_directory_that_was_swapped_for_a_link_is_not_followed() {
    let scene = Captured::new(
        |lab| files::write(lab.at("dir/file"), "target"),
        |lab| files::write(lab.at("dir/file"), "live"),
    );
    let outside = scene.lab.dir.path().join("outside");
    files::write(outside.join("file"), "outside");
    let (ws, there) = (scene.lab.ws(), outside.clone());
    let act = move |_| {
        files::rename(ws.join("dir"), ws.join("moved"));
        files::symlink(&there, ws.join("dir"));
        Ok(())
    };
    let disk = at_step("rollback.switch-journaled", act);
    let (result, late) = scene.lab.attempt_from(&disk, &scene.live, scene.from, &scene.target);
    assert!(result.is_err(), "{result:?}");
    assert_eq!(late.settled, Some(Outcome::TakenBack));
    scene.lab.assert_nothing_left();
    assert_eq!(files::read(outside.join("file")), b"outside");
    assert_eq!(files::read(scene.lab.at("moved/file")), b"live");
}

#[test]
fn metadata_of_a_file_that_stays_are_no_late_writes_where_its_other_name_was_displaced() {
    let scene = Captured::new(
        |lab| {
            files::write(lab.at("stays"), "same");
            files::chmod(lab.at("stays"), 0o600);
        },
        |lab| {
            files::chmod(lab.at("stays"), 0o644);
            files::mkdir(lab.at("dir"));
            files::hard_link(lab.at("stays"), lab.at("dir/name"));
        },
    );
    let (warned, late) = scene.roll_back(&Disk::default());
    assert_eq!((warned, late.kept), (vec![], vec![]));
}
