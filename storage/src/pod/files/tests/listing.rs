//! Lists.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use cofferdam_protocol::pod::FileType;
use cofferdam_tests::files::{chmod, fifo, mkdir, set_mtime, socket, symlink, write};
use cofferdam_tests::mount::Mount;
use cofferdam_tests::user::{NOBODY, as_user, is_root};
use proptest::prelude::*;
use rustix::fs::Mode;

use super::*;
use crate::ckpt::FileKind;
use crate::disk::Disk;
use crate::fs::{Root, open_for_reading, remove_tree};
use crate::path::Name;
use crate::pod::files::list::{Limits, rows};

#[test]
fn a_list_says_what_each_thing_is_how_large_and_when_it_changed() {
    let site = Site::new();
    write(site.at("sub/x.txt"), "abc");
    set_mtime(site.at("sub/x.txt"), 1_700_000_000, 123_999_999);
    set_mtime(site.at("sub"), -2, 500_000_000);
    symlink("sub/x.txt", site.at("link"));
    fifo(site.at("fifo"));
    socket(site.at("socket"));
    let rows = site.list();
    assert_eq!(
        (rows.root.as_str(), rows.truncated, rows.missing),
        (site.at("").to_str().unwrap().trim_end_matches('/'), false, false)
    );
    let shown: Vec<_> = rows.entries.iter().map(|row| (row.rel_path.as_str(), row.kind, row.size)).collect();
    assert_eq!(
        shown,
        [
            ("fifo", FileType::Other, 0),
            ("link", FileType::Symlink, 0),
            ("socket", FileType::Other, 0),
            ("sub", FileType::Directory, 0),
            ("sub/x.txt", FileType::File, 3),
        ]
    );
    assert_eq!(site.row("sub/x.txt").mtime, 1_700_000_000_123);
    assert_eq!(site.row("sub").mtime, -1500);
}

#[test]
fn the_order_is_depth_first_and_by_the_bytes_of_names() {
    let site = Site::new();
    for path in ["sub/b", "sub/a/x", "sub.txt", "sub-", "Z", "é", "z"] {
        write(site.at(path), "");
    }
    assert_eq!(paths(&site.list()), ["Z", "sub", "sub/a", "sub/a/x", "sub/b", "sub-", "sub.txt", "z", "é"]);
}

#[test]
fn a_path_has_eight_segments_at_most_and_what_is_deeper_is_said_to_be_there() {
    let site = Site::new();
    let eight = "d/d/d/d/d/d/d/d";
    mkdir(site.at(eight));
    assert!(!site.list().truncated, "an empty directory hides nothing");
    mkdir(site.at(&format!("{eight}/d")));
    let rows = site.list();
    assert_eq!((rows.entries.len(), paths(&rows)[7], rows.truncated), (8, eight, true));
}

#[test]
fn two_thousand_are_shown_and_one_more_is_said_to_be_there() {
    let site = Site::new();
    // Made in an order that is neither theirs nor its reverse.
    for n in 0..1999 {
        write(site.at(&format!("{:04}", n * 7 % 1999)), "");
    }
    mkdir(site.at("9999"));
    let rows = site.list();
    assert_eq!((rows.entries.len(), rows.truncated), (2000, false));
    write(site.at("9999/in"), "");
    let rows = site.list();
    assert_eq!((rows.entries.len(), rows.truncated), (2000, true));
    for n in (2000..3000).rev() {
        write(site.at(&format!("{n:04}")), "");
    }
    let rows = site.list();
    assert_eq!((rows.entries.len(), rows.truncated), (2000, true));
    let first: Vec<_> = (0..1999).chain([2000]).map(|n| format!("{n:04}")).collect();
    assert_eq!(paths(&rows), first);
}

#[test]
fn a_task_whose_directory_is_gone_or_elsewhere_has_no_files() {
    let site = Site::new();
    let place = |dir: &str| TaskPlace { dir: site.root().join(dir), root: site.place.root.clone() };
    write(site.root().join("file"), "");
    for dir in ["none", "none/a", "file", "file/a"] {
        let place = place(dir);
        let rows = list(Some(&place)).unwrap();
        assert!(rows.missing && rows.entries.is_empty() && !rows.truncated, "{dir}");
        assert!(is_missing(stat(Some(&place), "x")) && is_missing(read(Some(&place), "x", 9, 9)), "{dir}");
    }
    let gone = TaskPlace { dir: "/nowhere/root/a".into(), root: Some("/nowhere/root".into()) };
    assert!(list(Some(&gone)).unwrap().missing);
    assert!(list(None).unwrap().missing && is_missing(read(None, "x", 9, 9)));
}

