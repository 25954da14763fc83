//! Whatever operation fails, and wherever the process dies: exactly the old tree or exactly the new one.

use std::io;
use std::sync::Arc;

use cofferdam_tests::files;

use super::*;
use crate::disk::{FaultHook, Op};

/// Fails operations by their number.
#[derive(Debug)]
pub(super) struct Faults {
    fails: fn(u64, u64, Op) -> Option<rustix::io::Errno>,
    nth: u64,
    seen: AtomicU64,
    counts: std::sync::Mutex<HashMap<Op, u64>>,
}

impl Faults {
    pub(super) fn never() -> Self {
        Self { fails: |_, _, _| None, nth: 0, seen: AtomicU64::new(0), counts: Default::default() }
    }

    /// The nth operation fails, all others succeed.
    pub(super) fn once(nth: u64) -> Self {
        let fails = |nth, seen, _| (seen == nth).then_some(rustix::io::Errno::NOSPC);
        Self { fails, nth, seen: AtomicU64::new(0), counts: Default::default() }
    }

    /// From the nth operation on everything fails, as for a process that was killed there.
    pub(super) fn dying(nth: u64) -> Self {
        let fails = |nth, seen, _| (seen >= nth).then_some(rustix::io::Errno::IO);
        Self { fails, nth, seen: AtomicU64::new(0), counts: Default::default() }
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// How many operations of a kind there were.
    pub(super) fn count(&self, op: Op) -> u64 {
        self.counts.lock().unwrap().get(&op).copied().unwrap_or_default()
    }

    /// Whether the nth operation was reached.
    fn happened(&self) -> bool {
        self.seen() > self.nth
    }
}

impl FaultHook for Faults {
    fn before(&self, op: Op) -> io::Result<()> {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        *self.counts.lock().unwrap().entry(op).or_default() += 1;
        (self.fails)(self.nth, seen, op).map_or(Ok(()), |errno| Err(errno.into()))
    }

    fn step(&self, _: &str) -> io::Result<()> {
        self.before(Op::Commit)
    }
}

/// A live tree that differs from the target in every way.
struct Scene {
    lab: Lab,
    target: Manifest,
    old: Tree,
    new: Tree,
}

impl Scene {
    fn new() -> Self {
        let lab = Lab::new();
        files::write(lab.at("same"), "same");
        files::write(lab.at("content"), "target");
        files::write(lab.at("metadata"), "same");
        files::write(lab.at("restored"), "x");
        files::write(lab.at("came/back/file"), "x");
        files::write(lab.at("turned/file"), "x");
        files::write(lab.at("a"), "linked");
        files::hard_link(lab.at("a"), lab.at("b"));
        files::symlink("one", lab.at("link"));
        files::write(lab.at("locked/file"), "x");
        files::chmod(lab.at("came/back"), 0o555);
        files::chmod(lab.at("locked"), 0o555);
        basics::rest(&lab.ws(), 1_500_000_000);
        let (new, target) = (lab.tree(), lab.capture());
        files::write(lab.at("content"), "live");
        files::chmod(lab.at("metadata"), 0o600);
        files::remove(lab.at("restored"));
        files::remove(lab.at("came"));
        files::remove(lab.at("turned"));
        files::write(lab.at("turned"), "now a file");
        files::remove(lab.at("b"));
        files::write(lab.at("b"), "no link");
        files::remove(lab.at("link"));
        files::symlink("two", lab.at("link"));
        files::chmod(lab.at("locked"), 0o755);
        files::write(lab.at("locked/file"), "y");
        files::write(lab.at("locked/more"), "y");
        files::chmod(lab.at("locked"), 0o555);
        files::write(lab.at("new/dir/file"), "new");
        files::chmod(lab.at("new/dir"), 0o555);
        files::chmod(lab.at("new"), 0o555);
        files::write(lab.at("extra"), "new");
        basics::rest(&lab.ws(), 1_600_000_000);
        let old = lab.tree();
        Self { lab, target, old, new }
    }

    fn roll_back(&self, faults: &Arc<Faults>) -> (Result<RolledBack>, Option<Outcome>) {
        let (result, late) = self.lab.attempt(&Disk::with_faults(faults.clone()), &self.target);
        assert_eq!(late.kept, [""; 0], "nothing was written late");
        (result, late.settled)
    }

