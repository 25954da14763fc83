//! Removing tasks' directories: whole, alone, in spite of faults.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cofferdam_tests::files::{chmod, mkdir, names, read, remove as remove_all, rename, symlink, write};
use cofferdam_tests::mount::Mount;
use cofferdam_tests::user::{NOBODY, as_user, give_all, is_root};
use rustix::io::Errno;

use super::*;
use crate::disk::{FaultHook, Op};
use crate::pod::Surroundings;

/// A sandbox root with two tasks, and something beside the root.
struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { dir: tempfile::tempdir().unwrap() };
        write(site.at("outside/kept"), "kept");
        site.fill();
        site
    }

    /// Makes the task `x/y/a` with files, and `x/b`.
    fn fill(&self) {
        for file in ["root/x/y/a/dir/deep/file", "root/x/y/a/file", "root/x/y/a/dir/file", "root/x/b/file"] {
            write(self.at(file), "work");
        }
        if self.at("root/x/y/a/dir/link").symlink_metadata().is_err() {
            symlink(self.at("outside"), self.at("root/x/y/a/dir/link"));
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn place(&self, dir: &str) -> TaskPlace {
        TaskPlace { root: Some(self.at("root")), dir: self.at(dir) }
    }

    fn remove(&self, dir: &str) -> Result<bool> {
        remove_task_dir(&Disk::default(), &self.place(dir), &[], &Protected::default())
    }

    /// What is no part of the task is as it was.
    #[track_caller]
    fn check_rest(&self) {
        assert_eq!(names(self.at("outside")), ["kept"]);
        assert_eq!(read(self.at("outside/kept")), b"kept");
        assert_eq!(read(self.at("root/x/b/file")), b"work");
    }
}

#[test]
fn a_task_goes_with_everything_in_it_and_nothing_else() {
    let site = Site::new();
    assert!(site.remove("root/x/y/a").unwrap());
    assert_eq!(names(site.at("root/x")), ["b"], "the emptied subdirectory goes, too");
    site.check_rest();
    assert!(!site.remove("root/x/y/a").unwrap(), "once more");
    assert!(site.remove("root/x/b").unwrap());
    assert!(names(site.at("root")).is_empty(), "the root stays");
    assert!(!site.remove("root/x/b").unwrap());
    std::fs::remove_dir(site.at("root")).unwrap();
    assert!(!site.remove("root/x/b").unwrap());
}

#[test]
fn only_a_directory_below_a_root_that_is_known_is_removed() {
    let site = Site::new();
    let protects = |removed| matches!(removed, Err(Error::RootProtected(_)));
    assert!(protects(site.remove("root")));
    assert!(protects(site.remove("root/.")));
    for outside in ["outside", "root/../outside", "root/x/../../outside", "root2", "", "root/x/y/.."] {
        assert!(matches!(site.remove(outside), Err(Error::PathOutside(_))), "{outside}");
    }
    let remove = |root: Option<&str>, dir: &str| {
        let place = TaskPlace { root: root.map(PathBuf::from), dir: site.at(dir) };
        remove_task_dir(&Disk::default(), &place, &[], &Protected::default())
    };
    assert!(protects(remove(None, "root/x/b")));
    assert!(protects(remove(Some("/"), "root/x/b")));
    site.check_rest();
    assert_eq!(names(site.at("root/x/y/a")), ["dir", "file"]);
}

#[test]
fn what_is_or_contains_something_protected_stays() {
    let site = Site::new();
    mkdir(site.at("root/x/y/a/home"));
    let surroundings = Surroundings { home: Some(site.at("root/x/y/a/home")), ..Surroundings::default() };
    let protected = Protected::new(&surroundings, &site.at("root/x/b/pod.db"));
    let remove = |dir| remove_task_dir(&Disk::default(), &site.place(dir), &[], &protected);
    for dir in ["root/x/y/a", "root/x/y/a/home", "root/x", "root/x/b"] {
        match remove(dir) {
            Err(Error::RootProtected(text)) => assert!(text.contains(dir), "{text}"),
            other => panic!("{dir}: {other:?}"),
        }
    }
    site.check_rest();
    assert!(remove("root/x/y/a/dir").unwrap(), "what is beside it may go");
    // A link to it goes alone.
    symlink(site.at("root/x/y/a/home"), site.at("root/x/link"));
    assert!(remove("root/x/link").unwrap());
    assert!(site.at("root/x/y/a/home").is_dir());
}

#[test]
fn a_link_in_the_place_of_a_task_goes_alone_and_one_on_the_way_is_not_followed() {
    let site = Site::new();
    for (link, target) in [("root/x/c", "outside"), ("root/x/d", "nowhere")] {
        symlink(site.at(target), site.at(link));
        assert!(site.remove(link).unwrap());
        assert!(site.at(link).symlink_metadata().is_err());
    }
    symlink(site.at("outside"), site.at("root/out"));
    mkdir(site.at("outside/a"));
    for dir in ["root/out/a", "root/out/a/b"] {
        assert!(matches!(site.remove(dir), Err(Error::PathOutside(_))), "{dir}");
    }
    std::fs::remove_dir(site.at("outside/a")).unwrap();
    // The way to the root is the user's own.
    symlink(site.at("root"), site.at("to-root"));
    let place = TaskPlace { root: Some(site.at("to-root")), dir: site.at("to-root/x/y/a") };
    assert!(remove_task_dir(&Disk::default(), &place, &[], &Protected::default()).unwrap());
    assert_eq!(names(site.at("root")), ["out", "x"]);
    site.check_rest();
}

#[test]
fn a_file_in_the_place_of_a_task_goes_and_one_on_the_way_means_it_is_gone() {
    let site = Site::new();
    write(site.at("root/x/c"), "");
    assert!(!site.remove("root/x/c/d").unwrap());
    assert!(site.remove("root/x/c").unwrap());
    site.check_rest();
}

#[test]
fn nothing_behind_a_mount_is_removed_and_a_retry_without_it_finishes() {
    if !is_root() {
        return cofferdam_tests::skipped(format_args!("mounting needs root"));
    }
    let site = Site::new();
    for at in ["root/x/y/a/dir/deep/mnt", "root/x/y/a", "root/x/y"] {
        let mount = Mount::bind(&site.at("outside"), &site.at(at));
        match site.remove("root/x/y/a") {
            Err(Error::PathOutside(_)) => {}
            other => panic!("{at}: {other:?}"),
        }
        site.check_rest();
        drop(mount);
        site.fill();
    }
    assert!(site.remove("root/x/y/a").unwrap());
    assert_eq!(names(site.at("root/x")), ["b"]);
    site.check_rest();
}

#[test]
fn an_ordinary_user_removes_what_is_theirs_though_it_forbids_it_and_is_told_what_is_not() {
    if !is_root() {
        return cofferdam_tests::skipped(format_args!("being somebody else needs root"));
    }
    let site = Site::new();
    chmod(site.dir.path(), 0o755);
    give_all(site.at("root"), NOBODY);
    chmod(site.at("root/x/y/a/dir/deep"), 0);
    chmod(site.at("root/x/y/a/dir"), 0o555);
    // Nobody need be able to list what holds the task.
    chmod(site.at("root/x/y"), 0o300);
    assert!(as_user(NOBODY, || site.remove("root/x/y/a")).unwrap());
    assert_eq!(names(site.at("root/x")), ["b"]);
    site.fill();
    chmod(site.at("root/x/y/a/dir"), 0o755);
    match as_user(NOBODY, || site.remove("root/x/y/a")) {
        Err(Error::Files { what, source }) => {
            assert!(what.contains("root/x/y/a"), "{what}");
            assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
        }
        other => panic!("{other:?}"),
    }
    site.check_rest();
}

/// Fails one operation.
#[derive(Debug)]
struct FailNth {
    left: AtomicUsize,
}

impl FaultHook for FailNth {
    fn before(&self, _: Op) -> io::Result<()> {
        // At 0 it wraps around, and fails no more.
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(Errno::IO.into()),
            _ => Ok(()),
        }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn whichever_operation_fails_nothing_else_is_touched_and_a_retry_finishes() {
    let mut failed = 0;
    for nth in 0.. {
        let site = Site::new();
        let hook = Arc::new(FailNth { left: AtomicUsize::new(nth) });
        let disk = Disk::with_faults(Arc::clone(&hook) as Arc<dyn FaultHook>);
        let removed = remove_task_dir(&disk, &site.place("root/x/y/a"), &[], &Protected::default());
        site.check_rest();
        match removed {
            Ok(removed) => assert!(removed && !site.at("root/x/y/a").exists()),
            Err(Error::Files { .. }) => {
                failed += 1;
                assert!(site.remove("root/x/y/a").unwrap(), "some of it was left: operation {nth}");
            }
            Err(error) => panic!("{error}"),
        }
        assert!(!site.remove("root/x/y/a").unwrap());
        assert_eq!(names(site.at("root/x")), ["b"], "operation {nth}");
        site.check_rest();
        if hook.left.load(Ordering::Relaxed) < usize::MAX / 2 {
            break;
        }
    }
    assert!(failed > 6, "there are files and directories enough to fail on: {failed}");
}

#[test]
fn nothing_outside_is_removed_while_directories_are_exchanged_with_links() {
    let site = Site::new();
    // Whatever name becomes a link: behind it there is something of each name below.
    let kept =
        ["outside/kept", "outside/a/kept", "outside/dir/kept", "outside/a/dir/kept", "outside/deep/kept"];
    for file in kept {
        write(site.at(file), "kept");
    }
    for (parent, name) in [("root/x/y/a", "dir"), ("root/x/y", "a"), ("root/x", "y")] {
        for round in 0..40 {
            remove_all(site.at("root"));
            site.fill();
            symlink(site.at("outside"), site.at(parent).join("out"));
            let parent = Root::open(&site.at(parent)).unwrap();
            let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        // One of them may be gone.
                        let _ = Disk::default().exchange((&parent, name), (&parent, "out"));
                        begun.store(true, Ordering::Relaxed);
                    }
                });
                while !begun.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                // It may succeed, refuse or fail.
                let _ = site.remove("root/x/y/a");
                done.store(true, Ordering::Relaxed);
            });
            for file in kept {
                assert!(site.at(file).exists(), "{file} is gone, {name}, round {round}");
            }
        }
    }
}

#[test]
fn a_task_that_was_moved_out_of_its_place_is_gone_and_stays_where_it_is() {
    let site = Site::new();
    rename(site.at("root/x/y/a"), site.at("outside/moved"));
    assert!(!site.remove("root/x/y/a").unwrap());
    assert_eq!(names(site.at("outside/moved")), ["dir", "file"]);
}

#[test]
fn the_empty_directory_of_another_task_around_it_stays() {
    let site = Site::new();
    remove_all(site.at("root/x/b"));
    let others = [site.at("root/x/y")];
    let remove = |dir| remove_task_dir(&Disk::default(), &site.place(dir), &others, &Protected::default());
    assert!(remove("root/x/y/a").unwrap());
    assert_eq!(names(site.at("root/x/y")), [""; 0]);
    assert!(remove("root/x/y").unwrap(), "its own goes");
    assert_eq!(names(site.at("root")), [""; 0]);
}
