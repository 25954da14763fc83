//! Directories that are made, replaced, removed, moved and linked.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cofferdam_tests::files::{chmod, mkdir, remove, rename, symlink, write};
use rustix::fs::CWD;

use super::site::{ARRAY, Site, envelope, id, page, planned, put};
use crate::disk::{Disk, FaultHook, Op};
use crate::session::{Config, Error, SessionStore};

fn is_io<T: std::fmt::Debug>(outcome: Result<T, Error>) -> bool {
    let is_io = matches!(outcome, Err(Error::Io { .. }));
    if !is_io {
        eprintln!("{outcome:?}");
    }
    is_io
}

#[test]
fn a_workspace_is_its_canonical_path_however_it_is_written() {
    let site = Site::new();
    site.put_ready(&id(1), 1);
    symlink("ws", site.path("link"));
    for written in ["link", "ws/../ws/.", "link/"] {
        let store = site.open(&site.path(written), Config::DEFAULT_DIR).unwrap();
        assert_eq!(store.workspace(), site.workspace().to_str().unwrap());
        assert_eq!(store.list(20, None, false).unwrap().sessions.len(), 1, "{written}");
    }
}

#[test]
fn a_workspace_that_is_not_there_or_has_no_text_for_a_path_has_no_store() {
    let site = Site::new();
    assert!(is_io(site.open(&site.path("none"), Config::DEFAULT_DIR).map(|_| ())));
    assert!(is_io(site.open(Path::new(""), Config::DEFAULT_DIR).map(|_| ())));
    let odd = site.path(std::ffi::OsStr::from_bytes(b"\xfe"));
    mkdir(&odd);
    symlink(&odd, site.path("link"));
    let refused = site.open(&site.path("link"), Config::DEFAULT_DIR).map(|_| ());
    assert!(matches!(refused, Err(Error::InvalidRequest(_))), "{refused:?}");
    assert!(!site.root().exists());
}

#[test]
fn a_link_in_the_place_of_a_workspaces_directory_is_refused() {
    let site = Site::new();
    let other = site.path("other");
    put(&site.scope_of(&other), &id(1), envelope(&id(1), &other), 1);
    symlink(site.scope_of(&other), site.scope());
    assert!(is_io(site.open(&site.workspace(), Config::DEFAULT_DIR).map(|_| ())));
}

/// Every way of reading, all of which must fail.
#[track_caller]
fn every_reading_is_refused(store: &SessionStore) {
    assert!(is_io(store.list(20, None, false)));
    assert!(is_io(store.plan(&[], None, None)));
    assert!(is_io(store.inspect(&id(1))));
    assert!(is_io(store.validate(&id(1))));
    assert!(is_io(store.load(&id(1))));
}

#[test]
fn a_link_anywhere_below_the_root_is_refused_whenever_it_comes() {
    let site = Site::new();
    let other = site.path("other");
    put(&site.scope_of(&other), &id(1), envelope(&id(1), &other), 1);
    // The directory was not there when the store was opened.
    let store = site.store();
    symlink(site.scope_of(&other), site.scope());
    every_reading_is_refused(&store);
    assert!(is_io(store.scope.for_writing(&Disk::default())));
    // One above it was replaced.
    remove(site.scope());
    let store = site.store();
    rename(site.root(), site.path("moved"));
    symlink(site.path("moved"), site.root());
    every_reading_is_refused(&store);
    assert!(is_io(store.scope.for_writing(&Disk::default())));
    assert!(is_io(store.list(20, None, true)));
}

#[test]
fn a_directory_that_becomes_a_link_at_any_moment_leads_nowhere_else() {
    let site = Site::new();
    site.put_ready(&id(1), 1);
    // Whoever followed the link would find a session that looks healthy.
    let elsewhere = site.path("elsewhere");
    put(&elsewhere, &id(2), envelope(&id(2), &site.workspace()), 1);
    let link = site.path("link");
    symlink(&elsewhere, &link);
    let (scope, stop) = (site.scope(), AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                Disk::default().exchange((CWD, &scope), (CWD, &link)).unwrap();
            }
        });
        let (mut found, mut refused, mut wrong) = (0, 0, None);
        for _ in 0..1_000_000 {
            let store = site.open(&site.workspace(), Config::DEFAULT_DIR);
            match store.and_then(|store| store.plan(&[], None, None)) {
                Ok(plan) if plan.clearable == [id(1)] => found += 1,
                Err(Error::Io { .. }) => refused += 1,
                other => wrong = Some(other),
            }
            if wrong.is_some() || found.min(refused) == 200 {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(wrong.is_none(), "{wrong:?}");
        assert!(found.min(refused) == 200, "{found} found, {refused} refused");
    });
}

#[test]
fn links_on_the_way_to_the_root_are_resolved_when_the_store_is_opened() {
    let site = Site::new();
    mkdir(site.path("real"));
    symlink("../real", site.path("home/.copilot-shell"));
    site.store().scope.for_writing(&Disk::default()).unwrap();
    site.put_ready(&id(1), 1);
    assert_eq!(page(&site.store(), 20, None, false).0.len(), 1);
    assert!(site.path("real/cosh-core/sessions").is_dir());
}

