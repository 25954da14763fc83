//! Directories of tasks: made beneath the root, removed again, never outside.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_protocol::pod::{Subdir, TaskId};
use cofferdam_tests::files::{chmod, mkdir, remove, rename, symlink, write};
use cofferdam_tests::mount::Mount;
use cofferdam_tests::user::{NOBODY, as_user, is_root};
use rustix::io::Errno;

use super::{MadeDir, make_task_dir};
use crate::disk::{Disk, FaultHook, Op};
use crate::pod::Error;

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    (dir, root)
}

fn make_with(disk: &Disk, root: &Path, subdir: &str, task: &str) -> Result<MadeDir, Error> {
    make_task_dir(disk, root, &Subdir::new(subdir).unwrap(), &TaskId::new(task).unwrap())
}

fn make(root: &Path, subdir: &str, task: &str) -> Result<MadeDir, Error> {
    make_with(&Disk::default(), root, subdir, task)
}

fn is_outside(made: &Result<MadeDir, Error>) -> bool {
    matches!(made, Err(Error::PathOutside(_)))
}

/// The system's answer in a refusal of the root.
fn bad_root(made: Result<MadeDir, Error>) -> io::ErrorKind {
    match made {
        Err(Error::BadRoot { source, .. }) => source.kind(),
        other => panic!("{other:?}"),
    }
}

fn is_empty(dir: &Path) -> bool {
    dir.read_dir().unwrap().next().is_none()
}

#[test]
fn the_root_and_all_below_is_made_for_the_user_alone() {
    let (_dir, root) = place();
    let made = make(&root, "x/y", "a").unwrap();
    assert_eq!(made.path, root.join("x/y/a"));
    for dir in ["", "x", "x/y", "x/y/a"] {
        let mode = root.join(dir).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{dir}");
    }
    assert_eq!(make(&root, "", "b").unwrap().path, root.join("b"));
}

#[test]
fn what_was_made_is_removed_again_and_what_was_there_stays() {
    let (dir, root) = place();
    make(&root, "x/y", "a").unwrap().unmake(&Disk::default());
    assert!(is_empty(dir.path()), "the root was made too");
    mkdir(root.join("x"));
    make(&root, "x/y", "a").unwrap().unmake(&Disk::default());
    assert!(is_empty(&root.join("x")));
    mkdir(root.join("x/y/a"));
    make(&root, "x/y", "a").unwrap().unmake(&Disk::default());
    assert!(root.join("x/y/a").is_dir());
}

#[test]
fn a_directory_that_somebody_uses_meanwhile_stays() {
    let (_dir, root) = place();
    let first = make(&root, "x", "a").unwrap();
    let second = make(&root, "x", "b").unwrap();
    write(root.join("x/b/file"), "work");
    first.unmake(&Disk::default());
    second.unmake(&Disk::default());
    assert!(!root.join("x/a").exists());
    assert!(root.join("x/b/file").exists());
}

#[test]
fn what_stands_in_place_of_what_was_made_is_not_removed() {
    let (dir, root) = place();
    let made = make(&root, "x", "a").unwrap();
    rename(root.join("x/a"), dir.path().join("moved"));
    mkdir(root.join("x/a"));
    made.unmake(&Disk::default());
    assert!(root.join("x/a").is_dir() && dir.path().join("moved").is_dir());

    let made = make(&root, "y", "a").unwrap();
    rename(root.join("y"), dir.path().join("y"));
    symlink(dir.path().join("y"), root.join("y"));
    made.unmake(&Disk::default());
    assert!(dir.path().join("y/a").is_dir(), "no link is followed");
}

#[test]
fn no_link_below_the_root_is_followed() {
    let (dir, root) = place();
    let outside = dir.path().join("outside");
    mkdir(&outside);
    mkdir(&root);
    symlink(&outside, root.join("link"));
    symlink(".", root.join("here"));
    symlink("nowhere", root.join("dangling"));
    mkdir(root.join("in"));
    symlink(&outside, root.join("in/a"));
    for (subdir, task) in
        [("link", "a"), ("link/x", "a"), ("here", "a"), ("dangling", "a"), ("in", "a"), ("", "link")]
    {
        let made = make(&root, subdir, task);
        assert!(is_outside(&made), "{subdir}: {made:?}");
    }
    assert!(is_empty(&outside));
    assert!(!root.join("nowhere").exists());
}

/// Puts a link in the place of a directory just before the Nth operation.
#[derive(Debug)]
struct Swap {
    nth: usize,
    seen: AtomicUsize,
    victim: PathBuf,
    target: PathBuf,
}

