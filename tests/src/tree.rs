//! What a directory tree holds, down to the nanosecond, and how two readings of it differ.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A reading of a whole tree, by path relative to its root; the root itself is the empty path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(BTreeMap<Vec<u8>, Node>);

/// One file of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Seconds and nanoseconds of the last modification.
    pub mtime: (i64, i64),
    /// Device numbers of a device node.
    pub device: u64,
    /// Length and hash of a regular file's bytes.
    pub content: Option<(u64, [u8; 32])>,
    /// Where a sparse file has data, as (offset, end); none for a file without holes.
    pub data: Vec<(u64, u64)>,
    /// A symbolic link's target.
    pub target: Option<Vec<u8>>,
    /// Extended attributes, ACLs and capabilities among them.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first path, in byte order, among the names of this file; none if it has only one here.
    pub linked_to: Option<Vec<u8>>,
    /// Inode number; only [`Tree::assert_same_inodes`] looks at it.
    pub inode: u64,
}

impl Tree {
    /// Reads the tree at `root`.
    pub fn read(root: &Path) -> Self {
        Self::read_without(root, &[])
    }

    /// Reads the tree at `root`, leaving out the paths in `without` and all below them.
    pub fn read_without(root: &Path, without: &[&str]) -> Self {
        let mut reader = Reader { nodes: BTreeMap::new(), names: HashMap::new(), without };
        reader.visit(root, Vec::new());
        let Reader { mut nodes, names, .. } = reader;
        for mut names in names.into_values().filter(|names| names.len() > 1) {
            names.sort();
            let first = names[0].clone();
            for name in names {
                if let Some(node) = nodes.get_mut(&name) {
                    node.linked_to = Some(first.clone());
                }
            }
        }
        Self(nodes)
    }

    /// What is at this path.
    pub fn get(&self, path: impl AsRef<[u8]>) -> Option<&Node> {
        self.0.get(path.as_ref())
    }

    /// How many entries there are, the root among them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.0.len() <= 1
    }

    /// The paths, in byte order.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }

    /// How the two differ, a line per difference; empty if they do not. Inode numbers are not looked at.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, node) in &self.0 {
            match other.0.get(path) {
                None => lines.push(format!("{}: is missing", show(path))),
                Some(there) => node.differences(there, &show(path), &mut lines),
            }
        }
        for path in other.0.keys().filter(|path| !self.0.contains_key(*path)) {
            lines.push(format!("{}: is there but should not be", show(path)));
        }
        lines
    }

    /// Fails unless `now` holds exactly what `self` does.
    #[track_caller]
    pub fn assert_same(&self, now: &Self, what: &str) {
        let lines = self.differences(now);
        if !lines.is_empty() {
            panic!("{what}: {} differences\n{}", lines.len(), shorten(&lines));
        }
    }

    /// Fails unless everything at `paths` in `self` still has the same inode in `now`.
    #[track_caller]
    pub fn assert_same_inodes<'p>(&self, now: &Self, paths: impl IntoIterator<Item = &'p [u8]>, what: &str) {
        let lines: Vec<_> = paths
            .into_iter()
            .filter(|path| self.0.get(*path).map(|n| n.inode) != now.0.get(*path).map(|n| n.inode))
            .map(|path| format!("{}: has another inode", show(path)))
            .collect();
        if !lines.is_empty() {
            panic!("{what}: {} differences\n{}", lines.len(), shorten(&lines));
        }
    }
}

impl Node {
    fn differences(&self, other: &Self, path: &str, lines: &mut Vec<String>) {
        let mut say = |what: &str, was: &dyn std::fmt::Debug, is: &dyn std::fmt::Debug| {
            lines.push(format!("{path}: {what} should be {was:?}, is {is:?}"));
        };
        if self.mode != other.mode {
            say("mode", &format!("{:o}", self.mode), &format!("{:o}", other.mode));
        }
        if (self.uid, self.gid) != (other.uid, other.gid) {
            say("owner", &(self.uid, self.gid), &(other.uid, other.gid));
        }
        if self.mtime != other.mtime {
            say("mtime", &self.mtime, &other.mtime);
        }
        if self.device != other.device {
            say("device", &self.device, &other.device);
        }
        if self.content != other.content {
            let brief =
                |c: &Option<(u64, [u8; 32])>| c.map(|(len, hash)| format!("{len} bytes {:02x?}", &hash[..4]));
            say("content", &brief(&self.content), &brief(&other.content));
        } else if self.data != other.data {
            say("data between holes", &self.data, &other.data);
        }
        if self.target != other.target {
            say("link target", &self.target.as_deref().map(show), &other.target.as_deref().map(show));
        }
        for name in self.xattrs.keys().chain(other.xattrs.keys()).collect::<BTreeSet<_>>() {
            let (was, is) = (self.xattrs.get(name), other.xattrs.get(name));
            if was != is {
                say(&format!("xattr {}", show(name)), &was, &is);
            }
        }
        if self.linked_to != other.linked_to {
            say("hard link", &self.linked_to.as_deref().map(show), &other.linked_to.as_deref().map(show));
        }
    }
}

