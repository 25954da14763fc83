//! Short names for what tests do to files all the time. Each panics with the path if it fails.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

/// Makes a file and the directories above it.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).unwrap_or_else(|e| panic!("{}: {e}", parent.display()));
    }
    std::fs::write(path, content).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let path = path.as_ref();
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The names in a directory, sorted.
pub fn names(path: impl AsRef<Path>) -> Vec<String> {
    let path = path.as_ref();
    let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// Adds to a file's end.
pub fn append(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    let mut file =
        File::options().append(true).open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file.write_all(content.as_ref()).unwrap();
}

/// Makes a directory and those above it.
pub fn mkdir(path: impl AsRef<Path>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Sets permission bits, following no rule of anybody's umask.
pub fn chmod(path: impl AsRef<Path>, mode: u32) {
    let path = path.as_ref();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Sets the modification time, seconds and nanoseconds since the epoch, following no link.
pub fn set_mtime(path: impl AsRef<Path>, secs: i64, nanos: i64) {
    let path = path.as_ref();
    let at = Timespec { tv_sec: secs, tv_nsec: nanos };
    let times = Timestamps { last_access: at, last_modification: at };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Makes a symbolic link.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    let link = link.as_ref();
    std::os::unix::fs::symlink(target, link).unwrap_or_else(|e| panic!("{}: {e}", link.display()));
}

/// Makes another name for a file.
pub fn hard_link(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let to = to.as_ref();
    std::fs::hard_link(from, to).unwrap_or_else(|e| panic!("{}: {e}", to.display()));
}

/// Makes a FIFO.
pub fn fifo(path: impl AsRef<Path>) {
    let path = path.as_ref();
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o640), 0)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Makes a unix socket's name, as left by a program that has ended.
pub fn socket(path: impl AsRef<Path>) {
    let path = path.as_ref();
    rustix::fs::mknodat(CWD, path, FileType::Socket, Mode::from_raw_mode(0o700), 0)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Makes the character device 1:3, which is `/dev/null`.
pub fn null_device(path: impl AsRef<Path>) {
    device(path, 1, 3);
}

/// Makes a character device.
pub fn device(path: impl AsRef<Path>, major: u32, minor: u32) {
    make_device(path.as_ref(), FileType::CharacterDevice, rustix::fs::makedev(major, minor));
}

/// Makes a block device that no machine has, of the highest number that every filesystem can hold: whoever opens it gets
/// an error.
pub fn no_disk(path: impl AsRef<Path>) {
    make_device(path.as_ref(), FileType::BlockDevice, rustix::fs::makedev(511, 77));
}

fn make_device(path: &Path, kind: FileType, number: u64) {
    rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o660), number)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Makes a file of `len` bytes that has data only where `pieces` say so.
pub fn sparse(path: impl AsRef<Path>, len: u64, pieces: &[(u64, &[u8])]) {
    let file = File::create(path).unwrap();
    file.set_len(len).unwrap();
    for (offset, bytes) in pieces {
        file.write_all_at(bytes, *offset).unwrap();
    }
}

/// Sets an extended attribute; false if the filesystem has none.
#[must_use]
pub fn set_xattr(path: impl AsRef<Path>, name: &str, value: &[u8]) -> bool {
    match rustix::fs::lsetxattr(path.as_ref(), name, value, XattrFlags::empty()) {
        Ok(()) => true,
        Err(rustix::io::Errno::NOTSUP) => false,
        Err(e) => panic!("{}: {name}: {e}", path.as_ref().display()),
    }
}

/// `cap_net_bind_service+ep` as the attribute `security.capability` holds it.
pub const NET_BIND_SERVICE: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// An access list as the attributes `system.posix_acl_*` hold it: rights of the owner, perhaps of one named user
/// (rights, id), of the group, and of others. The mask is what owner, user and group have together.
pub fn acl(owner: u16, user: Option<(u16, u32)>, group: u16, others: u16) -> Vec<u8> {
    const NO_ID: u32 = u32::MAX;
    let mask = user.map(|(rights, _)| rights | group);
    let entries = [
        Some((0x01, owner, NO_ID)),
        user.map(|(rights, id)| (0x02, rights, id)),
        Some((0x04, group, NO_ID)),
        mask.map(|rights| (0x10, rights, NO_ID)),
        Some((0x20, others, NO_ID)),
    ];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries.into_iter().flatten() {
        bytes.extend(u16::to_le_bytes(tag));
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// Takes an extended attribute away.
pub fn remove_xattr(path: impl AsRef<Path>, name: &str) {
    let path = path.as_ref();
    rustix::fs::lremovexattr(path, name).unwrap_or_else(|e| panic!("{}: {name}: {e}", path.display()));
}

/// Removes whatever is at `path`, as `rm -rf` does, made writable first where it has to be.
pub fn remove(path: impl AsRef<Path>) {
    let path = path.as_ref();
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Ok(meta) if meta.is_dir() => {
            make_writable(path);
            std::fs::remove_dir_all(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
        _ => std::fs::remove_file(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())),
    }
}

/// As far down as a path reaches; what lies deeper was not sealed by any test.
fn make_writable(dir: &Path) {
    let meta = std::fs::symlink_metadata(dir);
    if meta.is_ok_and(|meta| meta.permissions().mode() & 0o700 != 0o700) {
        chmod(dir, 0o700);
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            make_writable(&entry.path());
        }
    }
}

/// Moves a name as `mv` does: where the system cannot move it, by a copy.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    match std::fs::rename(from, to) {
        Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => {
            copy_tree(from, to, None);
            remove(from);
        }
        moved => moved.unwrap_or_else(|e| panic!("{}: {e}", from.display())),
    }
}

/// Copies a tree as `cp -a` does. With `limit`, regular files are copied until that many bytes have been.
pub fn copy_tree(from: &Path, to: &Path, limit: Option<u64>) {
    let mut left = limit.unwrap_or(u64::MAX);
    let mut links = std::collections::HashMap::new();
    copy_dir(from, to, &mut left, &mut links);
}

type Links = std::collections::HashMap<(u64, u64), std::path::PathBuf>;

fn copy_dir(from: &Path, to: &Path, left: &mut u64, links: &mut Links) {
    use std::os::unix::fs::MetadataExt;

    mkdir(to);
    let mut entries: Vec<_> = match std::fs::read_dir(from) {
        Ok(entries) => entries.filter_map(Result::ok).collect(),
        Err(_) => return, // The source may be a tree that others are at work in.
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let Ok(meta) = std::fs::symlink_metadata(&source) else { continue };
        if meta.is_dir() {
            copy_dir(&source, &target, left, links);
        } else if meta.is_symlink() {
            let Ok(link) = std::fs::read_link(&source) else { continue };
            symlink(link, &target);
        } else if meta.is_file() {
            let key = (meta.dev(), meta.ino());
            if let Some(first) = links.get(&key).filter(|_| meta.nlink() > 1) {
                hard_link(first, &target);
            } else if meta.len() <= *left && std::fs::copy(&source, &target).is_ok() {
                *left -= meta.len();
                links.insert(key, target.clone());
            } else {
                continue;
            }
        } else {
            continue;
        }
        set_mtime(&target, meta.mtime(), meta.mtime_nsec());
    }
    if let Ok(meta) = std::fs::symlink_metadata(from) {
        chmod(to, meta.mode() & 0o7777);
        set_mtime(to, meta.mtime(), meta.mtime_nsec());
    }
}

/// Marks a file as `chattr` does (`+i`, `-a`); false if this filesystem or this user cannot.
#[must_use]
pub fn chattr(flag: &str, path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    std::process::Command::new("chattr").arg(flag).arg(path).output().is_ok_and(|done| done.status.success())
}

/// A file that is locked as another program would lock it, until this is dropped.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Locks a file, which is made if it is not there.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let file = File::options().create(true).append(true).open(path);
        let file = file.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        file.try_lock().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self(file)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // To close it is not enough: a process that another test is just starting may have it, too.
        let _ = self.0.unlock();
    }
}
