//! Is it still the same file?

use std::io;
use std::os::fd::AsFd;

use super::stat::{Stat, stat_fd};
use crate::ckpt::format::{Encoder, Timestamp};
use crate::sys;

/// What tells a file from every other that ever had its name: the filesystem's id with its `name_to_handle_at`
/// handle, or with inode number and birth time where the filesystem gives no handles. Stable over renames,
/// remounts and restarts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FileIdentity(Box<[u8]>);

impl FileIdentity {
    /// The identity of an open (or `O_PATH`) descriptor.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        let mut out = Encoder::new();
        out.uint(rustix::fs::fstatfs(&file)?.f_type as u64);
        let stat = stat_fd(&file)?;
        let id = rustix::fs::fstatvfs(&file)?.f_fsid;
        // Some filesystems (xfs) give their device's number for an id, and that changes when disks are found in
        // another order.
        out.uint(if id == device_number(&stat) { 0 } else { id });
        match sys::file_handle(&file)? {
            Some((kind, handle)) => out.byte(1).int(kind.into()).bytes(&handle),
            None => {
                let Timestamp { secs, nanos } = stat.btime.unwrap_or_default();
                out.byte(2).uint(stat.ino).int(secs).uint(nanos.into())
            }
        };
        Ok(Self(out.finish().into()))
    }

    /// As it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From where it was stored.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

/// As the kernel folds a device's number into 32 bits.
fn device_number(stat: &Stat) -> u64 {
    let (major, minor) = stat.dev;
    ((minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)).into()
}

impl std::fmt::Debug for FileIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a user moves and removes directories")]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_moved_directory_stays_the_same_and_one_in_its_place_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("there"));
        std::fs::create_dir(&here).unwrap();
        let before = FileIdentity::of(File::open(&here).unwrap()).unwrap();
        std::fs::rename(&here, &there).unwrap();
        assert_eq!(FileIdentity::of(File::open(&there).unwrap()).unwrap(), before);
        std::fs::remove_dir(&there).unwrap();
        std::fs::create_dir(&here).unwrap();
        assert_ne!(FileIdentity::of(File::open(&here).unwrap()).unwrap(), before);
        assert_eq!(FileIdentity::from_bytes(before.as_bytes()), before);
    }

    #[test]
    fn files_of_a_filesystem_without_handles_are_told_apart_too() {
        let of = |path| FileIdentity::of(File::open(path).unwrap()).unwrap();
        assert_eq!(of("/proc/sys"), of("/proc/sys"));
        assert_ne!(of("/proc/sys"), of("/proc/sys/kernel"));
    }
}
