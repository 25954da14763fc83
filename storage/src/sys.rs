//! The few system calls that no safe crate has. The only `unsafe` of the workspace.
#![allow(unsafe_code, reason = "each block says why it is sound")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The filesystem's own handle of an open (or `O_PATH`) descriptor: its type and its bytes. `Ok(None)` where the
/// filesystem or the sandbox gives none.
pub fn file_handle(file: impl AsFd) -> io::Result<Option<(i32, Vec<u8>)>> {
    const CAPACITY: usize = libc::MAX_HANDLE_SZ as usize;
    #[repr(C)]
    struct Handle {
        head: libc::file_handle,
        bytes: [u8; CAPACITY],
    }
    let mut handle = Handle {
        head: libc::file_handle { handle_bytes: CAPACITY as u32, handle_type: 0, f_handle: [] },
        bytes: [0; CAPACITY],
    };
    let mut mount: libc::c_int = 0;
    // SAFETY: the handle has room for the `handle_bytes` it announces behind its head (`repr(C)`, and the head ends
    // in an empty array of bytes), the path is a NUL-terminated constant, and all three outlive the call.
    let done = unsafe {
        libc::name_to_handle_at(
            file.as_fd().as_raw_fd(),
            c"".as_ptr(),
            (&raw mut handle).cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    if done == 0 {
        let len = (handle.head.handle_bytes as usize).min(CAPACITY);
        return Ok(Some((handle.head.handle_type, handle.bytes[..len].to_vec())));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EPERM | libc::EOVERFLOW | libc::EINVAL) => Ok(None),
        _ => Err(error),
    }
}

/// The supplementary groups of the process at the other end of a unix socket, as they were when it connected.
pub fn socket_peer_groups(socket: impl AsFd) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 32];
    loop {
        let mut bytes = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: the buffer has the announced number of bytes and outlives the call.
        let done = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let count = bytes as usize / size_of::<libc::gid_t>();
        if done == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ERANGE) || count <= groups.len() {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

/// Lets a program begin as the leader of a session and of a process group of its own, without a terminal: its process id
/// is the group's, and whatever it starts can be reached through the group. It hears every signal, whatever the thread
/// that starts it has blocked.
pub fn in_new_session(command: &mut Command) -> &mut Command {
    let begin = || {
        let mut none = MaybeUninit::uninit();
        // SAFETY: the first call initialises the set that the second one reads; nothing is written where null stands.
        let unblocked = unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
        };
        match unblocked {
            0 => rustix::process::setsid().map(drop).map_err(io::Error::from),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    };
    // SAFETY: between fork and exec the closure only makes calls that are async-signal-safe, and turns their errors into
    // another form, which allocates nothing.
    unsafe { command.pre_exec(begin) }
}

/// Which side of a fork this is.
#[derive(Debug)]
pub enum Fork {
    /// The one that forked, and its child.
    Parent(rustix::process::Pid),
    /// The new one.
    Child,
}

/// Makes a copy of this process, which must have one thread only: no lock of a thread that is not copied can stay taken.
pub fn fork() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be forked"));
    }
    // SAFETY: there is no other thread, so the child may do whatever its parent may.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        child => match rustix::process::Pid::from_raw(child).filter(|_| child > 0) {
            Some(child) => Ok(Fork::Parent(child)),
            None => Err(io::Error::last_os_error()),
        },
    }
}

/// Leaves the namespaces that are named for new ones; descriptors stay shared as they are.
pub fn unshare(namespaces: rustix::thread::UnshareFlags) -> io::Result<()> {
    let namespaces = namespaces - rustix::thread::UnshareFlags::FILES;
    // SAFETY: only a table of descriptors that is no longer shared could surprise another thread, and that flag is not there.
    unsafe { rustix::thread::unshare_unsafe(namespaces) }.map_err(io::Error::from)
}

/// Adds attributes (`MOUNT_ATTR_…`) to the mount at the root of what `mount` holds, and to all below it.
pub fn add_mount_attributes(mount: impl AsFd, attributes: u64) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path is a NUL-terminated constant, and the kernel reads as many bytes of the struct as it is told.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attr,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets no descriptor but standard input, output and error survive the start of another program.
pub fn close_others_on_exec() -> io::Result<()> {
    // SAFETY: descriptors stay open in this program; what changes is a flag of theirs.
    let done = unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether somebody could be changing a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Nobody has it open for writing or mapped writable.
    None,
    /// Somebody has.
    Some,
    /// The filesystem, or not being the owner, keeps us from knowing.
    Unknown,
}

/// What statfs calls an overlay.
pub const OVERLAYFS: u64 = 0x794c_7630;

/// Whether a file is on an overlay filesystem.
pub fn is_overlay(file: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(file)?.f_type as u64 == OVERLAYFS)
}

/// As linux/fcntl.h has it; the crate `libc` does not.
const F_SETSIG: libc::c_int = 10;

/// Asks by taking a read lease, which is given back at once. `file` must be open for reading only.
pub fn writers(file: impl AsFd) -> Writers {
    let fd = file.as_fd().as_raw_fd();
    // Whoever opens the file for writing in the instant the lease is held makes the kernel send us a signal: SIGIO,
    // which ends a process, unless another is chosen. SIGURG does nothing unless somebody waits for it.
    // SAFETY: fcntl with an integer argument touches no memory; a bad descriptor is only an error.
    if unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) } != 0 {
        return Writers::Unknown;
    }
    // SAFETY: as above.
    if unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) } == 0 {
        // SAFETY: as above. It fails only if the lease was broken already, which the caller sees in the file's times.
        unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
        // There a mapping holds the file of a layer below, of which the lease knows nothing.
        return if matches!(is_overlay(&file), Ok(false)) { Writers::None } else { Writers::Unknown };
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Writers::Some,
        _ => Writers::Unknown,
    }
}

