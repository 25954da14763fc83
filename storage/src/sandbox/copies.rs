//! Copies of the user's own files in a home that is kept, written down before they are made: whoever finds that their supervisor
//! was killed takes them away, so that no checkpoint has them. What is written down lies beside the private directory, where
//! nothing of a sandbox can write.
//!
//! Each entry ends with a NUL: the home's path, then the paths of copies, relative to it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::furnish::{DIRECTORY, Furnisher};
use crate::disk::Disk;
use crate::path::Name;

/// What the name of such a file ends with.
const ENDING: &[u8] = b".copies";
/// The most that is read of one: a thousand paths are copied at most.
const MOST: u64 = 8 << 20;

/// Copies that were made.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Where they are in the home.
    pub(super) paths: Vec<PathBuf>,
    /// Where that is written down, and how much of it is.
    written: Option<(File, u64)>,
}

impl Copied {
    /// Has everything that is added written down beside the private directory `name` in `parent`.
    pub(super) fn write_down(
        &mut self,
        disk: &Disk,
        parent: &OwnedFd,
        name: &Name,
        home: &Path,
    ) -> io::Result<()> {
        if self.written.is_none() {
            let file = disk.create(parent, beside(name), OFlags::WRONLY, Mode::RUSR | Mode::WUSR)?;
            self.written = Some((file.into(), 0));
            self.append(disk, home)?;
        }
        Ok(())
    }

    /// One is about to be made.
    pub(super) fn add(&mut self, disk: &Disk, path: &Path) -> io::Result<()> {
        self.paths.push(path.to_owned());
        self.append(disk, path)
    }

    fn append(&mut self, disk: &Disk, path: &Path) -> io::Result<()> {
        let Some((file, length)) = &mut self.written else { return Ok(()) };
        let entry = [path.as_os_str().as_bytes(), b"\0"].concat();
        disk.write_all_at(file, &entry, *length)?;
        *length += entry.len() as u64;
        Ok(())
    }
}

/// Nothing is written down any more of the copies of a private directory.
pub(super) fn forget(disk: &Disk, parent: &OwnedFd, name: &Name) -> io::Result<()> {
    match disk.unlink(parent, beside(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        gone => gone,
    }
}

/// Takes away the copies of a private directory whose sandbox was killed; with a `home`, only those in it.
pub(super) fn take_away(disk: &Disk, parent: &OwnedFd, name: &Name, home: Option<&Path>) -> io::Result<()> {
    let file = match rustix::fs::openat(
        parent,
        beside(name).as_slice(),
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        opened => File::from(opened?),
    };
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text)?;
    // The last one, if it is not whole, was not made.
    let mut entries = text.split_inclusive(|byte| *byte == 0).filter_map(|entry| entry.strip_suffix(b"\0"));
    let its_home = entries.next().map(|home| Path::new(OsStr::from_bytes(home)));
    if let Some(its_home) = its_home.filter(|its| home.is_none_or(|home| home == *its)) {
        match rustix::fs::open(its_home, DIRECTORY, Mode::empty()) {
            Ok(held) => {
                let furnisher = Furnisher { disk: disk.clone(), user: None };
                for entry in entries {
                    furnisher.take_away(&held, Path::new(OsStr::from_bytes(entry)))?;
                }
            }
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        forget(disk, parent, name)?;
    }
    Ok(())
}

/// Takes away the copies that a killed supervisor has left in a home that is kept. Called by a daemon when the supervisor is no
/// more, before anything of the home is kept; `private` is where private directories are made.
pub fn take_copies_away(disk: &Disk, private: &Path, home: &Path) -> io::Result<()> {
    let parent = match rustix::fs::open(private, DIRECTORY, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let (Some(above), Some(last)) = (home.parent(), home.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let home = std::fs::canonicalize(above)?.join(last);
    for entry in std::fs::read_dir(private)? {
        let entry = entry?.file_name();
        if let Some(name) = entry.as_bytes().strip_suffix(ENDING).and_then(|name| Name::new(name).ok()) {
            take_away(disk, &parent, &name, Some(&home))?;
        }
    }
    Ok(())
}

fn beside(name: &Name) -> Vec<u8> {
    [name.as_bytes(), ENDING].concat()
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files;

    use super::*;

    #[test]
    fn what_was_written_down_of_a_home_is_taken_away_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().canonicalize().unwrap().join(path);
        for home in ["private", "one/.tool", "other"] {
            files::mkdir(at(home));
        }
        for file in ["one/.tool/key", "one/.tool/own", "other/key"] {
            files::write(at(file), "");
        }
        let parent = rustix::fs::open(at("private"), DIRECTORY, Mode::empty()).unwrap();
        let disk = Disk::default();
        let copied = |name: &str, home: &str, paths: &[&str]| {
            let mut copied = Copied::default();
            // Told for each path that is shown.
            for path in paths {
                copied.write_down(&disk, &parent, &Name::new(name.as_bytes()).unwrap(), &at(home)).unwrap();
                copied.add(&disk, Path::new(path)).unwrap();
            }
        };
        copied("a", "one", &[".tool/key", ".tool/gone"]);
        copied("b", "other", &["key"]);
        copied("c", "gone", &["key"]);
        // Its supervisor was killed before all of it was written.
        files::append(at("private/a.copies"), ".tool/own");
        take_copies_away(&disk, &at("private"), &at("one")).unwrap();
        assert_eq!([".tool/key", ".tool/own"].map(|file| at("one").join(file).exists()), [false, true]);
        assert!(at("other/key").exists());
        assert_eq!(
            ["a", "b", "c"].map(|name| at("private").join(name.to_owned() + ".copies").exists()),
            [false, true, true]
        );
        // Whichever home it is: that one may be gone, too.
        for name in ["b", "c", "unknown"] {
            take_away(&disk, &parent, &Name::new(name.as_bytes()).unwrap(), None).unwrap();
        }
        assert!(!at("other/key").exists());
        assert_eq!(std::fs::read_dir(at("private")).unwrap().count(), 0);
        take_copies_away(&disk, &at("nowhere"), &at("one")).unwrap();
    }
}
