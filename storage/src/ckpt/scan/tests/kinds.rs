//! Every kind of file, and everything that belongs to it.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode};

use super::*;
use crate::ckpt::format::{Extent, HardLinks, Timestamp};
use crate::path::Name;

#[test]
fn a_captured_tree_has_every_name_with_its_kind_bytes_and_metadata() {
    let mut fixture = Fixture::new();
    fixture.write("dir/file", "content");
    fixture.write("empty", "");
    fs::create_dir(fixture.at("empty-dir")).unwrap();
    symlink("dir/file", fixture.at("link")).unwrap();
    set_mode(&fixture.at("dir/file"), 0o4751);
    set_mode(&fixture.at("dir"), 0o1705);
    let (captured, _) = fixture.publish();
    assert_eq!((captured.manifest.entries, captured.manifest.bytes), (5, 7));
    assert!(captured.manifest.warnings.is_empty());
    assert_eq!(fixture.bytes(&captured, "dir/file"), b"content");
    assert_eq!(fixture.kind(&captured, "empty"), EntryKind::File { size: 0, content: Content::Empty });
    assert_eq!(fixture.kind(&captured, "link"), EntryKind::Symlink(b"dir/file"[..].into()));
    let EntryKind::Directory(Some(empty)) = fixture.kind(&captured, "empty-dir") else { panic!() };
    assert_eq!(Tree::new(&fixture.objects, empty).entries().count(), 0);
    let file = fixture.entry(&captured, "dir/file").unwrap().meta;
    let real = fs::metadata(fixture.at("dir/file")).unwrap();
    assert_eq!((file.mode, file.uid, file.gid), (0o4751, real.uid(), real.gid()));
    assert_eq!(file.mtime, Timestamp { secs: real.mtime(), nanos: real.mtime_nsec() as u32 });
    assert_eq!(fixture.entry(&captured, "dir").unwrap().meta.mode, 0o1705);
    assert_eq!(fixture.entry(&captured, "link").unwrap().meta.mode, 0);
    let root = fs::metadata(fixture.ws()).unwrap();
    assert_eq!(captured.manifest.root_meta.mode, root.mode() & 0o7777);
    assert_eq!(captured.manifest.root_meta.mtime.secs, root.mtime());
}

#[test]
fn an_empty_workspace_is_a_tree_without_entries() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.publish().0.manifest.entries, 0);
}

