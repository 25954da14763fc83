//! Trees that change, forbid, or lead elsewhere while they are captured.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::mount::MsFlags;

use super::*;
use crate::ckpt::format::ObjectId;
use crate::sys::testing::{self, SharedMapping};

/// Does something whenever a file's content is stored.
struct OnData<'a, F: Fn(&[u8]) + Sync> {
    objects: &'a MemoryObjects,
    then: F,
}

impl<F: Fn(&[u8]) + Sync> ObjectSink for OnData<'_, F> {
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId> {
        if kind == ObjectKind::Data {
            (self.then)(bytes);
        }
        self.objects.put(kind, bytes)
    }
}

#[test]
fn a_file_that_keeps_changing_is_kept_as_it_was_read_and_named() {
    let mut fixture = Fixture::new();
    fixture.write("growing", "x");
    fixture.write("calm", "calm");
    let objects = MemoryObjects::new();
    let file = fs::File::options().append(true).open(fixture.at("growing")).unwrap();
    let seen = Mutex::new(Vec::new());
    let sink = OnData {
        objects: &objects,
        then: |bytes| {
            if bytes != b"calm" {
                seen.lock().unwrap().push(bytes.to_vec());
                file.write_all_at(b"x", 0).unwrap();
            }
        },
    };
    let captured = fixture.try_capture_into(&sink).unwrap();
    fixture.objects = objects;
    assert_eq!(Fixture::warnings(&captured), [("growing".to_owned(), WarningKind::ChangedWhileRead)]);
    let readings = seen.into_inner().unwrap();
    assert_eq!(readings.len(), 4);
    assert_eq!(fixture.bytes(&captured, "growing"), *readings.last().unwrap());
}

#[test]
fn a_file_that_changed_once_while_it_was_read_is_captured_as_it_is_now() {
    let mut fixture = Fixture::new();
    fixture.write("file", "old");
    let objects = MemoryObjects::new();
    let path = fixture.at("file");
    let sink = OnData {
        objects: &objects,
        then: |bytes| {
            if bytes == b"old" {
                fs::write(&path, "newer").unwrap();
            }
        },
    };
    let captured = fixture.try_capture_into(&sink).unwrap();
    fixture.objects = objects;
    assert!(captured.manifest.warnings.is_empty());
    assert_eq!(fixture.bytes(&captured, "file"), b"newer");
}

#[test]
fn a_name_that_moves_while_its_directory_is_read_is_not_lost() {
    let mut fixture = Fixture::new();
    fixture.write("a", "first");
    fixture.write("z", "wanders");
    let objects = MemoryObjects::new();
    let (from, to) = (fixture.at("z"), fixture.at("0"));
    let sink = OnData {
        objects: &objects,
        then: |bytes| {
            if bytes == b"first" && from.exists() {
                fs::rename(&from, &to).unwrap();
            }
        },
    };
    let captured = fixture.try_capture_into(&sink).unwrap();
    fixture.objects = objects;
    assert_eq!(fixture.bytes(&captured, "0"), b"wanders");
    assert_eq!(captured.manifest.entries, 2);
}

#[test]
fn a_directory_whose_names_never_rest_is_named() {
    let mut fixture = Fixture::new();
    fixture.write("calm/file", "calm");
    fixture.write("restless/sub/file", "calm");
    fixture.write("restless/a", "again");
    fixture.write("restless/z0", "");
    let objects = MemoryObjects::new();
    let (dir, renames) = (fixture.at("restless"), Mutex::new(0));
    let sink = OnData {
        objects: &objects,
        then: |bytes| {
            if bytes == b"again" {
                let mut count = renames.lock().unwrap();
                let at = |n: u32| dir.join(format!("z{n}"));
                fs::rename(at(*count), at(*count + 1)).unwrap();
                *count += 1;
            }
        },
    };
    let captured = fixture.try_capture_into(&sink).unwrap();
    assert_eq!(Fixture::warnings(&captured), [("restless".to_owned(), WarningKind::ChangedWhileRead)]);
    assert!(fixture.publish().0.manifest.warnings.is_empty());
}