impl FaultHook for Swap {
    fn before(&self, op: Op) -> io::Result<()> {
        if op == Op::Mkdir && self.seen.fetch_add(1, Ordering::Relaxed) == self.nth {
            rename(&self.victim, self.victim.with_extension("away"));
            symlink(&self.target, &self.victim);
        }
        Ok(())
    }
    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_directory_that_becomes_a_link_on_the_way_leads_nowhere() {
    for nth in 1..3 {
        let (dir, root) = place();
        let outside = dir.path().join("outside");
        mkdir(&outside);
        mkdir(root.join("x/y"));
        let hook = Swap { nth, seen: AtomicUsize::new(0), victim: root.join("x"), target: outside.clone() };
        // Whether it is noticed or goes on in the directory that was held: nothing is made outside.
        let _ = make_with(&Disk::with_faults(Arc::new(hook)), &root, "x/y/z", "a");
        assert!(root.join("x").is_symlink());
        assert!(is_empty(&outside), "{nth}");
    }
}

#[test]
fn a_root_below_links_is_made_where_they_lead() {
    let (dir, root) = place();
    mkdir(dir.path().join("real"));
    symlink("real", &root);
    assert_eq!(make(&root, "", "a").unwrap().path, root.join("a"), "by the name it was given");
    make(&root.join("new"), "x", "a").unwrap();
    assert!(dir.path().join("real/a").is_dir() && dir.path().join("real/new/x/a").is_dir());
}

#[test]
fn a_file_in_the_way_is_said_to_be_one() {
    let (dir, root) = place();
    write(root.join("file"), "");
    write(dir.path().join("rootfile"), "");
    for made in [
        make(&root, "file", "a"),
        make(&root, "file/x", "a"),
        make(&root, "", "file"),
        make(&dir.path().join("rootfile"), "", "a"),
        make(&dir.path().join("rootfile/x"), "", "a"),
    ] {
        assert_eq!(bad_root(made), io::ErrorKind::NotADirectory);
    }
}

#[test]
fn a_directory_that_may_not_be_written_to_is_named_with_the_reason() {
    if !is_root() {
        return cofferdam_tests::skipped(format_args!("becoming another user needs root"));
    }
    let (dir, root) = place();
    chmod(dir.path(), 0o755);
    assert_eq!(bad_root(as_user(NOBODY, || make(&root, "", "a"))), io::ErrorKind::PermissionDenied);
    mkdir(&root);
    chmod(&root, 0o755);
    assert_eq!(bad_root(as_user(NOBODY, || make(&root, "x", "a"))), io::ErrorKind::PermissionDenied);
    assert!(is_empty(&root));
    // It need not be readable.
    chmod(&root, 0o733);
    as_user(NOBODY, || make(&root, "x", "a")).unwrap();
}

#[test]
fn a_disk_on_which_any_operation_fails_is_left_as_it_was() {
    #[derive(Debug)]
    struct Full {
        nth: usize,
        seen: AtomicUsize,
    }
    impl FaultHook for Full {
        fn before(&self, _: Op) -> io::Result<()> {
            match self.seen.fetch_add(1, Ordering::Relaxed) == self.nth {
                true => Err(Errno::NOSPC.into()),
                false => Ok(()),
            }
        }
        fn step(&self, _: &str) -> io::Result<()> {
            Ok(())
        }
    }
    // The root and the directory above it, two segments, the task.
    for nth in 0..6 {
        let (dir, root) = place();
        let disk = Disk::with_faults(Arc::new(Full { nth, seen: AtomicUsize::new(0) }));
        match make_with(&disk, &root.join("pods"), "x/y", "a") {
            Ok(made) => assert_eq!((nth, made.path.is_dir()), (5, true)),
            refused => {
                assert_eq!(bad_root(refused), io::ErrorKind::StorageFull, "{nth}");
                assert!(is_empty(dir.path()), "{nth}");
            }
        }
    }
}

#[test]
fn nothing_is_made_on_what_is_mounted_below_the_root() {
    if !is_root() {
        return cofferdam_tests::skipped(format_args!("mounting needs root"));
    }
    let (dir, root) = place();
    mkdir(dir.path().join("other"));
    mkdir(root.join("mnt"));
    let mount = Mount::bind(&dir.path().join("other"), &root.join("mnt"));
    assert!(is_outside(&make(&root, "mnt", "a")));
    assert!(is_empty(&dir.path().join("other")));
    // A root may be a mount itself.
    make(mount.path(), "x", "a").unwrap();
}

#[test]
fn names_as_long_as_a_file_system_takes_are_made() {
    let (_dir, root) = place();
    let (segment, task) = ("段".repeat(64), "任".repeat(85));
    let subdir = [segment.as_str(); 8].join("/");
    let made = make(&root, &subdir, &task).unwrap();
    assert!(made.path.is_dir());
    made.unmake(&Disk::default());
    assert!(!root.exists());
}

#[test]
fn a_root_that_was_removed_meanwhile_is_made_again() {
    let (_dir, root) = place();
    make(&root, "", "a").unwrap();
    remove(&root);
    assert!(make(&root, "", "b").unwrap().path.is_dir());
}
