//! What a host keeps of a task beside the core's record, below the state directory: a directory that its agent's processes
//! share, with a copy of the conversation in it, and beside it what must not be taken back with that.
//!
//! ```text
//! agents/<task>/                     0700
//! agents/<task>/conversation.json    the conversation as it was before the turn that runs, or after the last one
//! turns/<task>.json                  the turns there were
//! rewinds/<task>.json                a rewind under way
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::TaskId;
use cofferdam_protocol::session::limits::SESSION_FILE;
use rustix::fs::{CWD, Mode};

use crate::disk::Disk;
use crate::durable::{make_dirs, read, write_atomic};
use crate::fs::{open_for_reading, remove_tree};
use crate::path::Name;

const DIR_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The name of a conversation's copy.
const CONVERSATION: &str = "conversation.json";
/// What the names of files beside the directory end with.
const ENDING: &str = ".json";

/// A file that is kept of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFile {
    /// The copy of its conversation, in its directory.
    Conversation,
    /// The turns there were.
    Turns,
    /// A rewind under way.
    Rewind,
}

impl AgentFile {
    /// The most bytes it can have.
    fn limit(self) -> u64 {
        match self {
            Self::Conversation => SESSION_FILE,
            Self::Turns | Self::Rewind => 8 << 20,
        }
    }
}

/// The directories, and what is beside them. All of it blocks.
#[derive(Clone, Debug)]
pub struct AgentDirs {
    disk: Disk,
    above: PathBuf,
}

impl AgentDirs {
    /// Those below a directory, which is made when something is written.
    pub fn new(disk: Disk, above: PathBuf) -> Self {
        Self { disk, above }
    }

    /// Where a task's directory is, or will be.
    pub fn dir(&self, task: &TaskId) -> PathBuf {
        self.agents().join(task.as_str())
    }

    /// Makes a task's directory, if it is missing.
    pub fn make(&self, task: &TaskId) -> io::Result<()> {
        make_dirs(&self.disk, &self.dir(task), DIR_MODE)
    }

    /// What a file holds; nothing if it is not there.
    pub fn read(&self, task: &TaskId, file: AgentFile) -> io::Result<Option<Vec<u8>>> {
        let (dir, name) = self.place(task, file)?;
        match open(&dir)? {
            Some(dir) => read(dir, &name, file.limit()),
            None => Ok(None),
        }
    }

    /// Replaces a file, durably. One writer of a task's files at a time.
    pub fn write(&self, task: &TaskId, file: AgentFile, bytes: &[u8]) -> io::Result<()> {
        let (dir, name) = self.place(task, file)?;
        make_dirs(&self.disk, &dir, DIR_MODE)?;
        write_atomic(&self.disk, File::open(&dir)?, &name, bytes, FILE_MODE)
    }

    /// Removes a file, durably, if it is there.
    pub fn remove_file(&self, task: &TaskId, file: AgentFile) -> io::Result<()> {
        let (dir, name) = self.place(task, file)?;
        let Some(dir) = open(&dir)? else { return Ok(()) };
        match self.disk.unlink(&dir, name.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed?,
        }
        self.disk.fsync(dir)
    }