/// Whether a file's bytes lie on a disk, as far as its filesystem says where they lie: one in memory does not, and a
/// layered one says what the layer below says.
pub fn is_on_disk(file: impl AsFd) -> bool {
    /// As linux/fiemap.h has it, without room for extents: the kernel then only counts them.
    #[repr(C)]
    struct Fiemap {
        start: u64,
        length: u64,
        flags: u32,
        mapped_extents: u32,
        extent_count: u32,
        reserved: u32,
    }
    const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
    let mut map =
        Fiemap { start: 0, length: u64::MAX, flags: 0, mapped_extents: 0, extent_count: 0, reserved: 0 };
    // SAFETY: the kernel reads and writes the 32 bytes of the head, and no extents behind it, since `extent_count` is 0.
    unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) == 0 }
}

/// What tests need of a program that maps its files, or starts others.
#[cfg(test)]
pub(crate) mod testing {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, AsRawFd};

    /// Keeps every signal from this thread, and from the programs it starts.
    pub(crate) fn block_every_signal() {
        let mut all = MaybeUninit::uninit();
        // SAFETY: the first call initialises the set that the second one reads; nothing is written where null stands.
        let blocked = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut())
        };
        assert_eq!(blocked, 0);
    }

    /// What a file server does that lets a client write for itself.
    pub(crate) fn take_write_lease(file: impl AsFd) -> bool {
        let fd = file.as_fd().as_raw_fd();
        // SAFETY: fcntl with an integer argument touches no memory.
        unsafe {
            libc::fcntl(fd, super::F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) == 0
        }
    }

    /// Whether somebody else waits for the file.
    pub(crate) fn is_asked_back(file: impl AsFd) -> bool {
        // SAFETY: as above.
        unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_GETLEASE) != libc::F_WRLCK }
    }

    /// Lets others have the file.
    pub(crate) fn give_lease_back(file: impl AsFd) {
        // SAFETY: as above.
        unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }

    /// The first page of a file, shared and writable.
    pub(crate) struct SharedMapping(*mut u8);

    const PAGE: usize = 4096;

    impl SharedMapping {
        /// Maps a file that is at least a page long and open for reading and writing.
        pub(crate) fn new(file: impl AsFd) -> Self {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let fd = file.as_fd().as_raw_fd();
            // SAFETY: a new mapping at an address the kernel chooses overlaps nothing.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, libc::MAP_SHARED, fd, 0) };
            assert_ne!(at, libc::MAP_FAILED);
            Self(at.cast())
        }

        /// Loads one byte.
        pub(crate) fn load(&self, at: usize) -> u8 {
            assert!(at < PAGE);
            // SAFETY: within the mapping, which lives as long as self.
            unsafe { self.0.add(at).read_volatile() }
        }

        /// Stores one byte.
        pub(crate) fn store(&self, at: usize, byte: u8) {
            assert!(at < PAGE);
            // SAFETY: within the mapping, which lives as long as self.
            unsafe { self.0.add(at).write_volatile(byte) };
        }
    }

    impl Drop for SharedMapping {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours, and nothing points into it any more.
            unsafe { libc::munmap(self.0.cast(), PAGE) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_writer_is_noticed_while_it_has_the_file_open_or_mapped() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, &[0; 4096]).unwrap();
        let reader = File::open(file.path()).unwrap();
        assert_eq!(writers(&reader), Writers::Some);
        if is_overlay(&reader).unwrap() {
            drop(file.into_temp_path());
            assert_eq!(writers(&reader), Writers::Unknown, "an overlay hides mappings");
            return;
        }
        let mapping = testing::SharedMapping::new(&file);
        let path = file.into_temp_path();
        assert_eq!(writers(&reader), Writers::Some);
        drop(mapping);
        assert_eq!(writers(&reader), Writers::None);
        assert_eq!(writers(&reader), Writers::None, "the lease was given back");
        File::options().write(true).open(&path).unwrap();
    }

    #[test]
    fn a_program_of_a_new_session_leads_it_and_hears_every_signal() {
        let mut command = Command::new("cat");
        command.args(["/proc/self/stat", "/proc/self/status"]);
        // A thread that hears no signal is what starts the program.
        let begun = std::thread::spawn(move || {
            testing::block_every_signal();
            in_new_session(&mut command).output().unwrap()
        });
        let text = String::from_utf8(begun.join().unwrap().stdout).unwrap();
        let stat: Vec<&str> = text.lines().next().unwrap().split(' ').collect();
        assert_eq!((stat[4], stat[5]), (stat[0], stat[0]), "group and session are its own");
        assert!(text.contains("\nSigBlk:\t0000000000000000\n"), "{text}");
    }

    #[test]
    fn what_is_in_memory_is_not_on_disk() {
        let Ok(file) = tempfile::tempfile_in("/dev/shm") else {
            cofferdam_tests::skipped(format_args!("no /dev/shm"));
            return;
        };
        assert!(!is_on_disk(file));
    }

    #[test]
    fn of_somebody_elses_file_the_writers_are_not_known() {
        if rustix::process::geteuid().is_root() {
            cofferdam_tests::skipped(format_args!("root knows"));
            return;
        }
        assert_eq!(writers(File::open("/etc/passwd").unwrap()), Writers::Unknown);
    }
}
