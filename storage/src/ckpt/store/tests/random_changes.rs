//! What programs do to a tree, at random.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use cofferdam_tests::dice::Dice;
use cofferdam_tests::{files, user};
use rustix::fs::{CWD, FallocateFlags, RenameFlags};

/// Few, so that the same name comes again as something else; odd, because names are bytes.
const NAMES: [&[u8]; 10] =
    [b"a", b"b", b"dir", b"A", b"-rf", b".git", b"new\nline", b"\xff\xfe", b"with space", &[b'x'; 255]];
/// Lengths of files: none, little, more than a block, and (seldom) more than is kept in one piece.
const LENGTHS: [usize; 7] = [0, 1, 60, 900, 5_000, 70_000, 300_000];
const HUGE_FILE: usize = 1_700_000;
/// Files in a directory that is cut into several nodes.
const HUGE_DIRECTORY: u64 = 700;
const FILE_MODES: [u32; 8] = [0o644, 0o600, 0o755, 0o444, 0o400, 0o4755, 0o2711, 0o666];
const DIRECTORY_MODES: [u32; 6] = [0o755, 0o555, 0o700, 0o2750, 0o1777, 0o500];

/// One who works in a tree.
pub(super) struct Changes<'a> {
    pub(super) dice: &'a mut Dice,
    /// The tree.
    pub(super) root: &'a Path,
    /// Directories that stay where they are.
    pub(super) fixed: &'a [PathBuf],
    /// Trees that things may be moved to.
    pub(super) others: &'a [PathBuf],
}

