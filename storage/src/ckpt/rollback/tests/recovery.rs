//! Recovery may come days later, over new work, or to a workspace that is not there.

use std::os::unix::fs::MetadataExt;

use cofferdam_tests::files;

use super::*;

/// A rollback that died when it reached a step for the nth time, as if the machine had lost power.
pub(super) fn dead_at(lab: &Lab, target: &Manifest, step: &'static str, nth: usize) {
    let (result, _) = lab.attempt(&dying_at(step, nth), target);
    assert!(result.is_err(), "{result:?}");
}

/// A disk to which that happens.
pub(super) fn dying_at(step: &'static str, nth: usize) -> Disk {
    let dead = std::sync::atomic::AtomicBool::new(false);
    Disk::with_faults(std::sync::Arc::new(Dead { step, nth, count: AtomicU64::new(0), dead }))
}

#[derive(Debug)]
struct Dead {
    step: &'static str,
    nth: usize,
    count: AtomicU64,
    dead: std::sync::atomic::AtomicBool,
}

impl FaultHook for Dead {
    fn before(&self, _: Op) -> std::io::Result<()> {
        match self.dead.load(Ordering::Relaxed) {
            true => Err(rustix::io::Errno::IO.into()),
            false => Ok(()),
        }
    }

    fn step(&self, name: &str) -> std::io::Result<()> {
        if name == self.step && self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.nth as u64 {
            self.dead.store(true, Ordering::Relaxed);
        }
        self.before(Op::Commit)
    }
}

/// Four files to replace and two to remove, in the order of the steps: `gone-1`, `gone-2`, `file-1` … `file-4`.
pub(super) fn scene() -> (Lab, Manifest) {
    let lab = Lab::new();
    for n in 1..5 {
        files::write(lab.at(&format!("file-{n}")), format!("target {n}"));
    }
    let target = lab.capture();
    for n in 1..5 {
        files::write(lab.at(&format!("file-{n}")), format!("live {n}"));
    }
    files::write(lab.at("gone-1"), "live");
    files::write(lab.at("gone-2"), "live");
    (lab, target)
}

#[test]
fn new_work_that_recovery_meets_is_kept_in_place_and_in_the_safety_snapshot() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 4);
    // gone-1, gone-2 and file-1 are switched. Days pass.
    files::write(lab.at("gone-1"), "made again");
    files::write(lab.at("file-1"), "edited after the switch");
    files::write(lab.at("file-2"), "edited before it");
    files::remove(lab.at("file-3"));
    files::write(lab.at("elsewhere"), "new");
    let mut here = Here::new(&lab);
    let recovered = lab.recover_with(&Disk::default(), &mut here);
    assert_eq!(recovered[0].outcome, Ok(Outcome::Finished));
    let warned: Vec<_> = recovered[0].warnings.iter().map(|w| w.path.to_string()).collect();
    assert_eq!(warned, ["gone-1", "file-2", "file-3"]);
    for path in ["gone-1", "file-2"] {
        assert!(here.kept.iter().any(|kept| kept == path), "{:?}", here.kept);
    }
    assert_eq!(files::read(lab.at("gone-1")), b"made again");
    assert_eq!(files::read(lab.at("file-1")), b"edited after the switch");
    assert_eq!(files::read(lab.at("file-2")), b"edited before it");
    assert!(!lab.at("file-3").exists());
    assert_eq!(files::read(lab.at("file-4")), b"target 4");
    assert_eq!(files::read(lab.at("elsewhere")), b"new");
    assert!(!lab.at("gone-2").exists());
    lab.assert_nothing_left();
    assert_eq!(std::fs::read_dir(lab.ws()).unwrap().count(), 5);
}

#[test]
fn what_somebody_put_back_by_hand_stays_and_the_displaced_original_is_kept() {
    let (lab, target) = scene();
    let live = lab.capture();
    dead_at(&lab, &target, "rollback.switching", 4);
    // A copy with equal size and time, as `cp -p` makes it of what lies in the staging directory.
    let staging = lab.at(&lab.ignored().into_iter().next().unwrap().to_string());
    for (slot, name, content) in [("0", "gone-1", "LIVE"), ("2", "file-1", "LIVE 1")] {
        let time = std::fs::symlink_metadata(staging.join(slot)).unwrap();
        files::remove(lab.at(name));
        files::write(lab.at(name), content);
        files::set_mtime(lab.at(name), time.mtime(), time.mtime_nsec());
    }
    let mut here = Here { safety: Some(Safety::new(&lab, live)), ..Here::new(&lab) };
    let recovered = lab.recover_with(&Disk::default(), &mut here);
    assert_eq!(recovered[0].outcome, Ok(Outcome::Finished));
    assert_eq!(files::read(lab.at("gone-1")), b"LIVE");
    assert_eq!(files::read(lab.at("file-1")), b"LIVE 1");
    let late = here.safety.unwrap();
    assert_eq!(late.content("gone-1").unwrap(), b"live");
    assert_eq!(late.content("file-1").unwrap(), b"live 1");
    lab.assert_nothing_left();
}

