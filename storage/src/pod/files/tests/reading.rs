//! Reading and describing one file.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use cofferdam_protocol::pod::FileType;
use cofferdam_tests::files::{chmod, fifo, mkdir, null_device, set_mtime, socket, sparse, symlink, write};
use cofferdam_tests::user::is_root;

use super::*;
use crate::pod::files::{MOST, SNIFFED, at_most};

#[test]
fn a_text_is_answered_with_what_it_is() {
    let site = Site::new();
    write(site.at("sub/a..b.txt"), "日本語テキスト");
    let FileText { text, truncated, bytes, chars, encoding, binary } = site.read("./sub//a..b.txt").unwrap();
    assert_eq!((text.as_str(), truncated, bytes, chars), ("日本語テキスト", false, 21, 7));
    assert_eq!((encoding.as_str(), binary), ("utf-8", false));
    write(site.at("wide"), b"\xff\xfeh\0i\0");
    let wide = site.read("wide").unwrap();
    assert_eq!((wide.text.as_str(), wide.bytes, wide.encoding.as_str()), ("hi", 6, "utf-16le"));
    write(site.at("empty"), "");
    let empty = site.read("empty").unwrap();
    assert_eq!((empty.text.as_str(), empty.truncated, empty.bytes, empty.chars), ("", false, 0, 0));
}

#[test]
fn a_text_is_cut_between_characters() {
    let site = Site::new();
    for (content, most, text, truncated) in [
        ("日本語テキスト", 3, "日本語", true),
        ("a😀b", 2, "a😀", true),
        ("a😀b", 3, "a😀b", false),
        ("a😀b", 4, "a😀b", false),
        ("e\u{301}x", 1, "e", true),
    ] {
        write(site.at("file"), content);
        let read = read(Some(&site.place), "file", 100, most).unwrap();
        assert_eq!((read.text.as_str(), read.truncated, read.chars), (text, truncated, text.chars().count()));
        assert_eq!(read.bytes, content.len() as u64);
    }
}

#[test]
fn what_is_no_text_is_refused_with_its_size_even_where_it_would_be_cut_off() {
    let site = Site::new();
    write(site.at("late"), "text\0");
    assert!(matches!(read(Some(&site.place), "late", 100, 1), Err(Error::Binary { size: 5 })));
}