#[test]
fn the_root_may_be_reached_through_links_and_what_is_below_it_not() {
    let site = Site::new();
    write(site.at("file"), "text");
    symlink("root", site.dir.path().join("to-root"));
    let root = site.dir.path().join("to-root");
    let linked = TaskPlace { dir: root.join("sub/a"), root: Some(root) };
    assert_eq!(paths(&list(Some(&linked)).unwrap()), ["file"]);
    assert_eq!(read(Some(&linked), "file", 9, 9).unwrap().text, "text");
    symlink("sub", site.root().join("to-sub"));
    symlink("a", site.root().join("sub/to-a"));
    for dir in ["to-sub/a", "sub/to-a"] {
        let place = TaskPlace { dir: site.root().join(dir), root: site.place.root.clone() };
        assert!(is_outside(list(Some(&place))), "{dir}");
        assert!(is_outside(read(Some(&place), "file", 9, 9)), "{dir}");
        assert!(is_outside(stat(Some(&place), "file")), "{dir}");
    }
}

#[test]
fn without_a_root_the_directory_itself_may_be_no_link() {
    let site = Site::new();
    write(site.at("file"), "text");
    let place = |dir: &str| TaskPlace { dir: site.root().join(dir), root: None };
    assert_eq!(paths(&list(Some(&place("sub/a"))).unwrap()), ["file"]);
    symlink("a", site.root().join("sub/to-a"));
    assert!(is_outside(list(Some(&place("sub/to-a")))));
    assert!(list(Some(&place("gone"))).unwrap().missing);
    assert!(is_outside(list(Some(&TaskPlace { dir: "/".into(), root: None }))));
}

#[test]
fn a_record_that_names_the_root_or_a_place_outside_of_it_shows_nothing() {
    let site = Site::new();
    let place = |dir: PathBuf| TaskPlace { dir, root: site.place.root.clone() };
    assert!(matches!(list(Some(&place(site.root().into()))), Err(Error::RootProtected(_))));
    assert!(matches!(list(Some(&place(site.root().join("./")))), Err(Error::RootProtected(_))));
    for dir in [site.outside(""), site.root().join("../outside"), site.dir.path().join("root2"), "/".into()] {
        assert!(is_outside(list(Some(&place(dir.clone())))), "{}", dir.display());
    }
}

#[test]
fn a_name_that_is_not_unicode_is_shown_as_what_it_resembles_and_cannot_be_read() {
    let site = Site::new();
    write(site.place.dir.join(OsStr::from_bytes(b"a\xffb")).join("in"), "x");
    write(site.at("\u{fffd}"), "real");
    let rows = site.list();
    let shown: Vec<_> = rows.entries.iter().map(|row| (row.rel_path.as_str(), row.lossy)).collect();
    assert_eq!(shown, [("a\u{fffd}b", true), ("a\u{fffd}b/in", true), ("\u{fffd}", false)]);
    assert!(is_missing(site.read("a\u{fffd}b/in")));
    assert_eq!(site.read("\u{fffd}").unwrap().text, "real");
}

#[test]
fn a_tree_of_any_depth_is_listed_down_to_eight() {
    let site = Site::new();
    let disk = Disk::default();
    let mut dir = Root::open(&site.place.dir).unwrap().open_dir(&crate::path::RelPath::ROOT).unwrap();
    for _ in 0..3000 {
        disk.mkdir(&dir, "d", Mode::RWXU).unwrap();
        dir = open_for_reading(&dir, c"d").unwrap();
    }
    let rows = site.list();
    assert_eq!((rows.entries.len(), rows.truncated), (8, true));
    // No other remover goes that deep.
    remove_tree(&disk, Root::open(&site.place.dir).unwrap(), &Name::new(*b"d").unwrap()).unwrap();
}