#[test]
fn a_directory_that_is_held_stays_the_one_that_is_meant() {
    let site = Site::new();
    let other = site.path("other");
    site.put_ready(&id(1), 1);
    put(&site.scope_of(&other), &id(2), envelope(&id(2), &other), 1);
    put(&site.legacy(), &id(3), ARRAY, 1);
    let store = site.store();
    rename(site.scope(), site.path("moved"));
    symlink(site.scope_of(&other), site.scope());
    rename(site.legacy(), site.path("flat"));
    symlink(site.scope_of(&other), site.legacy());
    assert_eq!(planned(&store), [id(1), id(3)]);
    assert!(store.load(&id(1)).is_ok());
    assert!(matches!(store.load(&id(2)), Err(Error::NotFound(_))));
}

#[test]
fn a_directory_that_was_removed_is_looked_for_again() {
    let site = Site::new();
    site.put_ready(&id(1), 1);
    put(&site.legacy(), &id(2), ARRAY, 1);
    let store = site.store();
    assert_eq!(planned(&store).len(), 2);
    remove(site.scope());
    remove(site.legacy());
    assert_eq!(planned(&store), []);
    site.put_ready(&id(3), 1);
    put(&site.legacy(), &id(4), ARRAY, 1);
    assert_eq!(planned(&store), [id(3), id(4)]);
    remove(site.scope());
    let (dir, made) = store.scope.for_writing(&Disk::default()).unwrap();
    assert!(made);
    assert_eq!((dir.path(), site.scope().is_dir()), (site.scope().as_path(), true));
}

#[test]
fn a_flat_directory_outside_of_the_workspace_is_nobodys() {
    let site = Site::new();
    put(&site.path("shared"), &id(1), ARRAY, 1);
    symlink("../shared", site.workspace().join("out"));
    symlink("../shared", site.legacy());
    let absolute = site.path("shared");
    for persist_dir in [Config::DEFAULT_DIR, "out", "../shared", absolute.to_str().unwrap()] {
        let store = site.open(&site.workspace(), persist_dir).unwrap();
        assert!(matches!(store.load(&id(1)), Err(Error::NotFound(_))), "{persist_dir}");
        assert_eq!((planned(&store), page(&store, 20, None, true).0), (vec![], vec![]), "{persist_dir}");
    }
}

#[test]
fn a_workspace_that_is_a_file_has_a_store_only_where_nothing_is_looked_for_in_it() {
    let site = Site::new();
    write(site.path("file"), "");
    assert!(is_io(site.open(&site.path("file"), Config::DEFAULT_DIR).map(|_| ())));
    let absolute = site.path("store");
    let store = site.open(&site.path("file"), absolute.to_str().unwrap()).unwrap();
    assert_eq!(page(&store, 20, None, false).0, [""; 0]);
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn directories_are_made_for_their_user_alone_and_the_workspaces_own_stays_so() {
    let site = Site::new();
    let store = site.store();
    let disk = Disk::default();
    store.scope.for_writing(&disk).unwrap();
    let mut made: PathBuf = site.scope();
    while made != site.path("home") {
        assert_eq!(mode(&made), 0o700, "{}", made.display());
        made.pop();
    }
    chmod(site.scope(), 0o755);
    store.scope.for_reading().unwrap();
    assert_eq!(mode(&site.scope()), 0o755);
    store.scope.for_writing(&disk).unwrap();
    assert_eq!(mode(&site.scope()), 0o700);
}

/// Counts directories made and synced; can let the process of making them die at any of these.
#[derive(Debug, Default)]
struct Counting {
    ops: Mutex<Vec<Op>>,
    fatal: Option<usize>,
}

impl FaultHook for Counting {
    fn before(&self, op: Op) -> std::io::Result<()> {
        let mut ops = self.ops.lock().unwrap();
        ops.push(op);
        if self.fatal == Some(ops.len()) { Err(std::io::Error::other("dead")) } else { Ok(()) }
    }
    fn step(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
}

fn make(site: &Site, fatal: Option<usize>) -> (bool, Vec<Op>) {
    let hook = Arc::new(Counting { fatal, ..Counting::default() });
    let made = site.store().scope.for_writing(&Disk::with_faults(hook.clone()));
    let ops = hook.ops.lock().unwrap().clone();
    (made.is_ok(), ops)
}

#[test]
fn each_directory_is_durable_before_anything_is_made_in_it() {
    let site = Site::new();
    let (_, ops) = make(&site, None);
    // What is there already first, then four directories.
    assert_eq!(ops, [&[Op::Fsync][..], &[Op::Mkdir, Op::Fsync].repeat(4)].concat());
    // The next process does not know whether the last one got that far.
    assert_eq!(make(&site, None).1, [Op::Fsync]);
    // It does know what it did itself.
    let store = site.store();
    let disk = Disk::with_faults(Arc::new(Counting { fatal: Some(2), ..Counting::default() }));
    assert!(store.scope.for_writing(&disk).is_ok() && store.scope.for_writing(&disk).is_ok());
}

#[test]
fn directories_are_finished_by_the_next_process_wherever_one_died() {
    for fatal in 1..=9 {
        let site = Site::new();
        assert!(!make(&site, Some(fatal)).0, "{fatal}");
        let (made, ops) = make(&site, None);
        assert!(made, "{fatal}");
        // The entry that may not be durable, if there is one, is made so before anything else is made.
        assert_eq!(ops.first(), Some(&Op::Fsync), "{fatal}");
        assert!(site.scope().is_dir());
    }
}