    /// Recovers, and says whether the tree is the new one.
    #[track_caller]
    fn is_new_after_recovery(&self, what: &str) -> bool {
        for recovered in self.lab.recover(&Disk::default()) {
            assert!(recovered.outcome.is_ok(), "{what}: {recovered:?}");
            assert_eq!(recovered.warnings, [], "{what}");
        }
        self.lab.assert_nothing_left();
        let now = self.lab.tree();
        let new = self.new.differences(&now);
        if new.is_empty() {
            return true;
        }
        let old = self.old.differences(&now);
        assert!(old.is_empty(), "{what}: neither the old tree\n{old:#?}\nnor the new one\n{new:#?}");
        false
    }
}

#[test]
fn whichever_operation_fails_the_tree_is_the_old_one_or_the_rollback_is_done() {
    for nth in 0.. {
        let scene = Scene::new();
        let faults = Arc::new(Faults::once(nth));
        let (result, settled) = scene.roll_back(&faults);
        let what = format!("operation {nth}: {result:?}");
        match &result {
            // What is left of it then is its staging directory, perhaps, and that has touched the root's time.
            Ok(_) => assert_eq!(settled, Some(Outcome::Finished), "{what}"),
            Err(_) => {
                scene.old.assert_same(&scene.lab.tree(), &what);
                scene.lab.assert_nothing_left();
                assert_ne!(settled, Some(Outcome::Finished), "{what}");
            }
        }
        assert_eq!(scene.is_new_after_recovery(&what), result.is_ok(), "{what}");
        if !faults.happened() {
            assert!(nth > 50, "{nth} operations cannot be all");
            return;
        }
    }
}

#[test]
fn wherever_the_process_dies_recovery_leaves_the_old_tree_or_the_new_one() {
    let mut outcomes = [0, 0];
    for nth in 0.. {
        let scene = Scene::new();
        let faults = Arc::new(Faults::dying(nth));
        let (result, _) = scene.roll_back(&faults);
        let is_new = scene.is_new_after_recovery(&format!("dead at operation {nth}: {result:?}"));
        outcomes[usize::from(is_new)] += 1;
        if !faults.happened() {
            break;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 20), "old and new: {outcomes:?}");
}

#[test]
fn recovery_that_dies_anywhere_is_finished_by_the_next_one() {
    // In the middle of the switch, after it, and while it is being taken back.
    let total = {
        let scene = Scene::new();
        let faults = Arc::new(Faults::never());
        scene.roll_back(&faults).0.unwrap();
        faults.seen()
    };
    for dead_at in [total / 4, total / 2, total * 3 / 4, total - 5] {
        for nth in 0.. {
            let scene = Scene::new();
            let (result, _) = scene.roll_back(&Arc::new(Faults::dying(dead_at)));
            let faults = Arc::new(Faults::dying(nth));
            scene.lab.recover(&Disk::with_faults(faults.clone()));
            scene.is_new_after_recovery(&format!("dead at {dead_at}, then at {nth}: {result:?}"));
            if !faults.happened() {
                break;
            }
        }
    }
}

/// Fails once, at a step, and from the nth operation after that on everything, as for a process that was killed then.
#[derive(Debug)]
struct DiesTakingBack {
    step: &'static str,
    failed: std::sync::atomic::AtomicBool,
    then: Faults,
}

impl FaultHook for DiesTakingBack {
    fn before(&self, op: Op) -> io::Result<()> {
        match self.failed.load(Ordering::Relaxed) {
            true => self.then.before(op),
            false => Ok(()),
        }
    }

    fn step(&self, name: &str) -> io::Result<()> {
        if name == self.step && !self.failed.swap(true, Ordering::Relaxed) {
            return Err(rustix::io::Errno::IO.into());
        }
        self.before(Op::Commit)
    }
}

#[test]
fn wherever_the_process_dies_taking_back_recovery_ends_it_and_reports_nothing() {
    for step in ["rollback.staged", "rollback.switched", "rollback.metadata"] {
        for nth in 0.. {
            let scene = Scene::new();
            let hook = Arc::new(DiesTakingBack { step, failed: false.into(), then: Faults::dying(nth) });
            let (result, _) = scene.lab.attempt(&Disk::with_faults(hook.clone()), &scene.target);
            assert!(result.is_err(), "{result:?}");
            scene.is_new_after_recovery(&format!("{step}, dead at {nth}: {result:?}"));
            if !hook.then.happened() {
                scene.old.assert_same(&scene.lab.tree(), step);
                break;
            }
        }
    }
}

/// From a step on nothing that takes space works, as on a full disk.
#[derive(Debug)]
struct Full {
    from: &'static str,
    full: std::sync::atomic::AtomicBool,
}

impl FaultHook for Full {
    fn before(&self, op: Op) -> io::Result<()> {
        let takes_space = matches!(op, Op::Create | Op::Write | Op::Mkdir | Op::Link | Op::Symlink);
        match takes_space && self.full.load(Ordering::Relaxed) {
            true => Err(rustix::io::Errno::NOSPC.into()),
            false => Ok(()),
        }
    }

    fn step(&self, name: &str) -> io::Result<()> {
        self.full.fetch_or(name == self.from, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn a_disk_that_fills_up_before_the_switch_leaves_the_old_tree_and_no_trace() {
    for from in ["rollback.journaled", "rollback.staged"] {
        let scene = Scene::new();
        let full = Arc::new(Full { from, full: Default::default() });
        let (result, late) = scene.lab.attempt(&Disk::with_faults(full), &scene.target);
        assert!(matches!(result, Err(Error::NoSpace { .. })), "{from}: {result:?}");
        assert_eq!(late.settled, Some(Outcome::TakenBack), "{from}");
        scene.old.assert_same(&scene.lab.tree(), from);
        scene.lab.assert_nothing_left();
    }
}

#[test]
fn a_disk_on_which_no_verdict_can_be_written_is_said_to_be_full_and_the_rollback_ends_later() {
    let scene = Scene::new();
    let full = Arc::new(Full { from: "rollback.switched", full: Default::default() });
    let disk = Disk::with_faults(full);
    let (result, late) = scene.lab.attempt(&disk, &scene.target);
    assert!(matches!(&result, Err(Error::NoSpace { what }) if what.contains("tried again")), "{result:?}");
    assert_eq!(late.settled, None);
    let again = scene.lab.recover(&disk);
    assert!(again[0].no_space && again[0].outcome.is_err(), "{again:?}");
    assert_eq!(scene.lab.recover(&Disk::default())[0].outcome, Ok(Outcome::Finished));
    scene.lab.assert_nothing_left();
}
