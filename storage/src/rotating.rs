//! A log file that never gets large: at its limit it is moved aside, and the oldest one goes.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::disk::Disk;
use crate::path::{InvalidName, Name};

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a file.
    pub bytes: u64,
    /// Files, the one that is written to among them; at least 1.
    pub files: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 5 << 20, files: 5 }
    }
}

/// `NAME`, which is written to, and `NAME.1`, `NAME.2` and so on, the higher the older. One process writes to it.
///
/// As a writer it never fails: a program does not end because its log cannot be written. What cannot be is left out,
/// and how many writes were is said as soon as there is room again. What is given to one call is never torn over two
/// files.
#[derive(Debug)]
pub struct RotatingFile {
    disk: Disk,
    dir: OwnedFd,
    name: Name,
    limits: Limits,
    /// Missing after a rotation that could not be finished, or after somebody removed it.
    file: Option<File>,
    left_out: u64,
}

impl RotatingFile {
    /// Opens a log, or makes it for the user alone. Fails if its directory cannot be opened, or if it is no file.
    pub fn open(disk: Disk, path: &Path, limits: Limits) -> io::Result<Self> {
        let bad = |InvalidName| io::Error::from(io::ErrorKind::InvalidFilename);
        let name = path.file_name().map_or(&[][..], |name| name.as_bytes());
        let name = Name::new(name).map_err(bad)?;
        // Room for the numbers.
        Name::new([name.as_bytes(), b".4294967295"].concat()).map_err(bad)?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut log = Self { disk, dir, name, limits, file: None, left_out: 0 };
        log.file = Some(log.open_newest()?);
        Ok(log)
    }

    /// The file that is written to, as it is or new. Follows no link and waits for no other end of a FIFO.
    fn open_newest(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK;
        let name = self.name.as_bytes();
        let existing = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.dir, name, existing, Mode::empty()) {
            Err(Errno::NOENT) => self.disk.create(&self.dir, name, flags, Mode::RUSR | Mode::WUSR)?,
            opened => opened?,
        };
        let mode = rustix::fs::fstat(&file)?.st_mode;
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "the log is not a regular file; remove it")),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let limit = self.limits.bytes;
        let note = match self.left_out {
            0 => String::new(),
            count => format!("({count} messages are missing here: they could not be written)\n"),
        };
        let mut line = [note.as_bytes(), bytes].concat();
        line.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut at = self.newest_len()?;
        if at > 0 && at + line.len() as u64 > limit {
            self.rotate()?;
            at = self.newest_len()?;
        }
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        self.disk.write_all_at(file, &line, at).inspect_err(|_| {
            // Better no line than half of one.
            let _ = self.disk.set_len(file, at);
        })
    }

    /// The length of the file that is written to, which is opened again if somebody removed it.
    fn newest_len(&mut self) -> io::Result<u64> {
        let stat = self.file.as_ref().map(rustix::fs::fstat).transpose()?;
        if let Some(stat) = stat.filter(|stat| stat.st_nlink > 0) {
            return Ok(u64::try_from(stat.st_size).unwrap_or(0));
        }
        self.file = None;
        let file = self.open_newest()?;
        let len = file.metadata()?.len();
        self.file = Some(file);
        Ok(len)
    }

    /// Moves every file on by one, the oldest first. Failed anywhere, it can be repeated.
    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        let numbered = |number: u32| match number {
            0 => self.name.as_bytes().to_vec(),
            number => [self.name.as_bytes(), format!(".{number}").as_bytes()].concat(),
        };
        let oldest = self.limits.files.saturating_sub(1);
        if oldest == 0 {
            return self.disk.unlink(&self.dir, self.name.as_bytes());
        }
        for number in (0..oldest).rev() {
            match self.disk.rename((&self.dir, numbered(number)), (&self.dir, numbered(number + 1))) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved?,
            }
        }
        Ok(())
    }
}

