//! Every operation of the disk, of every request, fails once, meets a full disk once, and is the last of its process
//! once.
//!
//! Afterwards the tree is exactly the old or exactly the new one, what was acknowledged is there, the store is sound to
//! its last byte, nothing is left behind, and the same request succeeds.

mod operations;
mod power;
mod scene;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use rustix::io::Errno;

use super::fixture::*;
use crate::ckpt::Store;
use crate::ckpt::error::Error;
use crate::disk::{Disk, FaultHook, Op};
use scene::{Scene, State};

/// What happens at operation N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It fails, and nothing after it does.
    Error,
    /// It is the first of those that need space to find none; nor does any later one. Only these are counted.
    FullDisk,
    /// It and everything after it does not happen.
    Death,
}

/// Lets faults happen, counted from when it was armed.
#[derive(Debug, Default)]
struct Striking(Mutex<Armed>);

#[derive(Debug, Default)]
struct Armed {
    fault: Option<Fault>,
    /// Operations before it.
    left: u64,
    /// A step at which everything ends, and how often it is reached before.
    deadly_step: Option<(&'static str, u64)>,
    struck: bool,
}

impl Striking {
    fn arm(&self, fault: Fault, left: u64) {
        *self.0.lock().unwrap() = Armed { fault: Some(fault), left, ..Armed::default() };
    }

    fn arm_step(&self, step: &'static str, before: u64) {
        *self.0.lock().unwrap() = Armed { deadly_step: Some((step, before)), ..Armed::default() };
    }

    /// Nothing more happens. Says whether anything did.
    fn disarm(&self) -> bool {
        std::mem::take(&mut *self.0.lock().unwrap()).struck
    }
}

fn takes_space(op: Op) -> bool {
    match op {
        Op::Create | Op::Write | Op::Mkdir | Op::Link | Op::Symlink | Op::Mknod | Op::Commit => true,
        Op::Truncate
        | Op::Fsync
        | Op::Syncfs
        | Op::Writeback
        | Op::Rename
        | Op::Exchange
        | Op::Unlink
        | Op::Rmdir
        | Op::SetMeta => false,
    }
}

impl FaultHook for Striking {
    fn before(&self, op: Op) -> io::Result<()> {
        let mut armed = self.0.lock().unwrap();
        let Some(fault) = armed.fault else { return Ok(()) };
        if fault == Fault::FullDisk && !takes_space(op) {
            return Ok(());
        }
        if armed.left > 0 {
            armed.left -= 1;
            return Ok(());
        }
        armed.struck = true;
        match fault {
            Fault::Error => {
                armed.fault = None;
                Err(Errno::IO.into())
            }
            Fault::FullDisk => Err(Errno::NOSPC.into()),
            Fault::Death => Err(Errno::IO.into()),
        }
    }