#[test]
fn a_directory_made_anew_does_not_take_the_place_of_the_one_that_is_kept() {
    let lab = Lab::new();
    let target = lab.capture();
    files::write(lab.at("build/precious"), "live");
    let live = lab.capture();
    // So that nothing in it looks as if it were written since the capture.
    let from = Timestamp { secs: now().secs + 100, nanos: 0 };
    assert!(lab.attempt_from(&dying_at("rollback.switched", 1), &live, from, &target).0.is_err());
    files::write(lab.at("build/other"), "made again");
    let mut here = Here { safety: Some(Safety::new(&lab, live)), ..Here::new(&lab) };
    let recovered = lab.recover_with(&Disk::default(), &mut here);
    assert_eq!(recovered[0].outcome, Ok(Outcome::Finished));
    assert_eq!(files::read(lab.at("build/other")), b"made again");
    assert!(!lab.at("build/precious").exists());
    assert_eq!(here.safety.unwrap().content("build/precious").unwrap(), b"live");
    lab.assert_nothing_left();
}

#[test]
fn a_rollback_that_had_not_switched_is_taken_back_without_a_trace() {
    let (lab, target) = scene();
    files::write(lab.at("dir/file"), "live");
    let before = lab.tree();
    dead_at(&lab, &target, "rollback.staged", 1);
    assert_eq!(lab.ignored().len(), 1);
    files::write(lab.at("file-2"), "new work");
    files::set_mtime(lab.at("dir"), 1_700_000_000, 0);
    let mut here = Here::new(&lab);
    let recovered = lab.recover_with(&Disk::default(), &mut here);
    assert_eq!(recovered[0].outcome, Ok(Outcome::TakenBack));
    assert_eq!((recovered[0].warnings.len(), here.kept.len()), (0, 0));
    let changed = before.differences(&lab.tree());
    let mine = |line: &String| line.starts_with("file-2: ") || line.starts_with("dir: ");
    assert!(changed.iter().all(mine), "{changed:?}");
    let (secs, nanos) = (1_700_000_000, 0);
    assert_eq!(crate::fs::stat(lab.root(), "dir").unwrap().mtime, Timestamp { secs, nanos }, "it is newer");
    lab.assert_nothing_left();
}

#[test]
fn a_workspace_that_is_not_there_leaves_the_rollback_pending() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 2);
    let mut here = Here { there: false, ..Here::new(&lab) };
    assert!(lab.recover_with(&Disk::default(), &mut here)[0].outcome.is_err());
    // Another directory at its path is not it.
    files::rename(lab.ws(), lab.dir.path().join("moved"));
    files::write(lab.at("file-1"), "somebody else's");
    let other = lab.tree();
    let recovered = lab.recover(&Disk::default());
    assert!(recovered[0].outcome.as_ref().unwrap_err().contains("no longer the directory"), "{recovered:?}");
    other.assert_same(&lab.tree(), "another directory");
    assert_eq!(pending(lab.journal().as_fd()).unwrap().len(), 1);
    files::remove(lab.ws());
    files::rename(lab.dir.path().join("moved"), lab.ws());
    assert_eq!(lab.recover(&Disk::default())[0].outcome, Ok(Outcome::Finished));
    lab.assert_nothing_left();
}

#[test]
fn a_staging_directory_that_somebody_removed_keeps_nothing_pending() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 4);
    let staging = lab.ignored().into_iter().next().unwrap();
    files::remove(lab.at(&staging.to_string()));
    let recovered = lab.recover(&Disk::default());
    assert_eq!(recovered[0].outcome, Ok(Outcome::Finished));
    let warned: Vec<_> = recovered[0].warnings.iter().map(|w| w.path.to_string()).collect();
    assert_eq!(warned, ["file-2", "file-3", "file-4"]);
    assert_eq!(files::read(lab.at("file-2")), b"live 2");
    lab.assert_nothing_left();
}

#[test]
fn a_journal_cut_anywhere_counts_for_what_is_whole_in_it() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 3);
    let journal = lab.journal();
    let op = journal::operations(journal.as_fd()).unwrap().remove(0);
    let file = lab.dir.path().join("journal").join(format!("{op}.journal"));
    let whole = files::read(&file);
    let read = || journal::read(journal.as_fd(), &op).unwrap();
    let contents = read().unwrap();
    assert_eq!(contents.switch.as_ref().unwrap().steps.len(), 6);
    let mut seen = [0, 0, 0];
    for len in 0..whole.len() {
        files::write(&file, &whole[..len]);
        match read() {
            None => seen[0] += 1,
            Some(cut) if cut.switch.is_none() => {
                assert_eq!(cut.begin, contents.begin);
                seen[1] += 1;
            }
            Some(cut) => {
                assert_eq!(cut, contents);
                seen[2] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 30), "{seen:?}");
    // That of a program that is not written yet is neither.
    let mut newer = whole.clone();
    newer[8] += 1;
    files::write(&file, &newer);
    assert!(matches!(journal::read(journal.as_fd(), &op), Err(Error::NewerFormat { found: 2, .. })));
    files::write(&file, &whole);
    lab.recover(&Disk::default());
    lab.assert_nothing_left();
}

