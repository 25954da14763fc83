//! Fills a home: directories, and what is shown of the user's own.
//!
//! A home that is kept holds what programs have left in it. Nothing of the sandbox runs while it is filled anew, but every name
//! in it may be a link to anywhere, or something else than it was. So the way down is held, step by step, no link is followed,
//! and what is in the way is removed, and never written to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::copies::Copied;
use super::order::PodUser;
use crate::disk::Disk;
use crate::fs::remove_tree;
use crate::path::Name;

/// The most of the user's own files that is copied for another user, in bytes and in files.
const COPIED_BYTES: u64 = 16 << 20;
const COPIED_FILES: usize = 1000;
/// How deep it is linked into directories that are there already.
const DEEPEST: usize = 16;

pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What may still be copied, and what was.
struct Copies<'a> {
    bytes: u64,
    files: usize,
    copied: &'a mut Copied,
}

/// Whoever fills homes.
#[derive(Debug)]
pub(super) struct Furnisher {
    pub(super) disk: Disk,
    /// Whom everything is given to, if that is somebody else.
    pub(super) user: Option<PodUser>,
}

impl Furnisher {
    /// Goes down a relative path, and makes what is missing of it.
    pub(super) fn enter(&self, home: impl AsFd, relative: &Path) -> io::Result<OwnedFd> {
        let mut dir = rustix::fs::openat(home, ".", DIRECTORY, Mode::empty())?;
        for part in relative.components() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidFilename.into()) };
            dir = self.step(&dir, &name_of(name)?)?;
        }
        Ok(dir)
    }

    /// A directory in a directory, made if nothing is there, and instead of what else is.
    pub(super) fn step(&self, dir: impl AsFd, name: &Name) -> io::Result<OwnedFd> {
        let dir = dir.as_fd();
        if kind(dir, name)?.is_some_and(|found| found != FileType::Directory) {
            self.disk.unlink(dir, name.as_bytes())?;
        }
        match self.disk.mkdir(dir, name.as_bytes(), Mode::RWXU) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made?;
                self.give(dir, name)?;
            }
        }
        // Its owner may have closed it to everybody, and is who this process is, or is going to be.
        let held = hold(dir, name)?;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&held)?.st_mode);
        if !mode.contains(Mode::RWXU) {
            self.disk.chmod_held(&held, mode | Mode::RWXU)?;
        }
        Ok(rustix::fs::openat(dir, name.as_bytes(), DIRECTORY, Mode::empty())?)
    }

    /// Shows a file or a directory of the user's own: as a link; to another user, who could not read it, as a copy. The paths of
    /// files that were copied are added to `copied`, also after an error.
    pub(super) fn show(
        &self,
        source: &Path,
        home: impl AsFd,
        relative: &Path,
        copied: &mut Copied,
    ) -> io::Result<()> {
        let (Some(above), Some(name)) = (relative.parent(), relative.file_name()) else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        let (dir, name) = (self.enter(home, above)?, name_of(name)?);
        match self.user {
            Some(_) => {
                let mut copies = Copies { bytes: COPIED_BYTES, files: COPIED_FILES, copied };
                self.copy(source, dir.as_fd(), (&name, relative), &mut copies)
            }
            None => self.link(source, dir.as_fd(), &name, DEEPEST),
        }
    }

    /// A directory that is there is not hidden behind a link: what is in the source is linked in it.
    fn link(&self, source: &Path, dir: impl AsFd, name: &Name, deeper: usize) -> io::Result<()> {
        let dir = dir.as_fd();
        match kind(dir, name)? {
            None => {}
            Some(FileType::Symlink) => {
                let there = rustix::fs::readlinkat(dir, name.as_bytes(), Vec::new())?;
                if there.to_bytes() == source.as_os_str().as_encoded_bytes() {
                    return Ok(());
                }
                self.disk.unlink(dir, name.as_bytes())?;
            }
            Some(FileType::Directory) if source.is_dir() => {
                if deeper > 0 {
                    let below = self.step(dir, name)?;
                    for entry in std::fs::read_dir(source)? {
                        let entry = entry?;
                        self.link(&entry.path(), &below, &name_of(&entry.file_name())?, deeper - 1)?;
                    }
                }
                return Ok(());
            }
            Some(_) => remove_tree(&self.disk, dir, name)?,
        }
        self.disk.symlink(source, dir, name.as_bytes())
    }

    fn copy(
        &self,
        source: &Path,
        dir: impl AsFd,
        (name, relative): (&Name, &Path),
        copies: &mut Copies<'_>,
    ) -> io::Result<()> {
        let dir = dir.as_fd();
        let found = std::fs::metadata(source)?;
        let too_much = || io::Error::other("there is too much in it to be copied; name less");
        copies.files = copies.files.checked_sub(1).ok_or_else(too_much)?;
        if found.is_dir() {
            let below = self.step(dir, name)?;
            for entry in std::fs::read_dir(source)? {
                let entry = entry?;
                let name = entry.file_name();
                self.copy(&entry.path(), &below, (&name_of(&name)?, &relative.join(&name)), copies)?;
            }
            return Ok(());
        }
        if !found.is_file() {
            return Ok(());
        }
        copies.bytes = copies.bytes.checked_sub(found.len()).ok_or_else(too_much)?;
        let bytes = std::fs::read(source)?;
        if kind(dir, name)?.is_some() {
            remove_tree(&self.disk, dir, name)?;
        }
        copies.copied.add(&self.disk, relative)?;
        let mode = if found.permissions().mode() & 0o100 == 0 { Mode::RUSR } else { Mode::RUSR | Mode::XUSR };
        let file = File::from(self.disk.create(dir, name.as_bytes(), OFlags::WRONLY, mode)?);
        self.disk.write_all_at(&file, &bytes, 0)?;
        self.give(dir, name)
    }

    /// Removes what stands where a copy was made, unless the way there is another by now.
    pub(super) fn take_away(&self, home: impl AsFd, relative: &Path) -> io::Result<()> {
        let (Some(above), Some(name)) = (relative.parent(), relative.file_name()) else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        let mut dir = rustix::fs::openat(home, ".", DIRECTORY, Mode::empty())?;
        for part in above.components() {
            dir = match rustix::fs::openat(&dir, part.as_os_str(), DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
                opened => opened?,
            };
        }
        let name = name_of(name)?;
        if kind(&dir, &name)?.is_some() { remove_tree(&self.disk, &dir, &name) } else { Ok(()) }
    }

    /// Gives something that was just made to the user.
    pub(super) fn give(&self, dir: impl AsFd, name: &Name) -> io::Result<()> {
        let Some(PodUser { uid, gid }) = self.user else { return Ok(()) };
        self.disk.chown_held(hold(dir, name)?, uid, gid)
    }
}