struct Reader<'a> {
    nodes: BTreeMap<Vec<u8>, Node>,
    /// Every name of each file that has more than one.
    names: HashMap<(u64, u64), Vec<Vec<u8>>>,
    without: &'a [&'a str],
}

impl Reader<'_> {
    /// Reads what is at `at`, a path that may begin with a descriptor: what lies deeper than a path can say is read, too.
    fn visit(&mut self, at: &Path, path: Vec<u8>) {
        let fail = |e: std::io::Error| -> ! { panic!("{}: {e}", show(&path)) };
        let meta = std::fs::symlink_metadata(at).unwrap_or_else(|e| fail(e));
        if meta.nlink() > 1 && !meta.is_dir() {
            self.names.entry((meta.dev(), meta.ino())).or_default().push(path.clone());
        }
        let mut node = Node {
            mode: meta.mode(),
            uid: meta.uid(),
            gid: meta.gid(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            device: meta.rdev(),
            content: None,
            data: Vec::new(),
            target: None,
            xattrs: xattrs(at),
            linked_to: None,
            inode: meta.ino(),
        };
        if meta.is_file() {
            let file = File::open(at).unwrap_or_else(|e| fail(e));
            let data = data_ranges(&file, meta.len());
            let hash = hash(&file, meta.len(), &data).unwrap_or_else(|e| fail(e));
            node.content = Some((meta.len(), hash));
            let has_holes = data != [(0, meta.len())] && meta.len() > 0;
            node.data = if has_holes { data } else { Vec::new() };
        } else if meta.is_symlink() {
            node.target =
                Some(std::fs::read_link(at).unwrap_or_else(|e| fail(e)).into_os_string().into_vec());
        } else if meta.is_dir() {
            let dir = File::open(at).unwrap_or_else(|e| fail(e));
            let held = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
            for entry in std::fs::read_dir(&held).unwrap_or_else(|e| fail(e)) {
                let name = entry.unwrap_or_else(|e| fail(e)).file_name();
                let mut below = path.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(name.as_bytes());
                if !self.without.iter().any(|out| out.as_bytes() == below) {
                    self.visit(&held.join(&name), below);
                }
            }
        }
        self.nodes.insert(path, node);
    }
}

/// Where a file has data.
fn data_ranges(file: &File, len: u64) -> Vec<(u64, u64)> {
    use rustix::fs::SeekFrom;
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < len {
        let Ok(start) = rustix::fs::seek(file, SeekFrom::Data(at)) else { break };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(len).min(len);
        ranges.push((start, end));
        at = end;
    }
    ranges
}

/// A hash of a file's bytes, wherever its holes are; these cost nothing.
fn hash(file: &File, len: u64, data: &[(u64, u64)]) -> std::io::Result<[u8; 32]> {
    const BLOCK: u64 = 4096;
    const ZEROS: [u8; BLOCK as usize] = [0; BLOCK as usize];
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 * BLOCK as usize];
    let mut at = 0;
    for (start, end) in data {
        at = at.max(start / BLOCK * BLOCK);
        while at < *end {
            let wanted = buffer.len().min(usize::try_from(len - at).unwrap_or(usize::MAX));
            file.read_exact_at(&mut buffer[..wanted], at)?;
            for block in buffer[..wanted].chunks(ZEROS.len()) {
                if *block != ZEROS[..block.len()] {
                    hasher.update(&at.to_le_bytes()).update(block);
                }
                at += BLOCK;
            }
        }
    }
    Ok(*hasher.finalize().as_bytes())
}

fn xattrs(at: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 64 * 1024];
    let len = match rustix::fs::llistxattr(at, &mut names) {
        Ok(len) => len,
        Err(rustix::io::Errno::NOTSUP) => 0,
        Err(e) => panic!("{}: extended attributes: {e}", at.display()),
    };
    let mut found = BTreeMap::new();
    for name in names[..len].split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 * 1024];
        let len = rustix::fs::lgetxattr(at, name, &mut value)
            .unwrap_or_else(|e| panic!("{}: {}: {e}", at.display(), show(name)));
        value.truncate(len);
        found.insert(name.to_vec(), value);
    }
    found
}

fn show(path: &[u8]) -> String {
    if path.is_empty() { "the root".to_owned() } else { path.escape_ascii().to_string() }
}

