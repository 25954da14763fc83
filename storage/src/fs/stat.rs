//! What statx says.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp};
use rustix::path::Arg;

use crate::ckpt::FileKind;
use crate::ckpt::format::Timestamp;

/// A file's attributes as the kernel reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is; [`FileKind::MountPoint`] if something is mounted on the name that was asked for.
    pub kind: FileKind,
    /// Permission bits with set-id and sticky: `0o7777`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// 512-byte blocks in use.
    pub blocks: u64,
    /// Names.
    pub nlink: u32,
    /// Inode number.
    pub ino: u64,
    /// Device of the filesystem: tells nested filesystems apart within one mount, means nothing across remounts.
    pub dev: (u32, u32),
    /// Major and minor number of a device node.
    pub rdev: (u32, u32),
    /// Last modification.
    pub mtime: Timestamp,
    /// Last change of inode.
    pub ctime: Timestamp,
    /// Birth, where the filesystem keeps it.
    pub btime: Option<Timestamp>,
    /// The mount it is on.
    pub mount: u64,
    /// Flags that forbid changes.
    pub attributes: Attributes,
}

/// Flags that forbid changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// chattr +i.
    pub immutable: bool,
    /// chattr +a.
    pub append: bool,
}

/// The attributes of a name in a directory, following no link and triggering no automount.
pub fn stat(dir: impl AsFd, name: impl Arg) -> io::Result<Stat> {
    let found = query(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mut stat = Stat::of(&found)?;
    if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        stat.kind = FileKind::MountPoint;
    }
    Ok(stat)
}

/// The attributes of an open (or `O_PATH`) descriptor. Never [`FileKind::MountPoint`]: whoever holds a descriptor is
/// past the name, and compares [`Stat::mount`] where that matters.
pub fn stat_fd(file: impl AsFd) -> io::Result<Stat> {
    Stat::of(&query(file, c"", AtFlags::EMPTY_PATH)?)
}

fn query(dir: impl AsFd, name: impl Arg, flags: AtFlags) -> io::Result<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    Ok(rustix::fs::statx(dir, name, flags | AtFlags::NO_AUTOMOUNT, wanted)?)
}

impl Stat {
    fn of(found: &Statx) -> io::Result<Self> {
        let answered = StatxFlags::from_bits_retain(found.stx_mask);
        if !answered.contains(StatxFlags::MNT_ID) {
            // Without it no walk could tell where somebody else's disk begins.
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel does not report mounts; Linux 5.8 or later is needed",
            ));
        }
        let mode = u32::from(found.stx_mode);
        Ok(Self {
            kind: match FileType::from_raw_mode(mode) {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Directory,
                FileType::Symlink => FileKind::Symlink,
                FileType::Fifo => FileKind::Fifo,
                FileType::Socket => FileKind::Socket,
                FileType::CharacterDevice => FileKind::CharDevice,
                FileType::BlockDevice => FileKind::BlockDevice,
                FileType::Unknown => return Err(io::Error::other("unknown kind of file")),
            },
            mode: mode & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            size: found.stx_size,
            blocks: found.stx_blocks,
            nlink: found.stx_nlink,
            ino: found.stx_ino,
            dev: (found.stx_dev_major, found.stx_dev_minor),
            rdev: (found.stx_rdev_major, found.stx_rdev_minor),
            mtime: timestamp(found.stx_mtime),
            ctime: timestamp(found.stx_ctime),
            btime: answered.contains(StatxFlags::BTIME).then(|| timestamp(found.stx_btime)),
            mount: found.stx_mnt_id,
            attributes: Attributes {
                immutable: found.stx_attributes.contains(StatxAttributes::IMMUTABLE),
                append: found.stx_attributes.contains(StatxAttributes::APPEND),
            },
        })
    }
}

fn timestamp(time: StatxTimestamp) -> Timestamp {
    Timestamp { secs: time.tv_sec, nanos: time.tv_nsec }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_described_and_not_what_it_points_to() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        let fd = std::fs::File::open(dir.path()).unwrap();
        assert_eq!(stat(&fd, "link").unwrap().kind, FileKind::Symlink);
        assert_eq!(stat_fd(&fd).unwrap().kind, FileKind::Directory);
    }

    #[test]
    fn a_name_on_which_something_is_mounted_is_a_mount_point() {
        let root = std::fs::File::open("/").unwrap();
        assert_eq!(stat(&root, "proc").unwrap().kind, FileKind::MountPoint);
        let proc = std::fs::File::open("/proc").unwrap();
        assert_eq!(stat_fd(&proc).unwrap().kind, FileKind::Directory);
        assert_ne!(stat_fd(&proc).unwrap().mount, stat_fd(&root).unwrap().mount);
    }
}