#[test]
fn what_stands_where_a_directory_was_while_it_was_listed_is_captured_as_what_it_is() {
    let with_file: fn(&Path) = |at| fs::write(at, "a file").unwrap();
    let with_directory: fn(&Path) = |at| {
        fs::create_dir(at).unwrap();
        fs::write(at.join("new"), "a file").unwrap();
    };
    for replace in [with_file, with_directory] {
        let mut fixture = Fixture::new();
        fixture.write("dir/a", "first");
        fixture.write("dir/z", "goes");
        let objects = MemoryObjects::new();
        let (dir, replaced) = (fixture.at("dir"), AtomicBool::new(false));
        let sink = OnData {
            objects: &objects,
            then: |bytes| {
                if bytes == b"first" && !replaced.swap(true, Ordering::Relaxed) {
                    fs::remove_dir_all(&dir).unwrap();
                    replace(&dir);
                }
            },
        };
        let captured = fixture.try_capture_into(&sink).unwrap();
        assert_eq!(Fixture::warnings(&captured), []);
        assert_eq!(captured.manifest.root, fixture.capture_afresh().manifest.root);
    }
}

#[test]
fn a_file_whose_lease_somebody_has_to_give_back_first_is_waited_for() {
    let mut fixture = Fixture::new();
    fixture.write("leased", "content");
    let holder = fs::File::options().read(true).write(true).open(fixture.at("leased")).unwrap();
    if !testing::take_write_lease(&holder) {
        cofferdam_tests::skipped(format_args!("the filesystem gives no leases"));
        return;
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !testing::is_asked_back(&holder) && !done.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            testing::give_lease_back(&holder);
        });
        let captured = fixture.capture();
        done.store(true, Ordering::Relaxed);
        assert_eq!(fixture.bytes(&captured, "leased"), b"content");
    });
}