#[test]
fn a_file_larger_than_the_limit_is_refused_with_both_sizes() {
    let site = Site::new();
    write(site.at("just"), "x".repeat(307_200));
    write(site.at("over"), "x".repeat(307_201));
    assert_eq!(site.read("just").unwrap().bytes, 307_200);
    assert!(matches!(site.read("over"), Err(Error::FileTooLarge { size: 307_201, limit: 307_200 })));
    sparse(site.at("huge"), 1 << 40, &[]);
    let huge = read(Some(&site.place), "huge", u64::MAX, 1);
    assert!(matches!(huge, Err(Error::FileTooLarge { size, limit: MOST }) if size == 1 << 40));
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_to_the_limit_and_no_further() {
    let mut endless = io::repeat(b'x');
    let (bytes, more) = at_most(endless.by_ref(), 1000).unwrap();
    assert_eq!((bytes.len(), more), (1000, true));
    assert_eq!(at_most(&b"abc"[..], 3).unwrap(), (b"abc".to_vec(), false));
}

#[test]
fn what_is_no_path_below_the_task_is_refused_by_every_method() {
    let site = Site::new();
    for path in ["../b", "/etc/passwd", "x/../../b", "a\0"] {
        assert!(is_outside(site.read(path)) && is_outside(site.stat(path)), "{path:?}");
    }
    for path in ["", &"x".repeat(4097)] {
        assert!(matches!(site.read(path), Err(Error::BadRequest(_))), "{} characters", path.len());
        assert!(matches!(site.stat(path), Err(Error::BadRequest(_))), "{} characters", path.len());
    }
    write(site.at("file"), "");
    let deep = "d/".repeat(2000);
    for path in ["none", "none/x", "file/x", &"n".repeat(256), &deep] {
        assert!(is_missing(site.read(path)) && is_missing(site.stat(path)), "{path:?}");
    }
}

#[test]
fn no_link_is_followed_wherever_it_stands() {
    let site = Site::new();
    write(site.outside("secret"), "a long secret");
    write(site.at("inside"), "");
    for (link, target) in [
        ("link", site.outside("secret")),
        ("dirlink", site.outside("")),
        ("dangling", "/nowhere".into()),
        ("self", "self".into()),
        ("in", "inside".into()),
    ] {
        symlink(target, site.at(link));
        assert!(is_outside(site.read(link)), "{link}");
        let FileStat { row, binary } = site.stat(link).unwrap();
        assert_eq!((row.kind, row.size, binary), (FileType::Symlink, 0, false), "{link}");
    }
    for path in ["dirlink/secret", "dirlink/none", "dirlink/./secret", "self/x"] {
        assert!(is_outside(site.read(path)) && is_outside(site.stat(path)), "{path}");
    }
}

#[test]
fn only_a_file_is_read_and_nothing_waits_for_the_other_end() {
    let site = Site::new();
    mkdir(site.at("dir"));
    fifo(site.at("fifo"));
    socket(site.at("socket"));
    let mut table = vec![
        (".", FileType::Directory, "a directory"),
        ("dir", FileType::Directory, "a directory"),
        ("fifo", FileType::Other, "a FIFO"),
        ("socket", FileType::Other, "a socket"),
    ];
    if is_root() {
        null_device(site.at("null"));
        table.push(("null", FileType::Other, "a device"));
    }
    for (path, kind, what) in table {
        let refused = site.read(path);
        assert!(
            matches!(&refused, Err(Error::NotAFile { kind: k, what: w, .. }) if (*k, *w) == (kind, what)),
            "{refused:?}"
        );
        let FileStat { row, binary } = site.stat(path).unwrap();
        assert_eq!((row.rel_path.as_str(), row.kind, row.size, binary), (path, kind, 0, false));
    }
}

#[test]
fn a_file_that_is_leased_is_refused_at_once() {
    let site = Site::new();
    write(site.at("file"), "text");
    let file = std::fs::File::options().write(true).open(site.at("file")).unwrap();
    if !crate::sys::testing::take_write_lease(&file) {
        return cofferdam_tests::skipped(format_args!("no leases here"));
    }
    match site.read("file") {
        Err(Error::Files { source, .. }) => assert_eq!(source.kind(), io::ErrorKind::WouldBlock),
        other => panic!("{other:?}"),
    }
    assert_eq!(site.stat("file").unwrap().row.size, 4);
}

#[test]
fn stat_says_from_its_beginning_whether_a_file_is_a_text() {
    let site = Site::new();
    let sniffed = usize::try_from(SNIFFED).unwrap();
    // The last character that is looked at is cut in half.
    let half = "x".repeat(sniffed - 1) + "é";
    let wide =
        [b"\xff\xfe".to_vec(), [b'a', 0].repeat(sniffed / 2 - 2), vec![0x3d, 0xd8, 0x00, 0xde]].concat();
    for (content, binary) in [
        (b"text".to_vec(), false),
        (b"".to_vec(), false),
        (half.into_bytes(), false),
        (wide, false),
        (b"a\0b".to_vec(), true),
        (b"\xc3".to_vec(), true),
        (b"\x89PNG\r\n\x1a\n".to_vec(), true),
        ([vec![b'x'; sniffed], vec![0]].concat(), false),
    ] {
        write(site.at("file"), &content);
        set_mtime(site.at("file"), 5, 7_000_000);
        let FileStat { row, binary: found } = site.stat("file").unwrap();
        assert_eq!((row.size, row.mtime, row.lossy), (content.len() as u64, 5007, false));
        assert_eq!(found, binary, "{:x?}", &content[..content.len().min(9)]);
    }
}

#[test]
fn looking_leaves_no_trace() {
    let site = Site::new();
    write(site.at("dir/file"), "text");
    let before = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    let times = std::fs::FileTimes::new().set_accessed(before);
    let paths = ["dir/file", "dir", ""].map(|path| site.at(path));
    for path in &paths {
        std::fs::File::open(path).unwrap().set_times(times).unwrap();
    }
    chmod(&paths[0], 0o400);
    site.list();
    site.stat("dir/file").unwrap();
    site.read("dir/file").unwrap();
    for path in &paths {
        assert_eq!(path.metadata().unwrap().atime(), 1, "{}", path.display());
    }
}
