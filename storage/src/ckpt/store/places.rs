//! The state directory: what lies where, and whose it is.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cofferdam_protocol::ckpt::WorkspaceId;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::model::FsUsage;
use crate::disk::Disk;
use crate::durable;

/// `<state>/daemon.lock`: flocked by who owns the state directory; holds its process id.
const DAEMON_LOCK: &str = "daemon.lock";
/// `<state>/ckpt/collect.lock`: flocked by who reads packs of a store that may be another's.
const COLLECT_LOCK: &str = "collect.lock";

/// The directories of a store this process owns.
#[derive(Debug)]
pub(super) struct Places {
    state: PathBuf,
    store: PathBuf,
    journal: OwnedFd,
    packs: OwnedFd,
    /// Exclusively flocked while files of packs are removed.
    collect_lock: File,
    /// Keeps other daemons out.
    daemon_lock: File,
}

/// The directory of the store in a state directory.
pub(super) fn store_dir(state: &Path) -> PathBuf {
    state.join("ckpt")
}

/// The directory of the packs in a state directory.
pub(super) fn packs_dir(state: &Path) -> PathBuf {
    store_dir(state).join("packs")
}

impl Places {
    /// Makes what is missing of the state directory, and takes its lock.
    pub(super) fn open(disk: &Disk, state: &Path) -> Result<Self> {
        make_dir(disk, state)?;
        let state = std::fs::canonicalize(state).context(|| state.display().to_string())?;
        let daemon_lock = take_daemon_lock(disk, &state)?;
        let store = store_dir(&state);
        for dir in [store.clone(), packs_dir(&state), store.join("cache"), store.join("journal")] {
            make_dir(disk, &dir)?;
            must_be_ours(&dir)?;
        }
        Ok(Self {
            journal: open_dir(&store.join("journal"))?,
            packs: open_dir(&packs_dir(&state))?,
            collect_lock: open_or_make(disk, &store, COLLECT_LOCK)?,
            daemon_lock,
            state,
            store,
        })
    }

    /// The canonical path of the state directory.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// The store's directory in it.
    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    /// Where rollbacks keep their journals.
    pub(super) fn journal(&self) -> BorrowedFd<'_> {
        self.journal.as_fd()
    }

    /// Where packs are.
    pub(super) fn packs(&self) -> Result<OwnedFd> {
        self.packs.try_clone().context(|| "opening the packs".to_owned())
    }

    /// The stat cache of a workspace.
    pub(super) fn cache(&self, workspace: &WorkspaceId) -> PathBuf {
        self.store.join("cache").join(format!("{workspace}.stat"))
    }

    /// Removes a stat cache; a lost cache costs time and nothing else.
    pub(super) fn remove_cache(&self, disk: &Disk, workspace: &WorkspaceId) -> Result<()> {
        let cache = self.cache(workspace);
        match disk.unlink(CWD, &cache) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("removing {}", cache.display()), error))
            }
            _ => Ok(()),
        }
    }

    /// Removes everything among the stat caches but those of these workspaces: what a crash has left of one that was
    /// being written anew, or of a workspace that was being forgotten.
    pub(super) fn remove_other_caches<'a>(
        &self,
        disk: &Disk,
        workspaces: impl Iterator<Item = &'a WorkspaceId>,
    ) {
        let wanted: HashSet<PathBuf> = workspaces.map(|workspace| self.cache(workspace)).collect();
        let found = std::fs::read_dir(self.store.join("cache")).into_iter().flatten().flatten();
        for cache in found.map(|entry| entry.path()).filter(|cache| !wanted.contains(cache)) {
            if let Err(error) = disk.unlink(CWD, &cache) {
                tracing::warn!(%error, cache = %cache.display(), "an old stat cache stays");
            }
        }
    }

    /// Bytes of all stat caches.
    pub(super) fn cache_bytes(&self) -> Result<u64> {
        let dir = self.store.join("cache");
        let mut bytes = 0;
        for entry in std::fs::read_dir(&dir).context(|| dir.display().to_string())? {
            // One that goes meanwhile takes no space.
            bytes += entry.and_then(|entry| entry.metadata()).map(|metadata| metadata.len()).unwrap_or(0);
        }
        Ok(bytes)
    }

    /// Keeps processes that check this store out while files of packs are removed. `None` if one is at it.
    pub(super) fn exclude_checks(&self) -> Result<Option<NoChecks<'_>>> {
        match rustix::fs::flock(&self.collect_lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(NoChecks(&self.collect_lock))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Error::io("locking the packs", errno.into())),
        }
    }

    /// Space on the filesystem of the state directory.
    pub(super) fn usage(&self) -> Result<FsUsage> {
        let fs = rustix::fs::statvfs(&self.state).context(|| self.state.display().to_string())?;
        let bytes = |blocks: u64| blocks.saturating_mul(fs.f_frsize);
        Ok(FsUsage { total: bytes(fs.f_blocks), used: bytes(fs.f_blocks.saturating_sub(fs.f_bfree)) })
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has it for a moment, too.
        let _ = rustix::fs::flock(&self.daemon_lock, FlockOperation::Unlock);
    }
}

