//! One look at a directory: the sessions in it, each with one stat, none opened.

use std::mem::MaybeUninit;

use cofferdam_protocol::session::SessionId;
use rustix::fs::{Access, AtFlags, Mode, RawDir, Stat};

use super::Error;
use super::dir::{Dir, irregular, modified_ms, session_of};

/// Gives every session whose file is regular and may be read, with the file's time in milliseconds since 1970.
pub(super) fn sessions(dir: &Dir, mut found: impl FnMut(SessionId, u64)) -> Result<(), Error> {
    let user = rustix::process::geteuid().as_raw();
    names(dir, |name| {
        let Some(id) = session_of(name.to_bytes()) else { return };
        // What is gone, or cannot even be looked at, is no candidate.
        let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        if irregular(&stat).is_none() && (is_own(&stat, user) || may_read(dir, name)) {
            found(id, modified_ms(&stat));
        }
    })
}

/// Gives every name in a directory, in no order. One that was removed has none.
pub(super) fn names(dir: &Dir, mut found: impl FnMut(&std::ffi::CStr)) -> Result<(), Error> {
    let refused = |error| Error::io("list session directory", dir.path(), error);
    let listed = match dir.for_reading() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(refused)?,
    };
    let mut buffer = vec![MaybeUninit::uninit(); 256 << 10];
    let mut listing = RawDir::new(listed, &mut buffer);
    while let Some(entry) = listing.next() {
        found(entry.map_err(|errno| refused(errno.into()))?.file_name());
    }
    Ok(())
}

/// Whether a file is the user's, and its mode lets the owner read it: then nothing more needs to be asked.
fn is_own(stat: &Stat, user: u32) -> bool {
    stat.st_uid == user && Mode::from_raw_mode(stat.st_mode).contains(Mode::RUSR)
}

fn may_read(dir: &Dir, name: &std::ffi::CStr) -> bool {
    rustix::fs::accessat(dir, name, Access::READ_OK, AtFlags::EACCESS).is_ok()
}
