//! What a test of a sandbox makes outside, written down before it is made: it is removed even if the supervisor is killed. The
//! record lies beside the private directory, where no program of a sandbox can write.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::disk::Disk;
use crate::fs::remove_tree;
use crate::path::Name;

const PREFIX: &str = ".cofferdam-probe-";
const SUFFIX: &[u8] = b".outside";

/// What the test of a sandbox of that name makes in a directory.
pub(super) fn probe_in(dir: &Path, sandbox: &str) -> PathBuf {
    dir.join(format!("{PREFIX}{sandbox}"))
}

/// The name of a sandbox's record.
pub(super) fn record_of(sandbox: &Name) -> io::Result<Name> {
    Name::new([sandbox.as_bytes(), SUFFIX].concat()).map_err(io::Error::other)
}

/// Whose record that is, if it is one.
pub(super) fn recorded(name: &Name) -> Option<Name> {
    Name::new(name.as_bytes().strip_suffix(SUFFIX)?).ok()
}

/// Writes down what is going to be made.
pub(super) fn record(disk: &Disk, parent: impl AsFd, record: &Name, made: &[PathBuf]) -> io::Result<()> {
    let made: Vec<_> = made.iter().map(|path| path.as_os_str().as_bytes()).collect();
    let mode = Mode::RUSR | Mode::WUSR;
    let file = File::from(disk.create(parent, record.as_bytes(), OFlags::WRONLY, mode)?);
    disk.write_all_at(&file, &made.join(&0), 0)
}

/// Removes what a record names, and the record, if there is one.
pub(super) fn remove_recorded(disk: &Disk, parent: impl AsFd, record: &Name) -> io::Result<()> {
    let parent = parent.as_fd();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(parent, record.as_bytes(), flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut text = Vec::new();
    File::from(file).read_to_end(&mut text)?;
    let paths = text.split(|byte| *byte == 0).map(|path| PathBuf::from(OsString::from_vec(path.to_vec())));
    for path in paths {
        remove(disk, &path)?;
    }
    disk.unlink(parent, record.as_bytes())
}

/// Removes something that a test has made; nothing else, and nothing if it is not seen there.
pub(super) fn remove(disk: &Disk, made: &Path) -> io::Result<()> {
    let (Some(dir), Some(name)) = (made.parent(), made.file_name()) else { return Ok(()) };
    if !name.as_bytes().starts_with(PREFIX.as_bytes()) || made.symlink_metadata().is_err() {
        return Ok(());
    }
    let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    remove_tree(disk, dir, &Name::new(name.as_bytes()).map_err(io::Error::other)?)
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{mkdir, write};

    use super::*;

    #[test]
    fn what_a_record_names_goes_with_it_if_a_test_has_made_it_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        mkdir(at(".cofferdam-probe-x/confined"));
        write(at("task/.cofferdam-probe-x"), "");
        write(at("task/kept"), "");
        mkdir(at("pods"));
        let pods = File::open(at("pods")).unwrap();
        let name = record_of(&Name::new(*b"x").unwrap()).unwrap();
        assert_eq!(recorded(&name).unwrap().as_bytes(), b"x");
        let made = ["", "task", "gone"].map(|place| probe_in(&at(place), "x"));
        record(&Disk::default(), &pods, &name, &[&made[..], &[at("task/kept")]].concat()).unwrap();
        remove_recorded(&Disk::default(), &pods, &name).unwrap();
        assert!(at("task/kept").exists());
        // Once more, as if somebody else had been there first.
        remove_recorded(&Disk::default(), &pods, &name).unwrap();
        for gone in [".cofferdam-probe-x", "task/.cofferdam-probe-x", "pods/x.outside"] {
            assert!(!at(gone).exists(), "{gone}");
        }
    }
}
