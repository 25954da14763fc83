//! What can be so of a file, and how it can change: each row has a directory of its own in one workspace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cofferdam_tests::{files, project};

use super::attributes::*;
use super::ground::Scene;
use super::links::*;

/// Does something in the row's directory.
type Act = fn(&Path);

/// A row: what it is about, what is there first, what happens then.
type Row = (&'static str, Act, Act);

fn rows(scene: &Scene) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().chain(if scene.is_root { ROOTS_ROWS } else { &[] })
}

pub(super) fn make(scene: &Scene) {
    for (name, make, _) in rows(scene) {
        let dir = scene.at(name);
        files::mkdir(&dir);
        make(&dir);
    }
    files::set_mtime(&scene.ws, 1_333_333_333, 333_333_333);
}

pub(super) fn change(scene: &Scene) {
    for (name, _, change) in rows(scene) {
        change(&scene.at(name));
    }
}

const ROWS: &[Row] = &[
    ("content", make_content, change_content),
    ("modes", make_modes, change_modes),
    ("times", make_times, change_times),
    ("sealed directories", make_sealed, change_sealed),
    ("attributes", make_attributes, change_attributes),
    ("access lists", make_acls, change_acls),
    ("hard links", make_links, change_links),
    ("links to the outside", make_outside, change_outside),
    ("holes", make_holes, change_holes),
    ("special files", make_special, change_special),
    ("names", make_names, change_names),
    ("longer than any path", make_deep, change_deep),
    ("repositories", make_repositories, change_repositories),
    ("directories", make_directories, change_directories),
];

const ROOTS_ROWS: &[Row] = &[
    ("owners", make_owners, change_owners),
    ("capabilities", make_capabilities, change_capabilities),
    ("modes without a right", make_unreadable, change_unreadable),
];

fn make_content(dir: &Path) {
    for name in ["edited", "cut", "grown", "emptied", "one", "other"] {
        files::write(dir.join(name), format!("what was in {name}\n"));
    }
    files::write(dir.join("empty"), "");
    files::write(dir.join("big"), project::noise(3 << 20));
    files::write(dir.join("kept"), "kept");
    for name in files::names(dir) {
        files::set_mtime(dir.join(name), 1_600_000_000, 5);
    }
}

fn change_content(dir: &Path) {
    // The same length, and the old time.
    files::write(dir.join("edited"), "WHAT was in edited\n");
    files::set_mtime(dir.join("edited"), 1_600_000_000, 5);
    files::write(dir.join("cut"), "what");
    files::append(dir.join("grown"), "and more");
    files::write(dir.join("emptied"), "");
    files::write(dir.join("empty"), "not any more");
    files::rename(dir.join("one"), dir.join("two"));
    files::rename(dir.join("other"), dir.join("one"));
    files::rename(dir.join("two"), dir.join("other"));
    let mut bytes = project::noise(3 << 20);
    bytes.splice((1 << 20)..(1 << 20), *b"put in");
    files::write(dir.join("big"), bytes);
}

const FILE_MODES: [u32; 9] = [0o644, 0o400, 0o444, 0o777, 0o4755, 0o2755, 0o6711, 0o1644, 0o7500];
const DIR_MODES: [u32; 6] = [0o1777, 0o2775, 0o3700, 0o4755, 0o555, 0o500];

fn make_modes(dir: &Path) {
    for what in ["kept", "changed", "removed", "written"] {
        for mode in FILE_MODES {
            let file = dir.join(what).join(format!("{mode:o}"));
            files::write(&file, "x");
            files::chmod(&file, mode);
        }
        for mode in DIR_MODES {
            let sub = dir.join(what).join(format!("dir-{mode:o}"));
            files::write(sub.join("in"), "x");
            files::chmod(&sub, mode);
        }
    }
}

fn change_modes(dir: &Path) {
    for mode in FILE_MODES {
        files::chmod(dir.join(format!("changed/{mode:o}")), 0o640);
        files::remove(dir.join(format!("removed/{mode:o}")));
        // To write to a program takes its set-id bits away, if it is not root who writes.
        let written = dir.join(format!("written/{mode:o}"));
        files::chmod(&written, mode | 0o200);
        files::append(&written, "more");
    }
    for mode in DIR_MODES {
        files::chmod(dir.join(format!("changed/dir-{mode:o}")), 0o750);
        files::remove(dir.join(format!("removed/dir-{mode:o}")));
        let written = dir.join(format!("written/dir-{mode:o}"));
        files::chmod(&written, mode | 0o200);
        files::write(written.join("more"), "x");
        files::chmod(&written, mode);
    }
}

