//! A disk that fails, and a process that dies, at every single operation.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use super::fixture::*;
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store, StoreOptions};
use crate::disk::{Disk, FaultHook, Op};
use crate::peer::Peer;

/// Fails operations, counted from when it was armed.
#[derive(Debug, Default)]
struct Failing(Mutex<Option<Armed>>);

#[derive(Clone, Copy, Debug)]
struct Armed {
    left: u64,
    errno: Errno,
    /// Whether everything after it fails too.
    for_good: bool,
}

impl Failing {
    fn arm(&self, armed: Option<Armed>) {
        *self.0.lock().unwrap() = armed;
    }
}

impl FaultHook for Failing {
    fn before(&self, _: Op) -> io::Result<()> {
        let mut armed = self.0.lock().unwrap();
        match &mut *armed {
            Some(Armed { left: 0, errno, for_good }) => {
                let errno = *errno;
                if !*for_good {
                    *armed = None;
                }
                Err(errno.into())
            }
            Some(Armed { left, .. }) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Whichever operation of `work` fails: it says so, what was there is there, and afterwards it works.
fn fail_everywhere(errno: Errno, for_good: bool, work: impl Fn(&Store, &Place) -> Result<(), Error>) {
    let place = Place::with_files();
    let hook = Arc::new(Failing::default());
    let store = Store::open(place.options(Disk::with_faults(hook.clone()))).unwrap().0;
    let ws = init(&store, place.ws()).unwrap();
    checkpoint(&store, &ws, "first");
    for left in 0.. {
        place.write(&[("a", &noise(left, 2000))]);
        let before = shown(&store);
        hook.arm(Some(Armed { left, errno, for_good }));
        let result = work(&store, &place);
        let struck = hook.0.lock().unwrap().is_none_or(|armed| armed.left == 0);
        hook.arm(None);
        match result {
            Err(error) => {
                let is_full = matches!(error, Error::NoSpace { .. });
                assert_eq!(is_full, errno == Errno::NOSPC, "operation {left}: {error}");
                assert_eq!(shown(&store), before, "operation {left}");
            }
            // The stat cache may fail, and nothing is lost.
            Ok(()) if struck => {}
            Ok(()) => break,
        }
        let sound = store.check(true).unwrap();
        assert_eq!(sound.damage, Vec::<String>::new(), "operation {left}");
        assert!(left < 1000, "it never ends");
    }
    work(&store, &place).unwrap();
    let count = shown(&store).len() as u64;
    drop(store);
    let store = place.open();
    collect_all(&store);
    assert_sound(&store, count);
    assert_eq!(place.packs() as u64, store.size().unwrap().packs);
}

fn take(store: &Store, place: &Place) -> Result<(), Error> {
    let ws = init(store, place.ws())?;
    // A name that is free.
    let name = format!("n{}", shown(store).len());
    store.checkpoint(&Peer::own(), &ws, &named(&name)).map(drop)
}

#[test]
fn a_checkpoint_survives_a_full_disk_at_every_operation() {
    fail_everywhere(Errno::NOSPC, true, take);
}

#[test]
fn a_checkpoint_survives_one_error_at_every_operation() {
    fail_everywhere(Errno::IO, false, take);
}

#[test]
fn removal_and_collection_survive_one_error_at_every_operation() {
    fail_everywhere(Errno::IO, false, |store, place| {
        let ws = init(store, place.ws())?;
        // Whatever of it fails, the list of snapshots is the same at the end, as `fail_everywhere` wants it.
        match store.collect(u64::MAX) {
            Ok(true) => while store.collect(u64::MAX)? {},
            Ok(false) => {}
            Err(error) => return Err(error),
        }
        store.prime(&Peer::own(), &ws)
    });
}

/// Copies the state directory before every operation: what a process killed there would leave behind.
#[derive(Debug)]
struct Copying {
    state: PathBuf,
    copies: PathBuf,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    copies: Vec<Moment>,
    /// What has been acknowledged: the names of the snapshots, sorted.
    listed: Vec<String>,
    /// What List may show instead, if the request under way is carried out.
    next: Vec<String>,
}

/// A copy, and what may be in it.
#[derive(Debug)]
struct Moment {
    dir: PathBuf,
    allowed: [Vec<String>; 2],
}

impl FaultHook for Copying {
    fn before(&self, _: Op) -> io::Result<()> {
        self.step("")
    }

    fn step(&self, _: &str) -> io::Result<()> {
        let mut progress = self.progress.lock().unwrap();
        if !self.state.exists() {
            return Ok(());
        }
        let dir = self.copies.join(progress.copies.len().to_string());
        copy_dir(&self.state, &dir);
        let allowed = [progress.listed.clone(), progress.next.clone()];
        progress.copies.push(Moment { dir, allowed });
        Ok(())
    }
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[test]
fn death_at_any_moment_loses_nothing_that_was_acknowledged_and_leaves_nothing_behind() {
    let place = Place::with_files();
    let copies = tempfile::tempdir().unwrap();
    let progress = Mutex::default();
    let hook = Arc::new(Copying { state: place.path("state"), copies: copies.path().to_owned(), progress });
    let store = Store::open(place.options(Disk::with_faults(hook.clone()))).unwrap().0;
    let ws = init(&store, place.ws()).unwrap();
    let expect = |next: &[&str]| {
        let mut progress = hook.progress.lock().unwrap();
        progress.listed = std::mem::take(&mut progress.next);
        progress.next = next.iter().map(|name| name.to_string()).collect();
    };
    expect(&["one"]);
    checkpoint(&store, &ws, "one");
    place.write(&[("a", &noise(1, 3000))]);
    expect(&["one", "two"]);
    checkpoint(&store, &ws, "two");
    place.write(&[("a", &noise(2, 3000))]);
    expect(&["one", "three", "two"]);
    checkpoint(&store, &ws, "three");
    expect(&["three"]);
    store.delete(&Peer::own(), &ws, &[id("one"), id("two")], Removal::Unlink).unwrap();
    expect(&["three"]);
    collect_all(&store);
    drop(store);

    let moments = std::mem::take(&mut hook.progress.lock().unwrap().copies);
    assert!(moments.len() > 40, "{}", moments.len());
    for (n, Moment { dir, allowed }) in moments.into_iter().enumerate() {
        let options = StoreOptions { state_dir: dir.clone(), ..place.options(Disk::default()) };
        let (store, report) = Store::open(options).unwrap();
        assert!(report.lines.iter().all(|line| line.contains("cut short")), "moment {n}: {report:?}");
        let mut names: Vec<String> = shown(&store).into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert!(allowed.contains(&names), "moment {n}: {names:?} is none of {allowed:?}");
        assert_sound(&store, names.len() as u64);
        collect_all(&store);
        assert_sound(&store, names.len() as u64);
        let packs = std::fs::read_dir(dir.join("ckpt/packs")).unwrap().count() as u64;
        assert_eq!(packs, store.size().unwrap().packs, "moment {n}");
    }
}
