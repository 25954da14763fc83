//! A process that dies at every single operation, as seen from a copy of what it would leave behind.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::fixture::*;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store, StoreOptions};
use crate::disk::{Disk, FaultHook, Op};
use crate::peer::Peer;

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
