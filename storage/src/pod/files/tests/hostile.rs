//! Names change under our hands.

use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_tests::files::{mkdir, symlink, write};

use super::*;
use crate::disk::Disk;
use crate::fs::Root;

/// Exchanges pairs of names in a directory again and again while `work` runs.
fn while_swapping(dir: &Path, pairs: &[(&str, &str)], work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let root = Root::open(dir).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let disk = Disk::default();
            while !done.load(Ordering::Relaxed) {
                for (one, other) in pairs {
                    disk.exchange((&root, *one), (&root, *other)).unwrap();
                }
            }
        });
        // Lets the other thread end if the work fails.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _done = Done(&done);
        work();
    });
}

const ROUNDS: usize = 500;

#[test]
fn nothing_outside_is_read_while_directories_and_files_are_exchanged_with_links() {
    let site = Site::new();
    for name in ["file", "dir"] {
        write(site.outside(name).join("secret"), "secret");
    }
    write(site.outside("leaf"), "secret");
    write(site.at("dir/file/secret"), "ours");
    symlink(site.outside(""), site.at("dir-link"));
    write(site.at("leaf"), "ours");
    symlink(site.outside("leaf"), site.at("leaf-link"));
    while_swapping(&site.place.dir, &[("dir", "dir-link"), ("leaf", "leaf-link")], || {
        for _ in 0..ROUNDS {
            for path in ["dir/file/secret", "leaf", "leaf-link", "dir-link/file/secret"] {
                match site.read(path) {
                    Ok(read) => assert_eq!(read.text, "ours"),
                    Err(Error::PathOutside(_)) => {}
                    Err(error) => panic!("{path}: {error}"),
                }
                match site.stat(path) {
                    Ok(stat) => assert!(matches!(stat.row.size, 0 | 4), "the size of the secret"),
                    Err(Error::PathOutside(_)) => {}
                    Err(error) => panic!("{path}: {error}"),
                }
            }
        }
    });
}

#[test]
fn nothing_outside_is_listed_while_directories_are_exchanged_with_links() {
    let site = Site::new();
    write(site.outside("secret"), "");
    write(site.at("dir/ours"), "");
    symlink(site.outside(""), site.at("link"));
    while_swapping(&site.place.dir, &[("dir", "link")], || {
        for _ in 0..ROUNDS {
            for row in site.list().entries {
                assert!(!row.rel_path.contains("secret"), "{row:?}");
            }
        }
    });
}

#[test]
fn nothing_outside_is_seen_while_the_task_itself_and_what_holds_it_are_exchanged_with_links() {
    let site = Site::new();
    write(site.outside("a/file"), "secret");
    write(site.at("file"), "ours");
    symlink(site.outside(""), site.root().join("sub-link"));
    while_swapping(site.root(), &[("sub", "sub-link")], || {
        for _ in 0..ROUNDS {
            match site.read("file") {
                Ok(read) => assert_eq!(read.text, "ours"),
                Err(Error::PathOutside(_)) => {}
                Err(error) => panic!("{error}"),
            }
            match list(Some(&site.place)) {
                Ok(rows) => assert_eq!(rows.entries.iter().map(|row| row.size).sum::<u64>(), 4),
                Err(Error::PathOutside(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
}

#[test]
fn files_that_come_and_go_are_in_the_list_or_not() {
    let site = Site::new();
    write(site.at("stays"), "");
    mkdir(site.at("dir"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                write(site.at("dir/file"), "");
                cofferdam_tests::files::remove(site.at("dir"));
                write(site.at("dir"), "");
                cofferdam_tests::files::remove(site.at("dir"));
            }
        });
        for _ in 0..ROUNDS {
            let rows = site.list();
            assert!(paths(&rows).contains(&"stays") && !rows.truncated && !rows.missing);
        }
        done.store(true, Ordering::Relaxed);
    });
}