    /// Removes all that is kept of a task. After an error, another call goes on with what is left.
    pub fn remove(&self, task: &TaskId) -> io::Result<()> {
        if let Some(dir) = open(&self.agents())? {
            let name = Name::new(task.as_str().as_bytes()).map_err(io::Error::other)?;
            match remove_tree(&self.disk, &dir, &name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        self.remove_file(task, AgentFile::Rewind)?;
        // Last: as long as it is there, what else there is can be found.
        self.remove_file(task, AgentFile::Turns)
    }

    /// The tasks of which something is kept, sorted. What has a name that no task can have is left alone.
    pub fn tasks(&self) -> io::Result<Vec<TaskId>> {
        let mut tasks = Vec::new();
        for (dir, ending) in [("agents", ""), ("turns", ENDING), ("rewinds", ENDING)] {
            let entries = match std::fs::read_dir(self.above.join(dir)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let name = entry?.file_name().into_string().unwrap_or_default();
                tasks.extend(name.strip_suffix(ending).and_then(|name| TaskId::new(name).ok()));
            }
        }
        tasks.sort_unstable();
        tasks.dedup();
        Ok(tasks)
    }

    /// A named step of a change has been reached.
    pub fn step(&self, name: &str) -> io::Result<()> {
        self.disk.step(name)
    }

    fn agents(&self) -> PathBuf {
        self.above.join("agents")
    }

    /// The directory that a file is in, and its name there.
    fn place(&self, task: &TaskId, file: AgentFile) -> io::Result<(PathBuf, Name)> {
        let beside = || OsString::from(format!("{task}{ENDING}"));
        let (dir, name) = match file {
            AgentFile::Conversation => (self.dir(task), CONVERSATION.into()),
            AgentFile::Turns => (self.above.join("turns"), beside()),
            AgentFile::Rewind => (self.above.join("rewinds"), beside()),
        };
        Ok((dir, Name::new(name.into_vec()).map_err(io::Error::other)?))
    }
}

/// Opens a directory, if it is there.
fn open(dir: &Path) -> io::Result<Option<std::os::fd::OwnedFd>> {
    match open_for_reading(CWD, dir) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn task(id: &str) -> TaskId {
        TaskId::new(id).unwrap()
    }

    fn dirs() -> (tempfile::TempDir, AgentDirs) {
        let temp = tempfile::tempdir().unwrap();
        let dirs = AgentDirs::new(Disk::default(), temp.path().join("pod"));
        (temp, dirs)
    }

    const FILES: [AgentFile; 3] = [AgentFile::Conversation, AgentFile::Turns, AgentFile::Rewind];

    #[test]
    fn what_is_written_is_read_again_and_each_task_has_its_own() {
        let (_keep, dirs) = dirs();
        for file in FILES {
            assert_eq!(dirs.read(&task("a"), file).unwrap(), None);
            dirs.remove_file(&task("a"), file).unwrap();
            dirs.write(&task("a"), file, format!("{file:?}").as_bytes()).unwrap();
            dirs.write(&task("b"), file, b"another").unwrap();
        }
        for file in FILES {
            assert_eq!(dirs.read(&task("a"), file).unwrap().unwrap(), format!("{file:?}").as_bytes());
            dirs.remove_file(&task("b"), file).unwrap();
            assert_eq!(dirs.read(&task("b"), file).unwrap(), None);
        }
        let mode = std::fs::metadata(dirs.dir(&task("a"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn everything_of_a_task_goes_and_nothing_of_another() {
        let (_keep, dirs) = dirs();
        // Names that could be taken for one another's files.
        for id in ["a", "a.json", "b"] {
            dirs.make(&task(id)).unwrap();
            FILES.iter().for_each(|file| dirs.write(&task(id), *file, id.as_bytes()).unwrap());
            std::fs::create_dir_all(dirs.dir(&task(id)).join("home/.config")).unwrap();
        }
        assert_eq!(dirs.tasks().unwrap(), ["a", "a.json", "b"].map(task));
        dirs.remove(&task("a")).unwrap();
        dirs.remove(&task("a")).unwrap();
        assert_eq!(dirs.tasks().unwrap(), ["a.json", "b"].map(task));
        assert!(dirs.dir(&task("b")).join("home/.config").is_dir());
        assert_eq!(dirs.read(&task("a.json"), AgentFile::Turns).unwrap().unwrap(), b"a.json");
    }

    #[test]
    fn where_nothing_was_kept_there_is_nothing() {
        let (_keep, dirs) = dirs();
        assert_eq!(dirs.tasks().unwrap(), []);
        dirs.remove(&task("a")).unwrap();
    }
}
