//! What only root can make, or not every filesystem has, comes back as well.

use cofferdam_tests::site::run;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::user::{NOBODY, SOMEBODY, give};
use cofferdam_tests::{files, project, skip, user};

use crate::site;

#[test]
fn roots_project_comes_back_with_owners_set_id_bits_devices_and_attributes() {
    if !user::is_root() {
        skip!("needs root to make devices and other users' files");
    }
    let site = site();
    let daemon = site.start();
    let ws = site.path("project");
    files::write(ws.join("plain"), "x");
    files::write(ws.join("of-nobody/file"), "y");
    give(ws.join("of-nobody"), NOBODY);
    give(ws.join("of-nobody/file"), SOMEBODY);
    files::write(ws.join("setuid"), "tool");
    files::chmod(ws.join("setuid"), 0o4755);
    files::mkdir(ws.join("shared"));
    files::chmod(ws.join("shared"), 0o3775);
    files::null_device(ws.join("null"));
    files::fifo(ws.join("pipe"));
    files::socket(ws.join("socket"));
    files::symlink("nowhere", ws.join("link"));
    give(ws.join("link"), NOBODY);
    let attributes: Vec<_> = [
        ("plain", "user.mine", b"value\0with a NUL".to_vec()),
        ("plain", "user.large", project::noise(2000)),
        ("shared", "user.on-a-directory", b"d".to_vec()),
        ("plain", "system.posix_acl_access", files::acl(7, Some((5, NOBODY)), 4, 0)),
        ("plain", "security.capability", files::NET_BIND_SERVICE.to_vec()),
    ]
    .into_iter()
    .filter(|(file, name, value)| files::set_xattr(ws.join(file), name, value))
    .collect();
    assert!(attributes.len() > 1, "a filesystem without attributes proves nothing here");
    for name in ["plain", "null", "pipe", "socket", "link", "shared", ""] {
        files::set_mtime(ws.join(name), 1_400_000_000, 42);
    }
    let before = Tree::read(&ws);
    daemon.checkpoint(&ws, "one");
    assert_eq!(daemon.diff(&ws, "one", "@live"), []);

    for name in ["plain", "null", "pipe", "socket", "link", "of-nobody", "setuid"] {
        files::remove(ws.join(name));
    }
    files::chmod(ws.join("shared"), 0o700);
    let broken = Tree::read(&ws);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after the rollback");
    let undone = run(&mut site.ws_ckpt(&["undo", "-w", ws.to_str().unwrap()]));
    assert_eq!(undone.code, 0, "{undone:?}");
    broken.assert_same(&Tree::read(&ws), "after undo");
    daemon.rollback(&ws, "one");

    // Changed in nothing but an attribute, or an owner.
    assert!(files::set_xattr(ws.join("plain"), "user.mine", b"other"));
    give(ws.join("setuid"), NOBODY);
    files::set_mtime(&ws, 1_400_000_000, 42);
    let paths: Vec<_> = daemon.diff(&ws, "one", "@live").into_iter().map(|change| change.path).collect();
    assert_eq!(paths, ["plain", "setuid"]);
    daemon.rollback(&ws, "one");
    before.assert_same(&Tree::read(&ws), "after attributes and owners were changed");
}

#[test]
fn holes_stay_holes() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    files::sparse(
        ws.join("sparse"),
        10 << 30,
        &[(0, b"begin"), (5 << 30, b"middle"), ((10 << 30) - 4, b"tail")],
    );
    files::sparse(ws.join("only-a-hole"), 1 << 30, &[]);
    // Hashing ten gigabytes of nothing would take a debug build minutes; the ranges say enough.
    let blocks =
        |name: &str| std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(ws.join(name)).unwrap());
    let before = (blocks("sparse"), blocks("only-a-hole"));
    daemon.checkpoint(&ws, "one");
    files::remove(ws.join("sparse"));
    files::remove(ws.join("only-a-hole"));
    daemon.rollback(&ws, "one");
    assert!(blocks("sparse") <= before.0 + 64 && blocks("only-a-hole") <= before.1 + 8, "holes were filled");
    let restored = std::fs::File::open(ws.join("sparse")).unwrap();
    let read = |offset: u64, len: usize| {
        let mut bytes = vec![0; len];
        std::os::unix::fs::FileExt::read_exact_at(&restored, &mut bytes, offset).unwrap();
        bytes
    };
    assert_eq!(restored.metadata().unwrap().len(), 10 << 30);
    assert_eq!((read(0, 5), read(5 << 30, 6)), (b"begin".to_vec(), b"middle".to_vec()));
    assert_eq!((read((10 << 30) - 4, 4), read(7 << 30, 4)), (b"tail".to_vec(), vec![0; 4]));
    assert_eq!(site.check(), 1);
}

#[test]
fn a_tree_deeper_than_any_path_can_say_comes_back() {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};

    // 60 levels of 100 bytes: no path names the bottom, only a walk from directory to directory reaches it.
    let name = "d".repeat(100);
    let down = |ws: &std::path::Path, make: bool| {
        let mut dir = std::os::fd::OwnedFd::from(std::fs::File::open(ws).unwrap());
        for _ in 0..60 {
            if make {
                mkdirat(&dir, &name, Mode::RWXU).unwrap();
            }
            dir = openat(&dir, &name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        let flags = if make { OFlags::RDWR | OFlags::CREATE } else { OFlags::RDONLY };
        std::fs::File::from(openat(&dir, "bottom", flags, Mode::RUSR | Mode::WUSR).unwrap())
    };
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    std::io::Write::write_all(&mut down(&ws, true), b"deep").unwrap();
    daemon.checkpoint(&ws, "one");
    files::remove(ws.join(&name));
    daemon.rollback(&ws, "one");
    assert_eq!(std::io::read_to_string(down(&ws, false)).unwrap(), "deep");
    assert_eq!(daemon.diff(&ws, "one", "@live"), []);
    assert_eq!(site.check(), 1);
}

#[test]
fn a_write_through_a_mapping_that_was_open_before_is_not_missed() {
    // A store through a shared mapping moves neither mtime nor ctime once its page is dirty. Python has mmap, and
    // is everywhere but where it is not.
    const WRITER: &str = r#"
import mmap, sys
with open(sys.argv[1], "r+b") as f:
    m = mmap.mmap(f.fileno(), 0)
    m[0:4] = b"1111"
    print("one", flush=True)
    sys.stdin.readline()
    m[0:4] = b"2222"
    print("two", flush=True)
    sys.stdin.readline()
"#;
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    files::write(ws.join("mapped"), "0000");
    let mut command = site.command("python3");
    command.args(["-c", WRITER]).arg(ws.join("mapped")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut writer) = command.spawn() else { skip!("no python3 to map a file with") };
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut stdin = writer.stdin.take().unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    daemon.checkpoint(&ws, "one");
    stdin.write_all(b"\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "two");
    daemon.checkpoint(&ws, "two");
    drop(stdin);
    assert!(writer.wait().unwrap().success());
    daemon.rollback(&ws, "one");
    assert_eq!(files::read(ws.join("mapped")), b"1111");
    daemon.rollback(&ws, "two");
    assert_eq!(files::read(ws.join("mapped")), b"2222");
}