#[allow(clippy::disallowed_methods, reason = "what programs do to a tree")]
impl Changes<'_> {
    /// Makes a tree with a bit of everything in it.
    pub(super) fn plant(&mut self) {
        for _ in 0..12 + self.dice.below(12) {
            self.create();
        }
        if self.dice.percent(15) {
            self.huge_directory();
        }
    }

    /// Does one thing and says what.
    pub(super) fn change(&mut self) -> String {
        match self.dice.below(100) {
            0..15 => self.create(),
            15..24 => self.edit(),
            24..28 => self.edit_and_hide_it(),
            28..33 => self.append(),
            33..38 => self.cut(),
            38..44 => self.replace(),
            44..54 => self.rename(),
            54..58 => self.exchange(),
            58..64 => self.become_something_else(),
            64..72 => self.chmod(),
            72..76 => self.set_time(),
            76..80 => self.hard_link(),
            80..84 => self.punch_hole(),
            84..87 => self.set_xattr(),
            87..89 => self.give_away(),
            89..91 => self.move_out(),
            91 => self.huge_directory(),
            _ => self.remove(),
        }
    }

    /// Everything below the root, with its kind.
    fn things(&self) -> Vec<(PathBuf, std::fs::FileType)> {
        let mut found = Vec::new();
        let mut dirs = vec![self.root.to_owned()];
        while let Some(dir) = dirs.pop() {
            let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(Result::unwrap).collect();
            // The order on disk is not the same in every run.
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    dirs.push(entry.path());
                }
                found.push((entry.path(), kind));
            }
        }
        found
    }

    /// Something that may be taken away.
    fn victim(&mut self, wanted: impl Fn(&std::fs::FileType) -> bool) -> Option<PathBuf> {
        let things = self.things();
        let free = |path: &Path| !self.fixed.iter().any(|fixed| fixed.starts_with(path));
        let fitting: Vec<PathBuf> = things
            .into_iter()
            .filter(|(path, kind)| wanted(kind) && free(path))
            .map(|(path, _)| path)
            .collect();
        let path = self.dice.pick(&fitting)?.clone();
        self.open_up(path.parent().unwrap());
        Some(path)
    }

    /// A regular file that may be written to.
    fn file(&mut self) -> Option<PathBuf> {
        let path = self.victim(std::fs::FileType::is_file)?;
        self.open_up(&path);
        Some(path)
    }

    /// Whoever is not root needs the right to write.
    fn open_up(&self, path: &Path) {
        let mode = std::fs::symlink_metadata(path).unwrap().mode();
        if !user::is_root() && mode & 0o200 == 0 {
            files::chmod(path, mode & 0o7777 | 0o200);
        }
    }

    /// A directory to put something into.
    fn place(&mut self) -> PathBuf {
        let mut dirs: Vec<PathBuf> =
            self.things().into_iter().filter(|(_, kind)| kind.is_dir()).map(|(path, _)| path).collect();
        dirs.push(self.root.to_owned());
        let dir = self.dice.pick(&dirs).unwrap().clone();
        self.open_up(&dir);
        dir
    }

    /// A name that is free.
    fn free_name(&mut self) -> Option<PathBuf> {
        let dir = self.place();
        let path = dir.join(OsStr::from_bytes(self.dice.pick(&NAMES).unwrap()));
        path.symlink_metadata().is_err().then_some(path)
    }

    fn content(&mut self) -> Vec<u8> {
        let len = match self.dice.percent(3) {
            true => HUGE_FILE,
            false => *self.dice.pick(&LENGTHS).unwrap(),
        };
        bytes(self.dice.below(12), len)
    }

    fn create(&mut self) -> String {
        match self.free_name() {
            Some(path) => self.make(&path),
            None => "nothing".to_owned(),
        }
    }

    /// Makes something new of any kind.
    fn make(&mut self, path: &Path) -> String {
        let kind = match self.dice.below(20) {
            0..9 => {
                let content = self.content();
                files::write(path, content);
                "file"
            }
            9..13 => {
                files::mkdir(path);
                "directory"
            }
            13..15 => {
                let targets = ["a", "../b", "/etc/passwd", "nowhere", "."];
                files::symlink(self.dice.pick(&targets).unwrap(), path);
                return format!("symlink {path:?}");
            }
            15 => {
                files::fifo(path);
                "fifo"
            }
            16 => {
                files::socket(path);
                "socket"
            }
            17 if user::is_root() => {
                files::null_device(path);
                "device"
            }
            _ => {
                let at = self.dice.below(40) * 10_000;
                files::sparse(path, 500_000, &[(at, &bytes(at, 9_000))]);
                "sparse file"
            }
        };
        if self.dice.percent(40) {
            self.chmod_one(path);
        }
        format!("{kind} {path:?}")
    }

    fn huge_directory(&mut self) -> String {
        let Some(path) = self.free_name() else { return "nothing".to_owned() };
        files::mkdir(&path);
        for n in 0..HUGE_DIRECTORY {
            files::write(path.join(format!("{n}")), if n % 7 == 0 { n.to_string() } else { String::new() });
        }
        format!("huge directory {path:?}")
    }

    fn edit(&mut self) -> String {
        let Some(path) = self.file() else { return "nothing".to_owned() };
        let len = path.metadata().unwrap().len();
        let at = self.dice.below(len + 1);
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&bytes(self.dice.below(1000), 40), at).unwrap();
        format!("edit {path:?} at {at}")
    }

    /// As long as before, and with the time of before.
    fn edit_and_hide_it(&mut self) -> String {
        let Some(path) = self.file() else { return "nothing".to_owned() };
        let meta = path.metadata().unwrap();
        if meta.len() == 0 {
            return "nothing".to_owned();
        }
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&bytes(self.dice.below(1000), 1), self.dice.below(meta.len())).unwrap();
        files::set_mtime(&path, meta.mtime(), meta.mtime_nsec());
        format!("edit {path:?} and set its time back")
    }

    fn append(&mut self) -> String {
        let Some(path) = self.file() else { return "nothing".to_owned() };
        files::append(&path, bytes(self.dice.below(1000), 100));
        format!("append to {path:?}")
    }

    fn cut(&mut self) -> String {
        let Some(path) = self.file() else { return "nothing".to_owned() };
        let len = self.dice.below(path.metadata().unwrap().len() * 2 + 1);
        File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        format!("cut or stretch {path:?} to {len}")
    }

    /// As editors save.
    fn replace(&mut self) -> String {
        let Some(path) = self.file() else { return "nothing".to_owned() };
        let fresh = path.parent().unwrap().join(".saving");
        let content = self.content();
        files::write(&fresh, content);
        files::rename(&fresh, &path);
        format!("replace {path:?}")
    }

    fn rename(&mut self) -> String {
        let (from, to) = (self.victim(|_| true), self.free_name());
        let (Some(from), Some(to)) = (from, to) else { return "nothing".to_owned() };
        if to.starts_with(&from) {
            return "nothing".to_owned();
        }
        // Moving a directory elsewhere writes its "..".
        if from.symlink_metadata().unwrap().is_dir() {
            self.open_up(&from);
        }
        files::rename(&from, &to);
        format!("rename {from:?} to {to:?}")
    }

    fn exchange(&mut self) -> String {
        let (one, other) = (self.victim(|_| true), self.victim(|_| true));
        let (Some(one), Some(other)) = (one, other) else { return "nothing".to_owned() };
        if one.starts_with(&other) || other.starts_with(&one) {
            return "nothing".to_owned();
        }
        for path in [&one, &other] {
            if path.symlink_metadata().unwrap().is_dir() {
                self.open_up(path);
            }
        }
        rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        format!("exchange {one:?} and {other:?}")
    }

    fn become_something_else(&mut self) -> String {
        let Some(path) = self.victim(|_| true) else { return "nothing".to_owned() };
        files::remove(&path);
        format!("in the place of what was there: {}", self.make(&path))
    }

    fn remove(&mut self) -> String {
        let Some(path) = self.victim(|_| true) else { return "nothing".to_owned() };
        files::remove(&path);
        format!("remove {path:?}")
    }

    fn chmod(&mut self) -> String {
        let Some(path) = self.victim(|kind| !kind.is_symlink()) else { return "nothing".to_owned() };
        self.chmod_one(&path);
        format!("chmod {path:?}")
    }

    fn chmod_one(&mut self, path: &Path) {
        let modes = match path.symlink_metadata().unwrap().is_dir() {
            true => &DIRECTORY_MODES[..],
            false => &FILE_MODES[..],
        };
        files::chmod(path, *self.dice.pick(modes).unwrap());
    }

    fn set_time(&mut self) -> String {
        let Some(path) = self.victim(|_| true) else { return "nothing".to_owned() };
        // Before the epoch, long ago, and to come.
        let secs = self.dice.pick(&[-5, 1_000_000_000, 1_700_000_000, 4_000_000_000]).unwrap();
        files::set_mtime(&path, *secs, self.dice.below(1_000_000_000) as i64);
        format!("set the time of {path:?} to {secs}")
    }

    fn hard_link(&mut self) -> String {
        let (of, to) = (self.victim(|kind| !kind.is_dir()), self.free_name());
        let (Some(of), Some(to)) = (of, to) else { return "nothing".to_owned() };
        files::hard_link(&of, &to);
        format!("link {of:?} as {to:?}")
    }

    fn punch_hole(&mut self) -> String {
        let Some(path) = self.file() else { return "nothing".to_owned() };
        let (block, len) = (4096, path.metadata().unwrap().len());
        if len < 3 * block {
            return "nothing".to_owned();
        }
        let at = self.dice.below(len / block - 1) * block;
        let file = File::options().write(true).open(&path).unwrap();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, flags, at, block * 2).unwrap();
        format!("punch a hole into {path:?} at {at}")
    }

    fn set_xattr(&mut self) -> String {
        let Some(path) = self.victim(|kind| kind.is_file() || kind.is_dir()) else {
            return "nothing".to_owned();
        };
        self.open_up(&path);
        let value = bytes(self.dice.below(5), 20);
        let _ = files::set_xattr(&path, self.dice.pick(&["user.one", "user.two"]).unwrap(), &value);
        format!("set an attribute of {path:?}")
    }

    fn give_away(&mut self) -> String {
        let Some(path) = self.victim(|_| user::is_root()) else { return "nothing".to_owned() };
        lchown(&path, Some(user::SOMEBODY), None).unwrap();
        format!("give {path:?} away")
    }

    /// To another workspace, as `mv` does.
    fn move_out(&mut self) -> String {
        let Some(from) = self.victim(std::fs::FileType::is_file) else { return "nothing".to_owned() };
        let Some(other) = self.dice.pick(self.others) else { return "nothing".to_owned() };
        let to = other.join(OsStr::from_bytes(self.dice.pick(&NAMES).unwrap()));
        let writable = other.metadata().unwrap().permissions().mode() & 0o200 != 0 || user::is_root();
        // The name of a file may lead to one that has two: that is nothing to be done twice.
        if !writable || to.symlink_metadata().is_ok() || from.metadata().unwrap().nlink() > 1 {
            return "nothing".to_owned();
        }
        files::rename(&from, &to);
        format!("move {from:?} to {to:?}")
    }
}

/// Bytes that cannot be compressed, the same for the same seed.
pub(super) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