fn shorten(lines: &[String]) -> String {
    const SHOWN: usize = 25;
    let mut text = String::new();
    for line in lines.iter().take(SHOWN) {
        let _ = writeln!(text, "  {line}");
    }
    if lines.len() > SHOWN {
        let _ = writeln!(text, "  … and {} more", lines.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    /// Every kind of change must be seen, or a comparison that finds nothing says nothing.
    #[test]
    fn a_comparison_sees_every_kind_of_change() {
        type Change = fn(&Path);
        let changes: &[(&str, Change, &str)] = &[
            ("content", |d| files::write(d.join("a"), "AAAA"), "content"),
            ("mode", |d| files::chmod(d.join("a"), 0o640), "mode"),
            ("mtime by a nanosecond", |d| files::set_mtime(d.join("a"), 1_000_000, 6), "mtime"),
            ("a new file", |d| files::write(d.join("new"), ""), "new: is there but should not be"),
            ("a removed file", |d| files::remove(d.join("b")), "b: is missing"),
            (
                "a link's target",
                |d| {
                    files::remove(d.join("link"));
                    files::symlink("b", d.join("link"));
                },
                "link target",
            ),
            (
                "a broken hard link",
                |d| {
                    files::remove(d.join("twin"));
                    files::write(d.join("twin"), "bbbb");
                    files::set_mtime(d.join("twin"), 1_000_000, 5);
                },
                "hard link",
            ),
            (
                "a filled hole",
                |d| {
                    let bytes = files::read(d.join("sparse"));
                    files::write(d.join("sparse"), bytes);
                    files::set_mtime(d.join("sparse"), 1_000_000, 5);
                },
                "data between holes",
            ),
            (
                "a byte between holes",
                |d| {
                    let bytes = [(1000 * 1024, &b"d"[..]), (512 * 1024, b"data")];
                    files::remove(d.join("sparse"));
                    files::sparse(d.join("sparse"), 1 << 20, &bytes);
                },
                "content",
            ),
            ("the time of a directory", |d| files::set_mtime(d.join("dir"), 1_000_000, 6), "dir: mtime"),
            ("the time of a link", |d| files::set_mtime(d.join("link"), 1_000_000, 6), "link: mtime"),
            ("a name added to a file", |d| files::hard_link(d.join("a"), d.join("dir/a")), "a: hard link"),
            (
                "another kind of file",
                |d| {
                    files::remove(d.join("b"));
                    files::mkdir(d.join("b"));
                },
                "mode",
            ),
        ];
        for (what, change, expected) in changes {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("tree");
            files::write(root.join("a"), "aaaa");
            files::write(root.join("b"), "bbbb");
            files::hard_link(root.join("b"), root.join("twin"));
            files::symlink("a", root.join("link"));
            files::mkdir(root.join("dir"));
            files::sparse(root.join("sparse"), 1 << 20, &[(512 * 1024, b"data")]);
            for name in ["a", "b", "sparse", "link", "dir"] {
                files::set_mtime(root.join(name), 1_000_000, 5);
            }
            files::set_mtime(&root, 1_000_000, 5);
            let before = Tree::read(&root);
            assert_eq!(before.differences(&Tree::read(&root)), Vec::<String>::new(), "{what}");
            change(&root);
            files::set_mtime(&root, 1_000_000, 5);
            let lines = before.differences(&Tree::read(&root));
            assert!(lines.iter().any(|line| line.contains(expected)), "{what}: {lines:?}");
        }
    }

    #[test]
    fn a_comparison_sees_attributes_access_lists_owners_and_devices() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("tree");
        files::write(root.join("a"), "aaaa");
        files::mkdir(root.join("dir"));
        let lines = |change: &dyn Fn()| {
            let before = Tree::read(&root);
            change();
            before.differences(&Tree::read(&root)).join("; ")
        };
        let set = |path: &str, name: &str, value: &[u8]| {
            lines(&|| assert!(files::set_xattr(root.join(path), name, value)))
        };
        if files::set_xattr(root.join("a"), "user.x", b"1") {
            assert!(set("a", "user.x", b"2").contains("a: xattr user.x"));
            assert!(set("dir", "user.x", b"1").contains("dir: xattr user.x"));
        }
        let acl = files::acl(6, Some((7, 65_533)), 4, 0);
        if files::set_xattr(root.join("a"), "system.posix_acl_access", &acl) {
            let other = files::acl(6, Some((5, 65_533)), 4, 0);
            assert!(set("a", "system.posix_acl_access", &other).contains("a: xattr system.posix_acl_access"));
            assert!(set("dir", "system.posix_acl_default", &acl).contains("xattr system.posix_acl_default"));
        }
        if crate::user::is_root() {
            let capability = files::NET_BIND_SERVICE;
            assert!(set("a", "security.capability", &capability).contains("a: xattr security.capability"));
            assert!(lines(&|| crate::user::give(root.join("a"), 65_533)).contains("a: owner"));
            files::null_device(root.join("null"));
            let other = || {
                files::remove(root.join("null"));
                files::device(root.join("null"), 1, 5);
            };
            assert!(lines(&other).contains("null: device"));
        }
    }
}