#[test]
fn pipes_sockets_and_devices_are_recorded_and_not_opened() {
    let mut fixture = Fixture::new();
    let node = |name: &str, kind, device| {
        rustix::fs::mknodat(CWD, fixture.at(name), kind, Mode::from_raw_mode(0o640), device)
    };
    node("fifo", FileType::Fifo, 0).unwrap();
    let socket = UnixListener::bind(fixture.at("socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    let devices = node("null", FileType::CharacterDevice, rustix::fs::makedev(1, 3)).is_ok()
        && node("disk", FileType::BlockDevice, rustix::fs::makedev(4095, 77)).is_ok();
    let (captured, _) = fixture.publish();
    assert_eq!(fixture.kind(&captured, "fifo"), EntryKind::Fifo);
    assert_eq!(fixture.kind(&captured, "socket"), EntryKind::Socket);
    assert!(captured.manifest.warnings.is_empty());
    assert_eq!(socket.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    if devices {
        assert_eq!(fixture.kind(&captured, "null"), EntryKind::CharDevice(1, 3));
        // Opening it would fail: there is no such disk.
        assert_eq!(fixture.kind(&captured, "disk"), EntryKind::BlockDevice(4095, 77));
    } else {
        cofferdam_tests::skipped(format_args!("device nodes, which only root may make"));
    }
    assert_eq!(fixture.publish().1, 0);
}

#[test]
fn names_are_bytes_and_may_be_long() {
    let mut fixture = Fixture::new();
    let names: [&[u8]; 5] = [b"\xff\xfes", b"new\nline", b"-rf", &[b'n'; 255], b" "];
    for name in names {
        fs::write(fixture.ws().join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let (captured, _) = fixture.publish();
    for name in names {
        assert_eq!(fixture.bytes(&captured, name), name);
    }
    assert_eq!(captured.manifest.entries, 5);
}

#[test]
fn a_path_longer_than_any_system_call_takes_is_captured() {
    let mut fixture = Fixture::new();
    let root = Root::open(&fixture.ws()).unwrap();
    let (disk, name) = (Disk::default(), Name::new([b'n'; 200]).unwrap());
    let mut dir = root.open_dir(&RelPath::ROOT).unwrap();
    let mut path = RelPath::ROOT;
    for _ in 0..50 {
        disk.mkdir(&dir, name.as_bytes(), Mode::RWXU).unwrap();
        dir = crate::fs::open_for_reading(&dir, name.as_bytes()).unwrap();
        path = path.join(&name);
    }
    let file = disk.create(&dir, "file", rustix::fs::OFlags::WRONLY, Mode::RWXU).unwrap();
    fs::File::from(file).write_all_at(b"deep", 0).unwrap();
    let path = path.join(&Name::new(*b"file").unwrap());
    assert!(path.as_bytes().len() > 8192);
    let (captured, _) = fixture.publish();
    assert_eq!(fixture.bytes(&captured, path.as_bytes()), b"deep");
    assert_eq!(fixture.publish().1, 0);
    crate::fs::remove_tree(&disk, &root, &name).unwrap();
}

#[test]
fn a_tree_that_is_too_deep_is_cut_off_with_a_warning() {
    let mut fixture = Fixture::new();
    let root = Root::open(&fixture.ws()).unwrap();
    let (disk, name) = (Disk::default(), Name::new([b'n'; 255]).unwrap());
    let mut dir = root.open_dir(&RelPath::ROOT).unwrap();
    for _ in 0..130 {
        disk.mkdir(&dir, name.as_bytes(), Mode::RWXU).unwrap();
        dir = crate::fs::open_for_reading(&dir, name.as_bytes()).unwrap();
    }
    let (captured, _) = fixture.publish();
    assert_eq!(captured.manifest.entries, 129);
    assert_eq!(captured.manifest.warnings.len(), 1);
    assert_eq!(captured.manifest.warnings[0].kind, WarningKind::Unreadable);
    crate::fs::remove_tree(&disk, &root, &name).unwrap();
}

#[test]
fn names_of_one_file_are_a_group() {
    let mut fixture = Fixture::new();
    fixture.write("b/one", "x");
    fs::create_dir(fixture.at("a")).unwrap();
    fs::hard_link(fixture.at("b/one"), fixture.at("b/two")).unwrap();
    fs::hard_link(fixture.at("b/one"), fixture.at("a/three")).unwrap();
    fixture.write("outside-link", "y");
    fs::hard_link(fixture.at("outside-link"), fixture.dir.path().join("outside")).unwrap();
    for round in ["read", "cached"] {
        let (captured, _) = fixture.publish();
        let links = HardLinks::load(&fixture.objects, &captured.manifest.hard_links.unwrap()).unwrap();
        let group = ["a/three", "b/one", "b/two"].map(|path| RelPath::new(path.as_bytes()).unwrap());
        assert_eq!(links.groups, [group], "{round}");
    }
}

#[test]
fn holes_stay_holes() {
    let mut fixture = Fixture::new();
    let file = fs::File::create(fixture.at("sparse")).unwrap();
    file.set_len(10 << 30).unwrap();
    file.write_all_at(b"middle", 5 << 30).unwrap();
    fs::File::create(fixture.at("hollow")).unwrap().set_len(4096).unwrap();
    let (captured, _) = fixture.publish();
    let extents = |path| match fixture.kind(&captured, path) {
        EntryKind::File { size, content: Content::Extents(id) } => {
            (size, Extents::load(&fixture.objects, &id).unwrap().0)
        }
        other => panic!("{other:?}"),
    };
    let (size, sparse) = extents("sparse");
    assert_eq!(size, 10 << 30);
    assert!(matches!(sparse[..], [Extent::Hole(_), Extent::Data(len, _), Extent::Hole(_)] if len < 1 << 20));
    assert_eq!(extents("hollow"), (4096, vec![Extent::Hole(4096)]));
}

#[test]
fn a_big_file_is_chunked_by_content() {
    let mut fixture = Fixture::new();
    let mut bytes = noise(3 << 20);
    fixture.write("big", &bytes);
    let (captured, before) = fixture.publish();
    assert_eq!(fixture.bytes(&captured, "big"), bytes);
    assert!(before > 3, "{before} objects");
    let known = fixture.objects.len();
    bytes.splice((1 << 20)..(1 << 20), *b"inserted");
    fixture.write("big", &bytes);
    let (captured, _) = fixture.publish();
    assert_eq!(fixture.bytes(&captured, "big"), bytes);
    // A few chunks around the change, their list, the directory, the manifest.
    assert!(fixture.objects.len() - known <= 6, "{} new objects", fixture.objects.len() - known);
}

#[test]
fn the_users_attributes_are_captured_and_others_are_not() {
    let mut fixture = Fixture::new();
    fixture.write("file", "x");
    fs::create_dir(fixture.at("dir")).unwrap();
    let set = |path: &str, name: &str, value: &[u8]| {
        rustix::fs::setxattr(fixture.at(path), name, value, rustix::fs::XattrFlags::empty())
    };
    let long = vec![7; 2000];
    if set("file", "user.b", b"2").is_err() {
        cofferdam_tests::skipped(format_args!("the filesystem has no user attributes"));
        return;
    }
    set("file", "user.a", &long).unwrap();
    set("dir", "user.d", b"").unwrap();
    let _ = set("file", "trusted.t", b"x");
    let (captured, _) = fixture.publish();
    let file = fixture.entry(&captured, "file").unwrap().meta.xattrs;
    let pair = |name: &str, value: &[u8]| (name.as_bytes().into(), value.into());
    assert_eq!(*file, [pair("user.a", &long), pair("user.b", b"2")]);
    assert_eq!(*fixture.entry(&captured, "dir").unwrap().meta.xattrs, [pair("user.d", b"")]);
    assert_eq!(fixture.publish().1, 0);
    rustix::fs::setxattr(fixture.at("dir"), "user.d", b"new", rustix::fs::XattrFlags::empty()).unwrap();
    let (captured, _) = fixture.publish();
    assert_eq!(*fixture.entry(&captured, "dir").unwrap().meta.xattrs, [pair("user.d", b"new")]);
}

#[test]
fn what_has_more_attributes_than_can_be_listed_is_named() {
    let mut fixture = Fixture::new();
    fixture.write("file", "x");
    fixture.write("dir/file", "x");
    for path in ["file", "dir"] {
        for n in 0..300 {
            let name = format!("user.{n:0>240}");
            if rustix::fs::setxattr(fixture.at(path), name, b"", rustix::fs::XattrFlags::empty()).is_err() {
                cofferdam_tests::skipped(format_args!("the filesystem does not take that many attributes"));
                return;
            }
        }
    }
    for _ in 0..2 {
        let (captured, _) = fixture.publish();
        let unread = ["dir", "file"].map(|path| (path.to_owned(), WarningKind::Unreadable));
        assert_eq!(Fixture::warnings(&captured), unread);
        assert_eq!(fixture.bytes(&captured, "dir/file"), b"x");
    }
}

#[test]
fn no_access_time_moves() {
    let mut fixture = Fixture::new();
    fixture.write("dir/file", "x");
    symlink("dir", fixture.at("link")).unwrap();
    let long_ago = rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 5 };
    let omit = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let times = rustix::fs::Timestamps { last_access: long_ago, last_modification: omit };
    for path in ["dir/file", "dir", "link", ""] {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(CWD, fixture.at(path), &times, flags).unwrap();
    }
    fixture.publish();
    fixture.publish();
    for path in ["dir/file", "dir", ""] {
        let meta = fs::symlink_metadata(fixture.at(path)).unwrap();
        assert_eq!((meta.atime(), meta.atime_nsec()), (1_000_000_000, 5), "{path}");
    }
}

#[test]
fn ignored_names_are_not_captured() {
    let mut fixture = Fixture::new();
    fixture.write("keep", "x");
    fixture.write(".staging/file", "x");
    fixture.write("inner/.staging/file", "x");
    fixture.write("inner/keep", "x");
    let (with, _) = fixture.publish();
    assert!(fixture.entry(&with, ".staging/file").is_some());
    fixture.ignore = [".staging", "inner/.staging"].map(|p| RelPath::new(p.as_bytes()).unwrap()).into();
    let (captured, _) = fixture.publish();
    assert!(fixture.entry(&captured, ".staging").is_none());
    assert!(fixture.entry(&captured, "inner/.staging").is_none());
    assert!(fixture.entry(&captured, "inner/keep").is_some());
    assert_eq!(captured.manifest.entries, 3);
}

#[test]
fn one_name_can_be_captured_with_everything_beneath_it() {
    let mut fixture = Fixture::new();
    fixture.write("dir/sub/file", "x");
    fixture.write("file", "y");
    symlink("file", fixture.at("link")).unwrap();
    let (whole, _) = fixture.publish();
    let root = Root::open(&fixture.ws()).unwrap();
    let (peer, sink, clock) = (&fixture.peer, &fixture.objects, &fixture.clock);
    let work = Capture { root: &root, peer, sink, clock, ignore: &fixture.ignore };
    for name in ["dir", "file", "link", "none"] {
        let entry = capture_entry(&work, root.as_fd(), &Name::new(name.as_bytes()).unwrap()).unwrap();
        assert_eq!(entry, fixture.entry(&whole, name), "{name}");
    }
}

/// Bytes without a pattern.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}