    fn step(&self, name: &str) -> io::Result<()> {
        let mut armed = self.0.lock().unwrap();
        match &mut armed.deadly_step {
            Some((step, 0)) if *step == name => {
                *armed = Armed { fault: Some(Fault::Death), struck: true, ..Armed::default() };
                Err(Errno::IO.into())
            }
            Some((step, before)) if *step == name => {
                *before -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A request, what stands before it, and what it comes to.
#[must_use = "it proves nothing until it has survived"]
struct Operation {
    name: &'static str,
    /// Brings a place there, on a sound disk.
    prepare: fn(&mut Scene),
    request: Request,
    /// The snapshots that are listed once it is done.
    listed: &'static [&'static str],
    /// The tree that is there then, by the name of the reading; none: it stays as it is.
    tree: Option<&'static str>,
    /// What else must be true at the end.
    at_last: fn(&Scene, &Store),
}

/// Which of the two states can be there.
#[derive(Clone, Copy, Debug)]
enum MayBe {
    Old,
    New,
    Either,
}

enum Request {
    To(fn(&Store, &Scene) -> Result<(), Error>),
    /// Opening the store, which is also recovery.
    Open,
}

impl Operation {
    /// In a directory; with the store in another one, if one is given.
    fn prepare(&self, dir: &Path, store: Option<&Path>) -> Scene {
        let mut scene = Scene::new_in(dir);
        if let Some(store) = store {
            cofferdam_tests::files::mkdir(store.join("state"));
            cofferdam_tests::files::symlink(store.join("state"), scene.place.path("state"));
        }
        (self.prepare)(&mut scene);
        scene.settle();
        scene
    }

    fn before(&self, scene: &Scene) -> State {
        scene.before.clone()
    }

    fn after(&self, scene: &Scene) -> State {
        State {
            listed: self.listed.iter().map(|name| (*name).to_owned()).collect(),
            tree: match self.tree {
                Some(name) => scene.readings[name].clone(),
                None => scene.before.tree.clone(),
            },
        }
    }

    /// Carries it out on a disk that is watched from when it begins.
    fn attempt(&self, scene: &Scene, disk: Disk, begin: impl FnOnce()) -> (Option<Store>, Result<(), Error>) {
        let options = scene.place.options(disk);
        match self.request {
            Request::To(request) => {
                let store = Store::open(options).unwrap().0;
                begin();
                let result = request(&store, scene);
                (Some(store), result)
            }
            Request::Open => {
                begin();
                match Store::open(options) {
                    Ok((store, _)) => (Some(store), Ok(())),
                    Err(error) => (None, Err(error)),
                }
            }
        }
    }

    /// One fault, and everything that must hold after it. Says whether it happened.
    fn survives(&self, fault: Fault, nth: u64) -> bool {
        let scene = self.prepare(&std::env::temp_dir(), None);
        let disk = Disk::with_faults(scene.hook.clone());
        let (store, result) = self.attempt(&scene, disk, || scene.hook.arm(fault, nth));
        let what = format!("{}, {fault:?} at operation {nth}: {result:?}", self.name);
        // What is dead cleans nothing up; and what a recovery could not do, the next one does.
        let store = store.filter(|_| fault != Fault::Death && matches!(self.request, Request::To(_)));
        let struck = scene.hook.disarm();
        assert!(struck || result.is_ok(), "{what}");
        let half_way = match &result {
            Err(Error::Io { what, .. } | Error::NoSpace { what }) => {
                what.contains("taking the rollback back failed")
            }
            _ => false,
        };
        if let (Fault::FullDisk, Err(error), false) = (fault, &result, half_way) {
            assert!(matches!(error, Error::NoSpace { .. }), "{what}");
        }
        let may_be = match (&result, &store) {
            (Ok(()), _) if matches!(self.request, Request::To(_)) => MayBe::New,
            // Whoever lives and says that it failed has done nothing of it.
            (Err(_), Some(_)) if !half_way => MayBe::Old,
            _ => MayBe::Either,
        };
        // The next request for the workspace would finish it as well.
        let store = store.filter(|_| !half_way).unwrap_or_else(|| scene.place.open());
        self.ends_well(&scene, store, may_be, &what);
        struck
    }

    /// Everything that must hold after whatever happened: the tree is what it may be, the same request succeeds, what
    /// was acknowledged is there, the store is sound, and nothing is left.
    fn ends_well(&self, scene: &Scene, store: Store, may_be: MayBe, what: &str) {
        let (old, new) = (self.before(scene), self.after(scene));
        let now = scene.state(&store);
        match may_be {
            MayBe::Old => now.assert_is(&old, &old, what),
            MayBe::New => now.assert_is(&new, &new, what),
            MayBe::Either => now.assert_is(&old, &new, what),
        }
        // What shows nothing can be asked for twice.
        let is_done = now.is(&new) && !old.is(&new);
        if let (Request::To(request), false) = (&self.request, is_done) {
            let again = request(&store, scene);
            assert!(again.is_ok(), "{what}, and again: {again:?}");
        }
        scene.state(&store).assert_is(&new, &new, what);
        (self.at_last)(scene, &store);
        assert_sound(&store, self.listed.len() as u64);
        scene.assert_every_snapshot_is_its_tree(&store, what);
        drop(store);
        let store = scene.place.open();
        collect_all(&store);
        assert_sound(&store, self.listed.len() as u64);
        scene.assert_nothing_left(&store, what);
    }

    /// For N = 0, 1, 2, … until nothing happens any more.
    fn survives_everything(&self) {
        let mut counts = Vec::new();
        for fault in [Fault::Error, Fault::FullDisk, Fault::Death] {
            let count = (0..).find(|nth| !self.survives(fault, *nth)).unwrap_or_default();
            counts.push(count);
        }
        report(self.name, &counts);
    }
}

/// Past the test runner, for whoever wants to know how much was tried.
fn report(name: &str, counts: &[u64]) {
    let [errors, full, deaths] = counts else { panic!("{counts:?}") };
    let line = format!("faults covered: {name}: {errors} errors, {full} full disks, {deaths} deaths\n");
    io::stderr().write_all(line.as_bytes()).unwrap();
}