/// Seconds and nanoseconds that something gets wrong sometimes: before the epoch, at it, past 32 bits.
const TIMES: [(i64, i64); 7] = [
    (-1, 999_999_999),
    (-1_000_000_000, 1),
    (0, 0),
    (0, 1),
    (1_700_000_000, 999_999_999),
    (2_147_483_648, 5),
    (5_000_000_000, 123_456_789),
];

fn make_times(dir: &Path) {
    for (secs, nanos) in TIMES {
        for what in ["kept", "touched", "removed"] {
            let at = dir.join(format!("{what} {secs}.{nanos}"));
            files::write(at.join("dir/file"), "x");
            files::symlink("file", at.join("dir/link"));
            files::fifo(at.join("dir/fifo"));
            for name in ["dir/file", "dir/link", "dir/fifo", "dir", ""] {
                files::set_mtime(at.join(name), secs, nanos);
            }
        }
    }
}

fn change_times(dir: &Path) {
    for (secs, nanos) in TIMES {
        let at = dir.join(format!("touched {secs}.{nanos}"));
        for name in ["dir/file", "dir/link", "dir/fifo", "dir", ""] {
            files::set_mtime(at.join(name), 1_650_000_000, 7);
        }
        files::remove(dir.join(format!("removed {secs}.{nanos}")));
    }
}

fn make_sealed(dir: &Path) {
    for name in ["written", "emptied", "removed", "opened", "kept"] {
        let outer = dir.join(name);
        files::write(outer.join("file"), "sealed");
        files::write(outer.join("inner/file"), "sealed");
        files::write(outer.join("inner/other"), "sealed");
        seal(&outer, 1_400_000_000);
    }
}

fn seal(outer: &Path, secs: i64) {
    for (path, mode) in [("file", 0o444), ("inner/file", 0o444), ("inner", 0o555), ("", 0o555)] {
        let at = outer.join(path);
        if at.exists() {
            files::set_mtime(&at, secs, 987_654_321);
            files::chmod(&at, mode);
        }
    }
}

fn change_sealed(dir: &Path) {
    let open = |name: &str| {
        files::chmod(dir.join(name), 0o755);
        files::chmod(dir.join(name).join("inner"), 0o755);
    };
    open("written");
    files::remove(dir.join("written/inner/file"));
    files::write(dir.join("written/inner/file"), "changed");
    files::write(dir.join("written/inner/new"), "new");
    seal(&dir.join("written"), 1_500_000_000);
    open("emptied");
    files::remove(dir.join("emptied/inner"));
    files::remove(dir.join("emptied/file"));
    seal(&dir.join("emptied"), 1_400_000_000);
    files::remove(dir.join("removed"));
    open("opened");
    files::mkdir(dir.join("new"));
    files::write(dir.join("new/inner/file"), "new");
    seal(&dir.join("new"), 1_500_000_000);
}

const MIB: u64 = 1 << 20;

fn make_holes(dir: &Path) {
    let data = project::noise(1 << 20);
    // More than the filesystem holds.
    files::sparse(
        dir.join("huge"),
        10 << 30,
        &[(0, &data[..1000]), (5 << 30, &data), ((10 << 30) - 9, b"the end")],
    );
    for name in ["filled", "punched", "shorter", "longer", "moved", "removed"] {
        files::sparse(dir.join(name), 8 * MIB, &[(2 * MIB, &data[..700_000]), (6 * MIB, &data[..10])]);
    }
    files::sparse(dir.join("only a hole"), 4 * MIB, &[]);
    files::sparse(dir.join("small hole"), 4097, &[]);
    files::sparse(dir.join("hole at the end"), 3 * MIB, &[(0, b"begin")]);
    files::sparse(dir.join("hole in front"), 3 * MIB, &[(3 * MIB - 3, b"end")]);
}

fn change_holes(dir: &Path) {
    let data = project::noise(1 << 20);
    files::remove(dir.join("huge"));
    files::sparse(dir.join("huge"), 12 << 30, &[(7 << 30, &data[..5000])]);
    let bytes = files::read(dir.join("filled"));
    files::write(dir.join("filled"), bytes);
    punch(&dir.join("punched"), 2 * MIB, 512 << 10);
    let len = |name: &str, len: u64| {
        std::fs::File::options().write(true).open(dir.join(name)).unwrap().set_len(len).unwrap();
    };
    len("shorter", 6 * MIB + 5);
    len("longer", 20 * MIB);
    files::sparse(dir.join("moved"), 8 * MIB, &[(5 * MIB, &data[..700_000]), (6 * MIB, &data[..10])]);
    for name in ["removed", "only a hole", "hole at the end", "hole in front", "small hole"] {
        files::remove(dir.join(name));
    }
    files::write(dir.join("small hole"), [0; 4097]);
}

