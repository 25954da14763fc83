//! Being root, and being somebody else for a while.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Gid, Uid};

/// An ordinary user that owns nothing: `nobody`.
pub const NOBODY: u32 = 65534;

/// Another ordinary user.
pub const SOMEBODY: u32 = 65533;

/// Whether this process may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes `command` run as the user `uid`, in the group of the same number only. This process must be root.
pub fn run_as(command: &mut Command, uid: u32) -> &mut Command {
    command.uid(uid).gid(uid)
}

/// Runs `work` on a thread of its own that is the user `uid`, in the group of the same number only. This process
/// must be root.
pub fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
            rustix::thread::set_thread_groups(&[]).unwrap();
            rustix::thread::set_thread_res_gid(group, group, group).unwrap();
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives a file or directory to the user `uid`, following no link.
pub fn give(path: impl AsRef<Path>, uid: u32) {
    let path = path.as_ref();
    std::os::unix::fs::lchown(path, Some(uid), Some(uid))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Gives a tree to the user `uid`.
pub fn give_all(path: impl AsRef<Path>, uid: u32) {
    let path = path.as_ref();
    give(path, uid);
    if std::fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            give_all(entry.unwrap().path(), uid);
        }
    }
}