impl Write for RotatingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left_out = match self.append(bytes) {
            Ok(()) => 0,
            Err(_) => self.left_out.saturating_add(1),
        };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use cofferdam_tests::files::{fifo, mkdir, read, remove, symlink, write};
    use cofferdam_tests::mount::Mount;

    use super::*;
    use crate::disk::{FaultHook, Op};

    const SMALL: Limits = Limits { bytes: 20, files: 3 };

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("core.log");
        (dir, path)
    }

    fn open(path: &Path) -> RotatingFile {
        RotatingFile::open(Disk::default(), path, SMALL).unwrap()
    }

    fn log(file: &mut RotatingFile, lines: &[&str]) {
        for line in lines {
            assert_eq!(file.write(line.as_bytes()).unwrap(), line.len());
        }
    }

    /// What each file of the log holds, by name.
    fn files(dir: &Path) -> Vec<(String, String)> {
        let names = dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<_> =
            names.map(|name| (name.clone(), String::from_utf8(read(dir.join(name))).unwrap())).collect();
        files.sort();
        files
    }

    fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
    }

    #[test]
    fn a_full_file_is_moved_aside_and_the_oldest_goes() {
        let (dir, path) = place();
        let mut file = open(&path);
        log(&mut file, &["first one\n", "second 10\n"]);
        assert_eq!(files(dir.path()), pairs(&[("core.log", "first one\nsecond 10\n")]));
        log(&mut file, &["third\n", "fourth, longer\n", "fifth, longer\n", "sixth, longer\n"]);
        let expected = [
            ("core.log", "sixth, longer\n"),
            ("core.log.1", "fifth, longer\n"),
            ("core.log.2", "fourth, longer\n"),
        ];
        assert_eq!(files(dir.path()), pairs(&expected));
    }

    #[test]
    fn a_restart_appends_and_knows_how_full_the_file_is() {
        let (dir, path) = place();
        log(&mut open(&path), &["before it\n"]);
        log(&mut open(&path), &["after\n"]);
        log(&mut open(&path), &["too much\n"]);
        assert_eq!(
            files(dir.path()),
            pairs(&[("core.log", "too much\n"), ("core.log.1", "before it\nafter\n")])
        );
    }

    #[test]
    fn the_log_is_for_the_user_alone() {
        let (dir, path) = place();
        let mut file = open(&path);
        log(&mut file, &["0123456789abcde\n", "0123456789abcde\n"]);
        for name in ["core.log", "core.log.1"] {
            let mode = dir.path().join(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn only_a_regular_file_is_written_to() {
        let (dir, path) = place();
        write(dir.path().join("precious"), "as it was");
        symlink("precious", &path);
        let open = || RotatingFile::open(Disk::default(), &path, SMALL);
        assert!(open().is_err());
        remove(&path);
        symlink("nowhere", &path);
        assert!(open().is_err());
        assert!(!dir.path().join("nowhere").exists());
        remove(&path);
        fifo(&path);
        assert!(open().is_err());
        remove(&path);
        mkdir(&path);
        assert!(open().is_err());
        assert_eq!(read(dir.path().join("precious")), b"as it was");
        assert!(RotatingFile::open(Disk::default(), Path::new("/"), SMALL).is_err());
    }

    #[test]
    fn a_message_longer_than_a_file_is_cut() {
        let (dir, path) = place();
        log(&mut open(&path), &["short\n", &"x".repeat(100), "next\n"]);
        let expected =
            [("core.log", "next\n"), ("core.log.1", "xxxxxxxxxxxxxxxxxxxx"), ("core.log.2", "short\n")];
        assert_eq!(files(dir.path()), pairs(&expected));
    }

    #[test]
    fn a_log_that_somebody_removed_or_emptied_is_gone_on_with() {
        let (dir, path) = place();
        let mut file = open(&path);
        log(&mut file, &["gone\n"]);
        remove(&path);
        log(&mut file, &["new\n"]);
        assert_eq!(files(dir.path()), pairs(&[("core.log", "new\n")]));
        write(&path, "");
        log(&mut file, &["emptied\n"]);
        assert_eq!(files(dir.path()), pairs(&[("core.log", "emptied\n")]));
    }

    #[test]
    fn a_single_file_starts_anew() {
        let (dir, path) = place();
        let limits = Limits { bytes: 10, files: 1 };
        let mut file = RotatingFile::open(Disk::default(), &path, limits).unwrap();
        log(&mut file, &["one one\n", "two two\n"]);
        assert_eq!(files(dir.path()), pairs(&[("core.log", "two two\n")]));
    }

    /// Fails while it is switched on, or at one operation.
    #[derive(Debug, Default)]
    struct Failing {
        on: AtomicBool,
        nth: Option<u64>,
        seen: AtomicU64,
    }

    impl FaultHook for Failing {
        fn before(&self, _: Op) -> io::Result<()> {
            let now = self.seen.fetch_add(1, Ordering::Relaxed);
            match self.on.load(Ordering::Relaxed) || self.nth == Some(now) {
                true => Err(Errno::NOSPC.into()),
                false => Ok(()),
            }
        }
        fn step(&self, _: &str) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_could_not_be_written_is_counted_in_the_log() {
        let (dir, path) = place();
        let failing = Arc::new(Failing::default());
        let disk = Disk::with_faults(Arc::<Failing>::clone(&failing));
        let limits = Limits { bytes: 200, files: 2 };
        let mut file = RotatingFile::open(disk, &path, limits).unwrap();
        log(&mut file, &["before\n"]);
        failing.on.store(true, Ordering::Relaxed);
        log(&mut file, &["lost\n", "lost\n"]);
        failing.on.store(false, Ordering::Relaxed);
        log(&mut file, &["after\n", "later\n"]);
        let text = "before\n(2 messages are missing here: they could not be written)\nafter\nlater\n";
        assert_eq!(files(dir.path()), pairs(&[("core.log", text)]));
    }

    #[test]
    fn whichever_operation_fails_the_log_goes_on_and_stays_small() {
        let lines: Vec<String> = (0..40).map(|n| format!("line {n}\n")).collect();
        // The last message is written after that.
        for nth in 1..45 {
            let (dir, path) = place();
            let disk = Disk::with_faults(Arc::new(Failing { nth: Some(nth), ..Failing::default() }));
            let limits = Limits { bytes: 100, files: 3 };
            let mut file = RotatingFile::open(disk, &path, limits).unwrap();
            log(&mut file, &lines.iter().map(String::as_str).collect::<Vec<_>>());
            let found = files(dir.path());
            assert!(found.len() <= 3 && found.iter().all(|(_, text)| text.len() <= 100), "{nth}: {found:?}");
            assert!(found[0].1.ends_with("line 39\n"), "{nth}: {found:?}");
            let all: String = found.iter().rev().map(|(_, text)| text.as_str()).collect();
            assert!(
                all.lines().all(|line| line.starts_with("line ") || line.starts_with("(1 messages")),
                "{all}"
            );
        }
    }

    #[test]
    fn a_full_disk_costs_lines_and_nothing_else() {
        if !cofferdam_tests::user::is_root() {
            return cofferdam_tests::skipped(format_args!("mounting needs root"));
        }
        let (dir, _) = place();
        let small = Mount::tmpfs(&dir.path().join("small"), 256);
        let path = small.path().join("core.log");
        let limits = Limits { bytes: 64 << 10, files: 3 };
        let mut file = RotatingFile::open(Disk::default(), &path, limits).unwrap();
        log(&mut file, &["before\n"]);
        small.fill();
        for _ in 0..1000 {
            log(&mut file, &[&format!("{}\n", "x".repeat(99))]);
        }
        small.free();
        log(&mut file, &["after\n"]);
        let all: String = files(small.path()).iter().rev().map(|(_, text)| text.clone()).collect();
        assert!(all.ends_with("could not be written)\nafter\n"), "{all}");
        assert!(all.lines().all(|line| [5, 6, 99].contains(&line.len()) || line.starts_with('(')), "{all}");
    }
}