fn punch(path: &Path, offset: u64, len: u64) {
    use rustix::fs::FallocateFlags;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, flags, offset, len).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn make_special(dir: &Path) {
    for name in ["kept", "changed", "removed"] {
        files::mkdir(dir.join(name));
        files::fifo(dir.join(name).join("fifo"));
        files::socket(dir.join(name).join("socket"));
        files::symlink("anywhere", dir.join(name).join("link"));
        for kind in ["fifo", "socket", "link"] {
            files::set_mtime(dir.join(name).join(kind), 1_200_000_000, 3);
        }
    }
}

fn change_special(dir: &Path) {
    for kind in ["fifo", "socket"] {
        files::chmod(dir.join("changed").join(kind), 0o600);
    }
    files::set_mtime(dir.join("changed/link"), 1_300_000_000, 3);
    files::remove(dir.join("removed"));
}

/// Names that programs mistake for something else.
fn names() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 20] = [
        b"-rf",
        b"--",
        b"-",
        b" ",
        b"  two",
        b"trailing ",
        b"new\nline",
        b"tab\t",
        b"\x01\x02\x7f",
        b"\\x2f",
        b"*",
        b"?",
        b"~",
        b"$HOME",
        b"%s",
        b"...",
        b"\xff\xfe",
        b"half \xe2\x82",
        b"COM1",
        b"quote'\"",
    ];
    let mut names: Vec<_> = texts.into_iter().map(<[u8]>::to_vec).collect();
    names.push(vec![b'n'; 255]);
    names.push([&b"\xf0"[..], &[b'm'; 254]].concat());
    // As our own staging directories are named: nobody but a journal makes one ours.
    names.push(b".cofferdam-00000000000000000000000000000000".to_vec());
    // Alike but for case, or for how an accent is written.
    for name in ["readme", "README", "ReadMe", "\u{e9}", "e\u{301}", "\u{212b}", "\u{c5}", "A\u{30a}"] {
        names.push(name.as_bytes().to_vec());
    }
    names
}

fn make_names(dir: &Path) {
    for kind in ["kept", "changed", "removed", "directories", "turned"] {
        for (n, name) in names().iter().enumerate() {
            let at = dir.join(kind).join(OsStr::from_bytes(name));
            match kind {
                "directories" => files::write(at.join(OsStr::from_bytes(name)), [n as u8]),
                _ => files::write(at, [n as u8]),
            }
        }
    }
}

fn change_names(dir: &Path) {
    files::remove(dir.join("removed"));
    let names = names();
    for (n, name) in names.iter().enumerate() {
        let name = OsStr::from_bytes(name);
        files::write(dir.join("changed").join(name), [n as u8, 1]);
        if n % 2 == 0 {
            files::remove(dir.join("directories").join(name));
        } else {
            files::write(dir.join("directories").join(name).join("more"), "x");
        }
        // Each name gets what the next one had.
        let next = OsStr::from_bytes(names.get(n + 1).unwrap_or(&names[0]));
        files::rename(dir.join("turned").join(next), dir.join("turned").join(format!("{n} of the turn")));
        if n + 1 < names.len() {
            files::rename(dir.join("turned").join(format!("{n} of the turn")), dir.join("turned").join(name));
        }
    }
}

/// So many levels, each with a name this long, are longer than any path that a system call takes.
const LEVELS: usize = 50;
const LEVEL: [u8; 100] = [b'd'; 100];

/// Calls `act` with the directory at the bottom.
fn at_the_bottom(top: &Path, make: bool, act: impl FnOnce(&std::os::fd::OwnedFd)) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let mut dir = std::os::fd::OwnedFd::from(std::fs::File::open(top).unwrap());
    for _ in 0..LEVELS {
        if make {
            mkdirat(&dir, OsStr::from_bytes(&LEVEL), Mode::RWXU).unwrap();
        }
        dir = openat(&dir, OsStr::from_bytes(&LEVEL), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .unwrap();
    }
    act(&dir);
}

fn write_in(dir: &std::os::fd::OwnedFd, name: &str, content: &str) {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR).unwrap();
    rustix::io::write(file, content.as_bytes()).unwrap();
}