/// While it lives, no other process reads packs.
#[derive(Debug)]
pub(super) struct NoChecks<'a>(&'a File);

impl Drop for NoChecks<'_> {
    fn drop(&mut self) {
        // Closing the file would release it too.
        let _ = rustix::fs::flock(self.0, FlockOperation::Unlock);
    }
}

/// Keeps every pack of a store where it is until the file is closed, whoever owns the store.
pub(super) fn pin_packs(state: &Path) -> Result<File> {
    let path = store_dir(state).join(COLLECT_LOCK);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::InvalidPath(format!("{} holds no store", state.display())));
        }
        opened => opened.context(|| path.display().to_string())?,
    };
    rustix::fs::flock(&file, FlockOperation::LockShared).context(|| "locking the packs".to_owned())?;
    Ok(file)
}

fn take_daemon_lock(disk: &Disk, state: &Path) -> Result<File> {
    let file = open_or_make(disk, state, DAEMON_LOCK)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut pid = String::new();
            // Whatever cannot be read says nothing about the holder.
            let _ = file.take(32).read_to_string(&mut pid);
            let holder = match pid.trim().parse::<u32>() {
                Ok(pid) => format!("process {pid}"),
                Err(_) => "another process".to_owned(),
            };
            return Err(Error::Locked { dir: state.to_owned(), holder });
        }
        Err(errno) => return Err(Error::io("locking the state directory", errno.into())),
    }
    // For people only; on a full disk the lock works without.
    let pid = format!("{}\n", std::process::id());
    if let Err(error) = disk.set_len(&file, 0).and_then(|()| disk.write_all_at(&file, pid.as_bytes(), 0)) {
        tracing::warn!(%error, "the lock file does not say who holds it");
    }
    Ok(file)
}

/// Opens a file of ours for locking, and makes it if it is missing.
fn open_or_make(disk: &Disk, dir: &Path, name: &str) -> Result<File> {
    let path = dir.join(name);
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::open(&path, flags, Mode::empty());
    let opened = match open() {
        Err(Errno::NOENT) => match disk.create(CWD, &path, OFlags::RDWR, Mode::from_raw_mode(0o600)) {
            // Another process that starts was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open().map_err(io::Error::from),
            made => made,
        },
        opened => opened.map_err(io::Error::from),
    };
    Ok(opened.context(|| format!("opening {}", path.display()))?.into())
}

fn open_dir(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).context(|| format!("opening {}", path.display()))
}

fn make_dir(disk: &Disk, path: &Path) -> Result<()> {
    durable::make_dirs(disk, path, Mode::from_raw_mode(0o700))
        .context(|| format!("making {}", path.display()))
}

/// A directory that another user could change is no place for a store.
fn must_be_ours(path: &Path) -> Result<()> {
    let metadata = std::fs::symlink_metadata(path).context(|| path.display().to_string())?;
    let ours = metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o022 == 0;
    match ours {
        true => Ok(()),
        false => Err(Error::InvalidPath(format!(
            "{} must be a directory of this user's that nobody else can write to",
            path.display()
        ))),
    }
}
