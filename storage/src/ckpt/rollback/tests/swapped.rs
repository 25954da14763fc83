//! Names that somebody gives to other files while metadata is being set: those are none of our business.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cofferdam_tests::user::{NOBODY, give, is_root};
use cofferdam_tests::{files, skip};
use rustix::fs::{Mode, OFlags};

use super::*;
use crate::disk::{FaultHook, Op};
use crate::fs::{Stat, stat_fd};

/// Gives a name to another file just before the system call that sets metadata, which is after every check.
#[derive(Debug)]
struct Swap {
    /// From this step on.
    from: &'static str,
    /// Whether that step fails.
    fails: bool,
    /// The name, where what had it goes, and what gets it.
    name: PathBuf,
    aside: PathBuf,
    other: PathBuf,
    /// Before which change from then on, counted from 0, while something has the name.
    nth: u64,
    armed: AtomicBool,
    seen: AtomicU64,
    done: AtomicBool,
}

impl FaultHook for Swap {
    fn before(&self, op: Op) -> io::Result<()> {
        let there = || std::fs::symlink_metadata(&self.name).is_ok();
        if op == Op::SetMeta
            && self.armed.load(Ordering::Relaxed)
            && there()
            && self.seen.fetch_add(1, Ordering::Relaxed) == self.nth
        {
            files::rename(&self.name, &self.aside);
            files::rename(&self.other, &self.name);
            self.done.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn step(&self, name: &str) -> io::Result<()> {
        if name == self.from && !self.armed.swap(true, Ordering::Relaxed) && self.fails {
            return Err(rustix::io::Errno::IO.into());
        }
        Ok(())
    }
}

/// A hold on a file, to look at it wherever it is by now.
struct Watched(OwnedFd, Stat);

impl Watched {
    fn new(path: &Path) -> Self {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::open(path, flags, Mode::empty()).unwrap();
        let stat = stat_fd(&held).unwrap();
        Self(held, stat)
    }

    #[track_caller]
    fn assert_untouched(&self, what: &str) {
        let now = stat_fd(&self.0).unwrap();
        let of = |stat: &Stat| (stat.kind, stat.mode, stat.uid, stat.gid, stat.mtime);
        assert_eq!(of(&now), of(&self.1), "{what}");
    }

    #[track_caller]
    fn assert_time(&self, secs: i64, what: &str) {
        assert_eq!(stat_fd(&self.0).unwrap().mtime.secs, secs, "{what}");
    }
}

const TARGET: i64 = 1_500_000_000;
const LIVE: i64 = 1_600_000_000;
const OTHER: i64 = 1_400_000_000;

type Make = fn(&Path);

/// Everything of which only the metadata is another.
const KINDS: [(&str, Make); 4] = [
    ("file", |path| files::write(path, "x")),
    ("link", |path| files::symlink("x", path)),
    ("fifo", |path| files::fifo(path)),
    ("dir", |path| files::mkdir(path)),
];

/// What a file has at a time.
fn dress(path: &Path, mode: u32, owner: u32, secs: i64) {
    if is_root() {
        give(path, owner);
    }
    // Only these have attributes of the user's.
    if path.is_file() || path.is_dir() {
        let _ = files::set_xattr(path, "user.note", &secs.to_le_bytes());
    }
    if !path.is_symlink() {
        files::chmod(path, mode);
    }
    files::set_mtime(path, secs, 5);
}

struct Scene {
    lab: Lab,
    target: Manifest,
    other: PathBuf,
}

impl Scene {
    fn new(make: Make) -> Self {
        let lab = Lab::new();
        let (at, other) = (lab.at("name"), lab.at("other"));
        make(&at);
        make(&other);
        dress(&other, 0o640, 0, OTHER);
        dress(&at, 0o755, NOBODY, TARGET);
        files::set_mtime(lab.ws(), TARGET, 5);
        let target = lab.capture();
        dress(&at, 0o700, 0, LIVE);
        Self { lab, target, other }
    }

    fn swap(&self, from: &'static str, fails: bool, name: &str, nth: u64) -> Arc<Swap> {
        Arc::new(Swap {
            from,
            fails,
            name: self.lab.at(name),
            aside: self.lab.at("aside"),
            other: self.other.clone(),
            nth,
            armed: Default::default(),
            seen: Default::default(),
            done: Default::default(),
        })
    }
}

/// Swaps at each change in turn. `run` says whether it came to that.
fn at_each_change(what: &str, mut run: impl FnMut(u64) -> bool) {
    let count = (0..).take_while(|nth| run(*nth)).count();
    assert!(count > 0, "{what}: nothing was swapped");
}

#[test]
fn a_rollback_sets_nothing_of_a_file_that_got_the_name_after_the_check() {
    for (kind, make) in KINDS {
        at_each_change(kind, |nth| {
            let scene = Scene::new(make);
            let (other, kept) = (Watched::new(&scene.other), Watched::new(&scene.lab.at("name")));
            let hook = scene.swap("rollback.switched", false, "name", nth);
            let (result, _) = scene.lab.attempt(&Disk::with_faults(hook.clone()), &scene.target);
            let what = format!("{kind}, change {nth}: {result:?}");
            other.assert_untouched(&what);
            // Whether it was this file's change or its directory's, it is what was asked for.
            kept.assert_time(TARGET, &what);
            hook.done.load(Ordering::Relaxed)
        });
    }
}

#[test]
fn taking_back_sets_nothing_of_a_file_that_got_the_name_after_the_check() {
    for (kind, make) in KINDS {
        at_each_change(kind, |nth| {
            let scene = Scene::new(make);
            let (other, kept) = (Watched::new(&scene.other), Watched::new(&scene.lab.at("name")));
            let hook = scene.swap("rollback.metadata", true, "name", nth);
            let (result, _) = scene.lab.attempt(&Disk::with_faults(hook.clone()), &scene.target);
            let what = format!("{kind}, change {nth}: {result:?}");
            assert!(result.is_err(), "{what}");
            other.assert_untouched(&what);
            kept.assert_time(LIVE, &what);
            hook.done.load(Ordering::Relaxed)
        });
    }
}

#[test]
fn recovery_sets_nothing_of_a_file_that_got_the_name_after_the_check() {
    for (kind, make) in KINDS {
        // A directory that may not be listed is set another way.
        for listed in if kind == "dir" { &[true, false][..] } else { &[true] } {
            at_each_change(kind, |nth| {
                let scene = Scene::new(make);
                let (other, kept) = (Watched::new(&scene.other), Watched::new(&scene.lab.at("name")));
                let dead = Disk::with_faults(Arc::new(DiesAt("rollback.switched", AtomicBool::new(false))));
                let (result, _) = scene.lab.attempt(&dead, &scene.target);
                assert!(result.is_err(), "{result:?}");
                if !listed {
                    files::chmod(scene.lab.at("name"), 0o300);
                }
                let hook = scene.swap("recovery.begun", false, "name", nth);
                let recovered = scene.lab.recover(&Disk::with_faults(hook.clone()));
                let what = format!("{kind}, change {nth}: {recovered:?}");
                other.assert_untouched(&what);
                kept.assert_time(TARGET, &what);
                hook.done.load(Ordering::Relaxed)
            });
        }
    }
}

/// From a step on nothing works, as for a process that was killed there.
#[derive(Debug)]
struct DiesAt(&'static str, AtomicBool);

impl FaultHook for DiesAt {
    fn before(&self, _: Op) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Err(rustix::io::Errno::IO.into()) } else { Ok(()) }
    }

    fn step(&self, name: &str) -> io::Result<()> {
        self.1.fetch_or(name == self.0, Ordering::Relaxed);
        self.before(Op::Commit)
    }
}

#[test]
fn what_is_staged_gets_its_metadata_even_if_its_name_is_given_to_another_file() {
    for (kind, make) in &KINDS[..3] {
        at_each_change(kind, |nth| {
            let scene = Scene::new(*make);
            let lab = &scene.lab;
            files::remove(lab.at("name"));
            let other = Watched::new(&scene.other);
            let staged = format!(".cofferdam-{:032x}/0", 0);
            let hook = scene.swap("rollback.journaled", false, &staged, nth);
            let (result, _) = lab.attempt(&Disk::with_faults(hook.clone()), &scene.target);
            other.assert_untouched(&format!("{kind}, change {nth}: {result:?}"));
            let done = hook.done.load(Ordering::Relaxed);
            if done {
                Watched::new(&lab.at("aside")).assert_time(TARGET, kind);
            }
            done
        });
    }
}

#[test]
fn a_file_that_only_looks_like_the_one_on_record_is_left_alone() {
    let scene = Scene::new(KINDS[0].1);
    let (lab, name, other) = (&scene.lab, scene.lab.at("name"), scene.other.clone());
    if lab.root().is_overlay().unwrap() {
        skip!("on an overlay nobody can tell");
    }
    files::set_mtime(&other, LIVE, 5);
    let watched = Watched::new(&other);
    let act = move |_| {
        files::rename(&other, &name);
        Ok(())
    };
    let (result, _) = lab.attempt(&at_step("rollback.switched", act), &scene.target);
    watched.assert_untouched(&format!("{result:?}"));
}
