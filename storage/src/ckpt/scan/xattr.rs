//! The extended attributes that belong to a file's content: the user's own, its ACLs, its capabilities.
//!
//! Others are left out: `security.selinux` and its like say where a file lies, not what it is, and `trusted.*` is
//! bookkeeping of the system.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::ckpt::format::Xattrs;

/// The attributes of an open file, sorted by name; those that may not be read are left out.
pub(super) fn of_open(file: impl AsFd) -> Xattrs {
    collect(
        |buffer| rustix::fs::flistxattr(&file, buffer),
        |name, buffer| rustix::fs::fgetxattr(&file, name, buffer),
    )
}

/// The attributes of what an `O_PATH` descriptor holds.
pub(super) fn of_held(file: BorrowedFd<'_>) -> Xattrs {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    collect(
        |buffer| rustix::fs::listxattr(&path, buffer),
        |name, buffer| rustix::fs::getxattr(&path, name, buffer),
    )
}

fn collect(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    get: impl Fn(&CStr, &mut [u8]) -> Result<usize, Errno>,
) -> Xattrs {
    // Most files have none or a few short ones.
    let mut small = [0; 512];
    let large;
    let names = match list(&mut small) {
        Ok(len) => &small[..len],
        Err(Errno::RANGE) => match in_large_buffer(|buffer| list(buffer)) {
            Some(names) => {
                large = names;
                &large[..]
            }
            None => return Xattrs::default(),
        },
        Err(_) => return Xattrs::default(),
    };
    let mut found = Vec::new();
    for name in names.split_inclusive(|b| *b == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if !is_kept(name.to_bytes()) {
            continue;
        }
        let mut small = [0; 512];
        let value = match get(name, &mut small) {
            Ok(len) => Some(small[..len].to_vec()),
            Err(Errno::RANGE) => in_large_buffer(|buffer| get(name, buffer)),
            Err(_) => None,
        };
        if let Some(value) = value {
            found.push((Box::from(name.to_bytes()), Box::from(value)));
        }
    }
    found.sort_unstable();
    found.dedup_by(|one, other| one.0 == other.0);
    found.into()
}

/// No list and no value is longer (XATTR_LIST_MAX, XATTR_SIZE_MAX).
fn in_large_buffer(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 65536];
    let len = read(&mut buffer).ok()?;
    buffer.truncate(len);
    Some(buffer)
}

fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_") || name == b"security.capability"
}