#[test]
fn a_directory_swapped_for_a_link_never_leads_outside() {
    let mut fixture = Fixture::new();
    let outside = fixture.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    fixture.write("dir/inside", "inside");
    symlink(&outside, fixture.at("link")).unwrap();
    let stop = AtomicBool::new(false);
    let ws = fixture.ws();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let dir = fs::File::open(&ws).unwrap();
            while !stop.load(Ordering::Relaxed) {
                Disk::default().exchange((&dir, "dir"), (&dir, "link")).unwrap();
            }
        });
        for _ in 0..300 {
            let objects = MemoryObjects::new();
            let sink = OnData { objects: &objects, then: |bytes| assert_ne!(bytes, b"secret") };
            fixture.try_capture_into(&sink).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Makes a tree in which the fixture's peer may read nothing but `open`.
fn forbidding(fixture: &mut Fixture) {
    fixture.write("open", "x");
    fixture.write("closed", "y");
    fixture.write("dir/file", "z");
    fixture.write("unsearchable/file", "z");
    fixture.write("unsearchable/sub/file", "z");
    set_mode(&fixture.at("closed"), 0o000);
    set_mode(&fixture.at("dir"), 0o000);
    set_mode(&fixture.at("unsearchable"), 0o444);
    if is_root() {
        set_mode(fixture.dir.path(), 0o755);
        fixture.peer = stranger();
    }
}

#[test]
fn what_cannot_be_read_is_recorded_and_named() {
    let mut fixture = Fixture::new();
    forbidding(&mut fixture);
    let unread = |path: &str| (path.to_owned(), WarningKind::Unreadable);
    for _ in 0..2 {
        let (captured, _) = fixture.publish();
        assert_eq!(fixture.bytes(&captured, "open"), b"x");
        let closed = fixture.entry(&captured, "closed").unwrap();
        assert_eq!(closed.kind, EntryKind::File { size: 1, content: Content::Unread });
        assert_eq!(fixture.kind(&captured, "dir"), EntryKind::Directory(None));
        assert_eq!(fixture.entry(&captured, "dir").unwrap().meta.mode, 0);
        assert_eq!(fixture.kind(&captured, "unsearchable/sub"), EntryKind::Directory(None));
        let expected = ["closed", "dir", "unsearchable/file", "unsearchable/sub"].map(unread);
        assert_eq!(Fixture::warnings(&captured), expected);
        assert_eq!(captured.manifest.entries, 6);
    }
    // What can be read again is read again.
    set_mode(&fixture.at("closed"), 0o444);
    set_mode(&fixture.at("dir"), 0o755);
    set_mode(&fixture.at("unsearchable"), 0o755);
    let (captured, _) = fixture.publish();
    assert_eq!(fixture.bytes(&captured, "closed"), b"y");
    assert_eq!(fixture.bytes(&captured, "dir/file"), b"z");
    assert_eq!(fixture.bytes(&captured, "unsearchable/sub/file"), b"z");
    assert!(captured.manifest.warnings.is_empty());
}

#[test]
fn a_root_that_cannot_be_read_is_an_error() {
    let mut fixture = Fixture::new();
    fixture.write("file", "x");
    let root = Root::open(&fixture.ws()).unwrap();
    set_mode(&fixture.ws(), 0o000);
    if is_root() {
        set_mode(fixture.dir.path(), 0o755);
        fixture.peer = stranger();
    }
    let (peer, sink, clock) = (&fixture.peer, &fixture.objects, &fixture.clock);
    let work = Capture { root: &root, peer, sink, clock, ignore: &fixture.ignore };
    let error = capture(&work, &mut fixture.cache).unwrap_err();
    let Error::Io { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
    set_mode(&fixture.ws(), 0o700);
}

#[test]
fn a_peer_who_owns_nothing_gets_a_cache_all_the_same() {
    let mut fixture = Fixture::new();
    if !is_root() {
        cofferdam_tests::skipped(format_args!("only root serves others"));
        return;
    }
    fixture.write("dir/file", "x");
    set_mode(fixture.dir.path(), 0o755);
    set_mode(&fixture.cache_file(), 0o600);
    fixture.peer = stranger();
    let (first, _) = fixture.publish();
    let (second, puts) = fixture.publish();
    assert_eq!(first.id, second.id);
    assert_eq!(puts, 0);
}

#[test]
fn what_root_has_read_is_not_for_others() {
    let mut fixture = Fixture::new();
    if !is_root() {
        cofferdam_tests::skipped(format_args!("only root may read what others may not"));
        return;
    }
    fixture.write("secret", "secret");
    fixture.write("public", "public");
    set_mode(&fixture.at("secret"), 0o640);
    set_mode(fixture.dir.path(), 0o755);
    let (roots, _) = fixture.publish();
    assert_eq!(fixture.bytes(&roots, "secret"), b"secret");
    fixture.peer = stranger();
    let (captured, _) = fixture.publish();
    assert_eq!(fixture.kind(&captured, "secret"), EntryKind::File { size: 6, content: Content::Unread });
    assert_eq!(Fixture::warnings(&captured), [("secret".to_owned(), WarningKind::Unreadable)]);
    fixture.peer = Peer { groups: vec![0], ..stranger() };
    let (captured, _) = fixture.publish();
    assert_eq!(fixture.bytes(&captured, "secret"), b"secret", "the kernel knows about groups");
    // Everybody but the group.
    set_mode(&fixture.at("secret"), 0o604);
    let mut capture_after_root = |peer| {
        fixture.peer = Peer::own();
        fixture.publish();
        fixture.peer = peer;
        let (captured, puts) = fixture.publish();
        (Fixture::warnings(&captured).is_empty(), puts)
    };
    assert_eq!(capture_after_root(stranger()), (true, 0));
    assert!(!capture_after_root(Peer { groups: vec![0], ..stranger() }).0);
}

#[test]
fn names_of_a_file_that_changed_between_them_are_no_group() {
    let mut fixture = Fixture::new();
    fixture.write("a", "old");
    fs::hard_link(fixture.at("a"), fixture.at("z")).unwrap();
    fixture.write("m", "between");
    let objects = MemoryObjects::new();
    let path = fixture.at("a");
    let sink = OnData {
        objects: &objects,
        then: |bytes| {
            if bytes == b"between" {
                fs::write(&path, "newer").unwrap();
            }
        },
    };
    let captured = fixture.try_capture_into(&sink).unwrap();
    fixture.objects = objects;
    assert_eq!(
        (fixture.bytes(&captured, "a"), fixture.bytes(&captured, "z")),
        (b"old".to_vec(), b"newer".to_vec())
    );
    assert!(captured.manifest.hard_links.is_none());
    let changed = ["a", "z"].map(|path| (path.to_owned(), WarningKind::ChangedWhileRead));
    assert_eq!(Fixture::warnings(&captured), changed);
}

#[test]
fn a_store_that_fails_ends_the_capture_with_its_error() {
    struct Broken(MemoryObjects);
    impl ObjectSink for Broken {
        fn put(&self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId> {
            match bytes {
                b"poison" => Err(Error::NoSpace { what: "write a pack".into() }),
                _ => self.0.put(kind, bytes),
            }
        }
    }
    let mut fixture = Fixture::new();
    for dir in 0..50 {
        fixture.write(&format!("d{dir}/file"), if dir == 20 { "poison" } else { "fine" });
    }
    let error = fixture.try_capture_into(&Broken(MemoryObjects::new())).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    let (captured, _) = fixture.publish();
    assert_eq!(fixture.bytes(&captured, "d20/file"), b"poison");
}

#[test]
fn a_panic_in_one_thread_reaches_the_caller_and_ends_the_other() {
    let mut fixture = Fixture::new();
    for dir in 0..50 {
        fixture.write(&format!("d{dir}/file"), if dir == 20 { "poison" } else { "fine" });
    }
    let objects = MemoryObjects::new();
    let sink = OnData { objects: &objects, then: |bytes| assert_ne!(bytes, b"poison") };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fixture.try_capture_into(&sink)));
    assert!(caught.is_err());
}

/// Runs in a mount namespace of its own. False, with a line that says so, if this user may not have one.
fn with_own_mounts(run: impl FnOnce() -> bool + Send + 'static) {
    // A namespace belongs to a thread, and the capture's second thread begins in the one of the first.
    let done = std::thread::spawn(|| {
        let none: Option<&str> = None;
        let private = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)
            .and_then(|()| nix::mount::mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none));
        private.is_ok() && run()
    });
    if !done.join().unwrap() {
        cofferdam_tests::skipped(format_args!("this user may not mount that here"));
    }
}

