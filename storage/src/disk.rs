//! Every system call by which this crate changes a disk, each behind the fault hook.
//!
//! Nothing else in the workspace writes, renames or removes, or syncs what it wrote: so a test can fail or kill
//! operation N for every N, and a reader finds in one file what can happen to a user's data.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{Advice, AtFlags, FallocateFlags, Mode, OFlags, RenameFlags, Timestamps, XattrFlags};
use rustix::path::Arg;

#[cfg(test)]
pub(crate) mod testing;

/// What is about to be done to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Make and open a new file.
    Create,
    /// Write bytes.
    Write,
    /// Lengthen a file by a hole, or shorten it.
    Truncate,
    /// fsync one file or directory.
    Fsync,
    /// syncfs a whole filesystem.
    Syncfs,
    /// Begin to write a part of a file back to its disk.
    Writeback,
    /// Move a name; with or without replacing.
    Rename,
    /// Exchange two names.
    Exchange,
    /// Remove a file's name.
    Unlink,
    /// Remove an empty directory.
    Rmdir,
    /// Make a directory.
    Mkdir,
    /// Make another name for a file.
    Link,
    /// Make a symbolic link.
    Symlink,
    /// Make a FIFO, socket or device node.
    Mknod,
    /// Change mode, owner, times or extended attributes.
    SetMeta,
    /// Commit a database transaction.
    Commit,
}

/// Asked before every operation; an error takes the operation's place. A hook may also end the process.
pub trait FaultHook: Send + Sync + fmt::Debug {
    /// Called before each operation on the disk.
    fn before(&self, op: Op) -> io::Result<()>;
    /// Called at each named step of a multi-step change, such as `rollback.staged`.
    fn step(&self, name: &str) -> io::Result<()>;
}

#[derive(Debug)]
struct NoFaults;

impl FaultHook for NoFaults {
    fn before(&self, _: Op) -> io::Result<()> {
        Ok(())
    }
    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// The way to the disk. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Disk {
    hook: Arc<dyn FaultHook>,
}

impl Default for Disk {
    fn default() -> Self {
        Self::with_faults(Arc::new(NoFaults))
    }
}

impl Disk {
    /// A disk whose operations `hook` may fail.
    pub fn with_faults(hook: Arc<dyn FaultHook>) -> Self {
        Self { hook }
    }

    /// A named step of a multi-step change has been reached.
    pub fn step(&self, name: &str) -> io::Result<()> {
        self.hook.step(name)
    }

    /// A database transaction is about to be committed.
    pub fn before_commit(&self) -> io::Result<()> {
        self.hook.before(Op::Commit)
    }