#[test]
fn what_is_mounted_is_shown_and_not_entered() {
    if !is_root() {
        return cofferdam_tests::skipped(format_args!("mounting needs root"));
    }
    let site = Site::new();
    write(site.outside("secret"), "x");
    let _mount = Mount::bind(&site.outside(""), &site.at("mnt"));
    assert_eq!(site.row("mnt").kind, FileType::Other);
    assert_eq!(paths(&site.list()), ["mnt"]);
    for path in ["mnt", "mnt/secret"] {
        assert!(is_outside(site.stat(path)) && is_outside(site.read(path)), "{path}");
    }
    let _mount = Mount::bind(&site.outside(""), &site.place.dir);
    assert!(is_outside(list(Some(&site.place))));
}

#[test]
fn a_directory_that_cannot_be_looked_into_is_shown_and_there_may_be_more() {
    if !is_root() {
        return cofferdam_tests::skipped(format_args!("being somebody else needs root"));
    }
    let site = Site::new();
    chmod(site.dir.path(), 0o755);
    write(site.at("open/x"), "");
    write(site.at("shut/x"), "");
    write(site.at("unsearchable/x"), "");
    write(site.at("file"), "text");
    chmod(site.at("shut"), 0o700);
    chmod(site.at("unsearchable"), 0o744);
    chmod(site.at("file"), 0o600);
    as_user(NOBODY, || {
        let rows = site.list();
        assert_eq!(paths(&rows), ["file", "open", "open/x", "shut", "unsearchable"]);
        assert!(rows.truncated);
        assert!(!site.stat("file").unwrap().binary);
        for result in
            [site.read("file").map(drop), site.read("shut/x").map(drop), site.stat("shut/x").map(drop)]
        {
            assert!(matches!(result, Err(Error::Files { .. })), "{result:?}");
        }
    });
    chmod(&site.place.dir, 0o711);
    as_user(NOBODY, || {
        assert!(matches!(list(Some(&site.place)), Err(Error::Files { .. })), "not an empty list");
        assert_eq!(site.read("open/x").unwrap().text, "");
    });
}

/// What the contract says, without a thought for memory or for anybody who changes names meanwhile.
fn naive(dir: &Path, at: &str, depth: usize, limits: Limits, out: &mut Vec<String>) -> bool {
    let mut names: Vec<_> = dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    if depth > limits.depth {
        return !names.is_empty();
    }
    names.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let mut more = false;
    for name in names {
        if out.len() == limits.entries {
            return true;
        }
        let path = dir.join(&name);
        let shown = format!("{at}{}", name.to_str().unwrap());
        out.push(shown.clone());
        if path.symlink_metadata().unwrap().is_dir() {
            more |= naive(&path, &format!("{shown}/"), depth + 1, limits, out);
        }
    }
    more
}

fn small_tree() -> impl Strategy<Value = Vec<(Vec<&'static str>, FileKind)>> {
    let name = prop::sample::select(vec!["a", "a.b", "a b", "-", "b", "B", "ä", "😀"]);
    let kind = prop::sample::select(vec![FileKind::File, FileKind::Directory, FileKind::Symlink]);
    prop::collection::vec((prop::collection::vec(name, 1..6), kind), 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_list_is_what_a_naive_walk_finds(tree in small_tree(), depth in 1_usize..6, entries in 1_usize..30) {
        let dir = tempfile::tempdir().unwrap();
        for (names, kind) in tree {
            let path = dir.path().join(names.join("/"));
            // A name that is taken by another kind already stays what it is.
            let _ = std::fs::create_dir_all(path.parent().unwrap());
            let _ = match kind {
                FileKind::Directory => std::fs::create_dir(&path),
                FileKind::Symlink => std::os::unix::fs::symlink("/etc", &path),
                _ => std::fs::File::create_new(&path).map(drop),
            };
        }
        let limits = Limits { depth, entries };
        let mut expected = Vec::new();
        let more = naive(dir.path(), "", 1, limits, &mut expected);
        let (found, truncated) = rows(&Root::open(dir.path()).unwrap(), limits).unwrap();
        let found: Vec<_> = found.into_iter().map(|row| row.rel_path).collect();
        prop_assert_eq!((found, truncated), (expected, more));
    }
}