/// What is there, if something is; of a link, the link.
fn kind(dir: impl AsFd, name: &Name) -> io::Result<Option<FileType>> {
    match rustix::fs::statat(dir, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn hold(dir: impl AsFd, name: &Name) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name.as_bytes(), flags, Mode::empty())?)
}

pub(super) fn name_of(name: &std::ffi::OsStr) -> io::Result<Name> {
    Name::new(name.as_encoded_bytes()).map_err(|_| io::ErrorKind::InvalidFilename.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    struct Bench {
        dir: tempfile::TempDir,
        furnisher: Furnisher,
    }

    impl Bench {
        fn new(user: Option<PodUser>) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for made in ["home/.config", "real/.config/tool", "outside"] {
                fs::create_dir_all(dir.path().join(made)).unwrap();
            }
            fs::write(dir.path().join("real/.config/tool/key"), "one").unwrap();
            fs::write(dir.path().join("outside/file"), "kept").unwrap();
            Self { dir, furnisher: Furnisher { disk: Disk::default(), user } }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.dir.path().join(path)
        }

        /// Returns what was copied.
        fn show(&self, relative: &str) -> Vec<PathBuf> {
            let mut copied = Copied::default();
            let home = rustix::fs::open(self.at("home"), DIRECTORY, Mode::empty()).unwrap();
            let source = self.at("real").join(relative);
            self.furnisher.show(&source, home, Path::new(relative), &mut copied).unwrap();
            copied.paths
        }

        fn outside_is_whole(&self) {
            assert_eq!(fs::read_dir(self.at("outside")).unwrap().count(), 1);
            assert_eq!(fs::read_to_string(self.at("outside/file")).unwrap(), "kept");
        }
    }

    /// Ourselves, as if we were somebody else: then copies are made.
    fn copying() -> Option<PodUser> {
        Some(PodUser { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() })
    }

    #[test]
    fn what_is_shown_is_shown_anew_whatever_a_program_has_put_in_its_place() {
        for user in [None, copying()] {
            for relative in [".config/tool/key", ".config/tool", ".config"] {
                for left in ["nothing", "file", "link", "directory", "way"] {
                    let bench = Bench::new(user);
                    bench.show(relative);
                    let key = bench.at("home/.config/tool/key");
                    assert_eq!(fs::read_to_string(&key).unwrap(), "one", "{relative}");
                    fs::write(bench.at("real/.config/tool/key"), "two").unwrap();
                    let shown = bench.at("home").join(relative);
                    let name = Name::new(shown.file_name().unwrap().as_encoded_bytes()).unwrap();
                    let above = rustix::fs::open(shown.parent().unwrap(), DIRECTORY, Mode::empty()).unwrap();
                    if left != "nothing" {
                        remove_tree(&Disk::default(), above, &name).unwrap();
                    }
                    match left {
                        "file" => fs::write(&shown, "own").unwrap(),
                        "link" => std::os::unix::fs::symlink(bench.at("outside/file"), &shown).unwrap(),
                        "directory" => fs::create_dir_all(shown.join("deep/er")).unwrap(),
                        "way" => {
                            let home = rustix::fs::open(bench.at("home"), DIRECTORY, Mode::empty()).unwrap();
                            let config = Name::new(".config".as_bytes()).unwrap();
                            if relative != ".config" {
                                remove_tree(&Disk::default(), home, &config).unwrap();
                            }
                            std::os::unix::fs::symlink(bench.at("outside"), bench.at("home/.config"))
                                .unwrap();
                        }
                        _ => {}
                    }
                    bench.show(relative);
                    let again = fs::read_to_string(&key);
                    assert_eq!(again.unwrap(), "two", "{relative} {left}");
                    bench.outside_is_whole();
                }
            }
        }
    }

    #[test]
    fn what_was_copied_is_taken_away_again_and_what_programs_have_left_beside_it_stays() {
        for relative in [".config/tool/key", ".config/tool", ".config"] {
            let bench = Bench::new(copying());
            let copied = bench.show(relative);
            assert_eq!(copied, [Path::new(".config/tool/key")], "{relative}");
            let home = || rustix::fs::open(bench.at("home"), DIRECTORY, Mode::empty()).unwrap();
            let take = || bench.furnisher.take_away(home(), &copied[0]).unwrap();
            fs::write(bench.at("home/.config/tool/own"), "own").unwrap();
            take();
            assert!(!bench.at("home/.config/tool/key").exists());
            assert_eq!(fs::read_to_string(bench.at("home/.config/tool/own")).unwrap(), "own");
            // Once more, and where the way leads elsewhere by now.
            take();
            cofferdam_tests::files::remove(bench.at("home/.config/tool"));
            fs::write(bench.at("outside/key"), "kept").unwrap();
            std::os::unix::fs::symlink(bench.at("outside"), bench.at("home/.config/tool")).unwrap();
            take();
            assert!(bench.at("outside/key").exists());
        }
        assert!(Bench::new(None).show(".config").is_empty());
    }

    #[test]
    fn the_way_down_is_made_of_directories_whatever_was_there() {
        let bench = Bench::new(None);
        let home = || rustix::fs::open(bench.at("home"), DIRECTORY, Mode::empty()).unwrap();
        std::os::unix::fs::symlink(bench.at("outside"), bench.at("home/.local")).unwrap();
        bench.furnisher.enter(home(), Path::new(".local/share")).unwrap();
        assert!(bench.at("home/.local/share").is_dir());
        bench.outside_is_whole();
        for mode in [0, 0o500] {
            fs::set_permissions(bench.at("home/.local"), fs::Permissions::from_mode(mode)).unwrap();
            bench.furnisher.enter(home(), Path::new(&format!(".local/{mode}"))).unwrap();
        }
        for bad in ["../outside", "/tmp"] {
            assert!(bench.furnisher.enter(home(), Path::new(bad)).is_err(), "{bad}");
        }
    }
}