fn make_deep(dir: &Path) {
    for name in ["kept", "written", "removed"] {
        files::mkdir(dir.join(name));
        at_the_bottom(&dir.join(name), true, |bottom| {
            write_in(bottom, "file", "deep");
            write_in(bottom, "other", "deep");
        });
    }
}

fn change_deep(dir: &Path) {
    at_the_bottom(&dir.join("written"), false, |bottom| {
        write_in(bottom, "file", "changed");
        write_in(bottom, "new", "new");
        rustix::fs::unlinkat(bottom, "other", rustix::fs::AtFlags::empty()).unwrap();
    });
    files::remove(dir.join("removed"));
    files::mkdir(dir.join("made"));
    at_the_bottom(&dir.join("made"), true, |bottom| write_in(bottom, "file", "new"));
}

fn make_repositories(dir: &Path) {
    for at in ["", "vendor/one", "vendor/one/third_party/two", "gone", "becomes a file"] {
        let git = dir.join(at).join(".git");
        files::write(git.join("HEAD"), "ref: refs/heads/main\n");
        files::write(git.join("objects/ab/cdef"), project::noise(200));
        files::chmod(git.join("objects/ab/cdef"), 0o444);
        files::write(git.join("refs/heads/main"), "0".repeat(40));
        files::mkdir(git.join("refs/tags"));
        files::write(dir.join(at).join("source"), "text");
    }
    for (at, gitdir) in
        [("worktree", "../.git/worktrees/worktree"), ("submodule", "../.git/modules/submodule")]
    {
        files::write(dir.join(at).join(".git"), format!("gitdir: {gitdir}\n"));
        files::write(dir.join(at).join("source"), "text");
    }
    files::write(dir.join(".gitmodules"), "[submodule \"submodule\"]\n\tpath = submodule\n");
    files::write(dir.join(".gitignore"), "ignored\n");
    files::write(dir.join("ignored"), "is captured all the same");
}

fn change_repositories(dir: &Path) {
    files::write(dir.join(".git/HEAD"), "ref: refs/heads/other\n");
    files::remove(dir.join(".git/objects"));
    files::write(dir.join(".git/objects/pack/pack-1.pack"), project::noise(5000));
    files::write(dir.join("vendor/one/.git/index.lock"), "");
    files::remove(dir.join("vendor/one/third_party/two/.git"));
    files::remove(dir.join("gone"));
    files::remove(dir.join("becomes a file/.git"));
    files::write(dir.join("becomes a file/.git"), "gitdir: ../.git/modules/becomes\n");
    files::remove(dir.join("worktree/.git"));
    files::write(dir.join("worktree/.git/HEAD"), "0".repeat(40));
    files::write(dir.join("submodule/.git"), "gitdir: elsewhere\n");
    files::remove(dir.join("ignored"));
}

fn make_directories(dir: &Path) {
    for name in
        ["added to", "taken from", "touched", "moved", "emptied", "removed", "kept", "swapped", "other"]
    {
        let at = dir.join(name);
        files::write(at.join("one"), format!("one of {name}"));
        files::write(at.join("sub/two"), format!("two of {name}"));
        files::mkdir(at.join("empty/nested/deeper"));
        for (n, path) in ["empty/nested/deeper", "empty/nested", "empty", "sub", ""].iter().enumerate() {
            files::set_mtime(at.join(path), 1_450_000_000 + n as i64, 111_111_111);
        }
    }
    files::set_mtime(dir, 1_440_000_000, 222_222_222);
}

fn change_directories(dir: &Path) {
    files::write(dir.join("added to/sub/three"), "new");
    files::write(dir.join("added to/empty/nested/deeper/four"), "new");
    files::remove(dir.join("taken from/sub/two"));
    files::remove(dir.join("taken from/empty/nested/deeper"));
    files::set_mtime(dir.join("touched"), 1_460_000_000, 1);
    files::set_mtime(dir.join("touched/empty/nested"), 1_460_000_000, 1);
    files::rename(dir.join("moved"), dir.join("kept/moved"));
    for name in files::names(dir.join("emptied")) {
        files::remove(dir.join("emptied").join(name));
    }
    files::remove(dir.join("removed"));
    // Two directories that have each other's names.
    files::rename(dir.join("swapped"), dir.join("x"));
    files::rename(dir.join("other"), dir.join("swapped"));
    files::rename(dir.join("x"), dir.join("other"));
}