#[test]
fn a_store_through_a_mapping_is_noticed_on_an_overlay_too() {
    with_own_mounts(|| {
        let mut fixture = Fixture::new();
        let layers = ["lower", "upper", "work"].map(|name| fixture.dir.path().join(name));
        layers.iter().for_each(|layer| fs::create_dir(layer).unwrap());
        fs::write(layers[0].join("mapped"), [0; 4096]).unwrap();
        let [lower, upper, work] = layers.each_ref().map(|layer| layer.display());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let overlay = Some("overlay");
        if nix::mount::mount(overlay, &fixture.ws(), overlay, MsFlags::empty(), Some(&*options)).is_err() {
            return false;
        }
        let file = fs::File::options().read(true).write(true).open(fixture.at("mapped")).unwrap();
        let mapping = SharedMapping::new(&file);
        let on_disk = crate::sys::is_on_disk(&file);
        drop(file);
        for round in 1..4 {
            mapping.store(0, round);
            let (captured, _) = fixture.publish();
            assert_eq!(fixture.bytes(&captured, "mapped")[0], round);
        }
        drop(mapping);
        fixture.publish();
        assert_eq!(fixture.publish().1 == 0, on_disk, "in memory nothing proves that a file is at rest");
        nix::mount::umount(&fixture.ws()).unwrap();
        true
    });
}

#[test]
fn a_mount_is_recorded_and_not_entered() {
    with_own_mounts(|| {
        let mut fixture = Fixture::new();
        fixture.write("file", "x");
        let outside = fixture.dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("below"), "x").unwrap();
        fs::create_dir(fixture.at("here")).unwrap();
        fixture.write("file-here", "y");
        let none: Option<&str> = None;
        // The same filesystem, so the device number is the same.
        let bind = |from: &Path, to: &str| {
            nix::mount::mount(Some(from), &fixture.at(to), none, MsFlags::MS_BIND, none).unwrap();
        };
        bind(&outside, "here");
        bind(&outside.join("below"), "file-here");
        for _ in 0..2 {
            let (captured, _) = fixture.publish();
            for path in ["file-here", "here"] {
                let entry = fixture.entry(&captured, path).unwrap();
                assert_eq!((entry.kind, entry.meta), (EntryKind::MountPoint, Default::default()));
            }
            assert!(fixture.entry(&captured, "here/below").is_none());
            let mounts = ["file-here", "here"].map(|path| (path.to_owned(), WarningKind::MountPoint));
            assert_eq!(Fixture::warnings(&captured), mounts);
        }
        // A directory that holds a mount is not emptied through it.
        let error = crate::fs::remove_tree(
            &Disk::default(),
            fs::File::open(fixture.dir.path()).unwrap(),
            &crate::path::Name::new(*b"ws").unwrap(),
        )
        .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::CrossesDevices);
        assert!(outside.join("below").exists());
        for path in ["here", "file-here"] {
            nix::mount::umount(&fixture.at(path)).unwrap();
        }
        true
    });
}
