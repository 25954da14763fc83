//! The extended attributes that belong to a file's content: the user's own, its ACLs, its capabilities.
//!
//! Others are left out: `security.selinux` and its like say where a file lies, not what it is, and `trusted.*` is
//! bookkeeping of the system.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::ckpt::format::Xattrs;

/// The attributes of an open file, sorted by name. Those that this peer may not read are left out; an error if there
/// are others that cannot be read, or too many to be listed.
pub(super) fn of_open(file: impl AsFd) -> Result<Xattrs, Errno> {
    collect(
        |buffer| rustix::fs::flistxattr(&file, buffer),
        |name, buffer| rustix::fs::fgetxattr(&file, name, buffer),
    )
}

/// The same of what an `O_PATH` descriptor holds.
pub(super) fn of_held(file: BorrowedFd<'_>) -> Result<Xattrs, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    collect(
        |buffer| rustix::fs::listxattr(&path, buffer),
        |name, buffer| rustix::fs::getxattr(&path, name, buffer),
    )
}

fn collect(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&CStr, &mut [u8]) -> Result<usize, Errno>,
) -> Result<Xattrs, Errno> {
    let names = match in_buffer(list) {
        Err(Errno::NOTSUP | Errno::NOSYS | Errno::ACCESS | Errno::PERM) => return Ok(Xattrs::default()),
        names => names?,
    };
    let mut found = Vec::new();
    for name in names.split_inclusive(|b| *b == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if !is_kept(name.to_bytes()) {
            continue;
        }
        match in_buffer(|buffer| get(name, buffer)) {
            Ok(value) => found.push((Box::from(name.to_bytes()), Box::from(value))),
            // Gone by now, listed for others only, or not for this peer.
            Err(Errno::NODATA | Errno::NOTSUP | Errno::ACCESS | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
    }
    found.sort_unstable();
    found.dedup_by(|one, other| one.0 == other.0);
    Ok(found.into())
}

fn in_buffer(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    // Most files have no attributes or a few short ones.
    let mut small = [0; 512];
    match read(&mut small) {
        Ok(len) => Ok(small[..len].to_vec()),
        Err(Errno::RANGE) => {
            // No list and no value is longer (XATTR_LIST_MAX, XATTR_SIZE_MAX).
            let mut large = vec![0; 65536];
            let len = read(&mut large)?;
            large.truncate(len);
            Ok(large)
        }
        Err(errno) => Err(errno),
    }
}

fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_") || name == b"security.capability"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(bytes: &[u8], buffer: &mut [u8]) -> Result<usize, Errno> {
        buffer.get_mut(..bytes.len()).ok_or(Errno::RANGE)?.copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn names(buffer: &mut [u8]) -> Result<usize, Errno> {
        copy(b"user.b\0security.selinux\0user.a\0", buffer)
    }

    #[test]
    fn what_fails_is_told_from_what_is_not_there_or_not_for_this_peer() {
        let found = |errno| {
            collect(names, |name, buffer| if name == c"user.b" { Err(errno) } else { copy(b"1", buffer) })
        };
        let only_a: Xattrs = Box::new([(b"user.a"[..].into(), b"1"[..].into())]);
        for errno in [Errno::NODATA, Errno::ACCESS, Errno::PERM] {
            assert_eq!(found(errno).unwrap(), only_a);
        }
        for errno in [Errno::IO, Errno::NOMEM] {
            assert_eq!(found(errno), Err(errno));
        }
        let unlisted = |errno| collect(|_| Err(errno), |_, _| Err(Errno::NODATA));
        assert_eq!(unlisted(Errno::NOTSUP).unwrap(), Xattrs::default());
        assert_eq!(unlisted(Errno::TOOBIG), Err(Errno::TOOBIG));
    }

    #[test]
    fn long_values_are_read_whole() {
        let long = vec![7; 60_000];
        let found = collect(names, |_, buffer| copy(&long, buffer)).unwrap();
        assert!(found.len() == 2 && found.iter().all(|(_, value)| **value == *long));
    }
}