    /// Opens `name` in `dir` with `O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC` besides `flags`.
    pub fn create(&self, dir: impl AsFd, name: impl Arg, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        self.hook.before(Op::Create)?;
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(dir, name, flags, mode)?)
    }

    /// Writes all of `bytes` at `offset`.
    pub fn write_all_at(&self, file: &std::fs::File, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.hook.before(Op::Write)?;
        file.write_all_at(bytes, offset)
    }

    /// Sets a file's length.
    pub fn set_len(&self, file: impl AsFd, len: u64) -> io::Result<()> {
        self.hook.before(Op::Truncate)?;
        Ok(rustix::fs::ftruncate(file, len)?)
    }

    /// Gives a file so many bytes of the disk, unwritten; `Unsupported` where the filesystem cannot.
    pub fn allocate(&self, file: impl AsFd, len: u64) -> io::Result<()> {
        self.hook.before(Op::Write)?;
        Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len)?)
    }

    /// Makes a file's content and metadata, or a directory's names, durable.
    pub fn fsync(&self, file: impl AsFd) -> io::Result<()> {
        self.hook.before(Op::Fsync)?;
        Ok(rustix::fs::fsync(file)?)
    }

    /// Has the kernel begin to write what a part of a file holds back to the disk, and waits for none of it: an fsync later
    /// has so much less to do. Of what is on the disk already memory may be given back.
    pub fn begin_writeback(&self, file: impl AsFd, offset: u64, len: NonZeroU64) -> io::Result<()> {
        self.hook.before(Op::Writeback)?;
        Ok(rustix::fs::fadvise(file, offset, Some(len), Advice::DontNeed)?)
    }

    /// Makes everything written to the filesystem that holds `file` durable.
    pub fn syncfs(&self, file: impl AsFd) -> io::Result<()> {
        self.hook.before(Op::Syncfs)?;
        Ok(rustix::fs::syncfs(file)?)
    }

    /// Moves a name over whatever stands at the target.
    pub fn rename(&self, from: (impl AsFd, impl Arg), to: (impl AsFd, impl Arg)) -> io::Result<()> {
        self.rename_with(Op::Rename, from, to, RenameFlags::empty())
    }

    /// Moves a name; `AlreadyExists` if something stands at the target.
    pub fn rename_exclusive(&self, from: (impl AsFd, impl Arg), to: (impl AsFd, impl Arg)) -> io::Result<()> {
        self.rename_with(Op::Rename, from, to, RenameFlags::NOREPLACE)
    }

    /// Exchanges two names in one step.
    pub fn exchange(&self, one: (impl AsFd, impl Arg), other: (impl AsFd, impl Arg)) -> io::Result<()> {
        self.rename_with(Op::Exchange, one, other, RenameFlags::EXCHANGE)
    }

    #[allow(clippy::disallowed_methods, reason = "the one module that renames")]
    fn rename_with(
        &self,
        op: Op,
        from: (impl AsFd, impl Arg),
        to: (impl AsFd, impl Arg),
        flags: RenameFlags,
    ) -> io::Result<()> {
        self.hook.before(op)?;
        Ok(rustix::fs::renameat_with(from.0, from.1, to.0, to.1, flags)?)
    }

    /// Removes a name that is not a directory's.
    #[allow(clippy::disallowed_methods, reason = "the one module that unlinks")]
    pub fn unlink(&self, dir: impl AsFd, name: impl Arg) -> io::Result<()> {
        self.hook.before(Op::Unlink)?;
        Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    #[allow(clippy::disallowed_methods, reason = "the one module that unlinks")]
    pub fn rmdir(&self, dir: impl AsFd, name: impl Arg) -> io::Result<()> {
        self.hook.before(Op::Rmdir)?;
        Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes a directory.
    pub fn mkdir(&self, dir: impl AsFd, name: impl Arg, mode: Mode) -> io::Result<()> {
        self.hook.before(Op::Mkdir)?;
        Ok(rustix::fs::mkdirat(dir, name, mode)?)
    }

    /// Makes another name for a file, following no link.
    pub fn link(&self, from: (impl AsFd, impl Arg), to: (impl AsFd, impl Arg)) -> io::Result<()> {
        self.hook.before(Op::Link)?;
        Ok(rustix::fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?)
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, target: impl Arg, dir: impl AsFd, name: impl Arg) -> io::Result<()> {
        self.hook.before(Op::Symlink)?;
        Ok(rustix::fs::symlinkat(target, dir, name)?)
    }

    /// Makes a FIFO, socket or device node.
    pub fn mknod(
        &self,
        dir: impl AsFd,
        name: impl Arg,
        kind: rustix::fs::FileType,
        mode: Mode,
        device: rustix::fs::Dev,
    ) -> io::Result<()> {
        self.hook.before(Op::Mknod)?;
        Ok(rustix::fs::mknodat(dir, name, kind, mode, device)?)
    }

    /// Sets permission bits through an open (not `O_PATH`) descriptor.
    pub fn fchmod(&self, file: impl AsFd, mode: Mode) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::fchmod(file, mode)?)
    }

    /// Sets permission bits of what an `O_PATH` descriptor holds.
    pub fn chmod_held(&self, file: impl AsFd, mode: Mode) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::chmod(held(file), mode)?)
    }

    /// Sets the owner of what a descriptor holds, `O_PATH` or not; of a link itself, not of what it points to.
    pub fn chown_held(&self, file: impl AsFd, uid: u32, gid: u32) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
        Ok(rustix::fs::chownat(file, c"", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?)
    }

    /// Has an overlay filesystem copy up a held regular file with all its content. That may move its times.
    pub fn copy_up(&self, file: impl AsFd) -> io::Result<()> {
        self.hook.before(Op::Write)?;
        rustix::fs::open(held(file), OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        Ok(())
    }

    /// Sets the times of what a descriptor holds, `O_PATH` or not; of a link itself, not of what it points to.
    pub fn set_times_held(&self, file: impl AsFd, times: &Timestamps) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::utimensat(file, c"", times, AtFlags::EMPTY_PATH)?)
    }

    /// Sets the times of a file through an open (not `O_PATH`) descriptor: for the kernel less to do than the former.
    pub fn futimens(&self, file: impl AsFd, times: &Timestamps) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::futimens(file, times)?)
    }

    /// Sets an extended attribute through an open descriptor.
    pub fn fsetxattr(&self, file: impl AsFd, name: &CStr, value: &[u8]) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())?)
    }

    /// Removes an extended attribute through an open descriptor.
    pub fn fremovexattr(&self, file: impl AsFd, name: &CStr) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::fremovexattr(file, name)?)
    }

    /// Sets an extended attribute of what an `O_PATH` descriptor holds.
    pub fn setxattr_held(&self, file: impl AsFd, name: &CStr, value: &[u8]) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::setxattr(held(file), name, value, XattrFlags::empty())?)
    }

    /// Removes an extended attribute of what an `O_PATH` descriptor holds.
    pub fn removexattr_held(&self, file: impl AsFd, name: &CStr) -> io::Result<()> {
        self.hook.before(Op::SetMeta)?;
        Ok(rustix::fs::removexattr(held(file), name)?)
    }
}

/// The path that leads to what a descriptor holds and no further, for calls that take no `O_PATH` descriptor.
fn held(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}