#[test]
fn a_journal_that_cannot_be_read_now_does_not_count_for_none() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 3);
    let op = journal::operations(lab.journal().as_fd()).unwrap().remove(0);
    let file = lab.dir.path().join("journal").join(format!("{op}.journal"));
    files::rename(&file, lab.dir.path().join("kept"));
    files::mkdir(&file);
    assert!(matches!(pending(lab.journal().as_fd()), Err(Error::Io { .. })));
    assert!(lab.recover(&Disk::default())[0].outcome.is_err());
    files::remove(&file);
    files::rename(lab.dir.path().join("kept"), &file);
    assert_eq!(lab.recover(&Disk::default())[0].outcome, Ok(Outcome::Finished));
}

#[test]
fn only_the_workspace_that_is_asked_for_is_recovered() {
    let (lab, target) = scene();
    dead_at(&lab, &target, "rollback.switching", 3);
    let (journal, other) = (lab.journal(), WorkspaceId::from_digest([9, 9, 9], 1));
    let only = |id: &WorkspaceId| {
        let disk = Disk::default();
        recover(&disk, journal.as_fd(), &lab.objects, Some(id), &mut Here::new(&lab)).unwrap().len()
    };
    assert_eq!(only(&other), 0);
    assert_eq!(only(&lab.id()), 1);
    lab.assert_nothing_left();
}

/// A journal with everything in it that a journal can have.
fn every_field() -> journal::Contents {
    use super::journal::{Contents, DirState, How, MetaStep, Step};
    use super::places::Seen;
    use crate::ckpt::FileKind;
    use crate::ckpt::format::{Meta, ObjectId};
    use crate::fs::FileIdentity;

    let time = |secs| Timestamp { secs, nanos: 999_999_999 };
    let seen = |kind, n: u8| Seen {
        identity: FileIdentity::from_bytes(&[n, 0xff]),
        kind,
        size: 1 << n,
        mtime: time(-1),
        ctime: time(1 << 40),
    };
    let meta = |mode| Meta {
        mode,
        uid: 1000,
        gid: 65534,
        mtime: time(5),
        xattrs: [(b"user.a"[..].into(), b"\0"[..].into())].into(),
    };
    let path = |text: &[u8]| RelPath::new(text).unwrap();
    let begin = Begin {
        workspace: WorkspaceId::from_digest([0xab, 0xcd, 0xef], 2),
        path: "/home/user/project".into(),
        root: FileIdentity::from_bytes(b"root"),
        peer: Peer { uid: 1000, gid: 1000, groups: vec![4, 1 << 30] },
        live: ObjectId([1; 32]),
        target: ObjectId([2; 32]),
        captured_from: time(1_700_000_000),
        staging: vec![path(b".cofferdam-op"), path(b"vol/.cofferdam-op")],
        dirs: vec![
            DirState {
                path: RelPath::ROOT,
                identity: FileIdentity::from_bytes(b""),
                mode: 0o7777,
                mtime: time(7),
                widen: false,
            },
            DirState {
                path: path(b"\xff"),
                identity: FileIdentity::from_bytes(b"i"),
                mode: 0o555,
                mtime: time(8),
                widen: true,
            },
        ],
    };
    let moved = |text, old, new, suspect| Step {
        path: path(text),
        how: How::Move { staging: 1, slot: Name::new(*b"0").unwrap(), old, new, suspect },
    };
    let steps = vec![
        moved(b"gone", Some(seen(FileKind::Socket, 1)), None, true),
        moved(b"new", None, Some(seen(FileKind::Directory, 2)), false),
        Step {
            path: path(b"dir"),
            how: How::Remove { old: seen(FileKind::Directory, 3), meta: meta(0o755), refilled: true },
        },
    ];
    let metas = vec![
        MetaStep { path: path(b"a"), seen: seen(FileKind::Symlink, 4), old: Some(meta(0)), new: meta(1) },
        MetaStep { path: path(b"b"), seen: seen(FileKind::File, 5), old: None, new: meta(0o4755) },
    ];
    Contents { begin, switch: Some(Switch { steps, metas }), verdict: Some(Verdict::Back) }
}

#[test]
fn a_journal_of_today_is_read_for_ever() {
    /// Changes only together with the journal's version.
    const FROZEN: &str = "25ce6dd9b60b6befcbcb5b4bc65ca7441d42b9d25745d1c565567ef0fcc645c8";
    let (dir, contents) = (tempfile::tempdir().unwrap(), every_field());
    let fd = crate::fs::open_for_reading(rustix::fs::CWD, dir.path()).unwrap();
    let mut journal = Journal::create(&Disk::default(), fd.as_fd(), "op", &contents.begin).unwrap();
    journal.switch(contents.switch.as_ref().unwrap()).0.unwrap();
    // A verdict takes the place of one that could not be made durable.
    journal.decide(Verdict::Done).unwrap();
    journal.decide(Verdict::Back).unwrap();
    assert_eq!(journal::read(fd.as_fd(), "op").unwrap().unwrap(), contents);
    let bytes = files::read(dir.path().join("op.journal"));
    assert_eq!(blake3::hash(&bytes).to_hex().as_str(), FROZEN);
}
