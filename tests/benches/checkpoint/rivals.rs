//! What people would use instead: `find` to see what changed, a shadow git repository, restic.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A git repository beside the tree it keeps.
pub(crate) struct Git {
    dir: PathBuf,
    tree: PathBuf,
}

impl Git {
    pub(crate) fn init(dir: PathBuf, tree: &Path) -> Self {
        let git = Self { dir, tree: tree.to_owned() };
        git.run(&["init", "-q"]);
        // Nothing in the background while others are measured.
        for (key, value) in [("gc.auto", "0"), ("user.name", "rival"), ("user.email", "rival@example.org")] {
            git.run(&["config", key, value]);
        }
        git
    }

    /// As a checkpoint.
    pub(crate) fn commit(&self) {
        self.run(&["add", "-A"]);
        self.run(&["commit", "-q", "--allow-empty", "-m", "kept"]);
    }

    /// As a rollback to the newest checkpoint.
    pub(crate) fn reset(&self) {
        self.run(&["reset", "-q", "--hard"]);
        self.run(&["clean", "-fdq"]);
    }

    /// As a diff of the two newest checkpoints.
    pub(crate) fn diff(&self) {
        self.run(&["diff", "--name-status", "HEAD~1", "HEAD"]);
    }

    /// Bytes it takes once it is packed.
    pub(crate) fn packed_size(&self) -> u64 {
        self.run(&["gc", "-q", "--prune=now"]);
        size_of(&self.dir)
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = quiet("git");
        command.arg("--git-dir").arg(&self.dir).arg("--work-tree").arg(&self.tree);
        check(command.args(arguments).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent"));
    }
}

/// A restic repository, where restic is installed.
pub(crate) struct Restic(PathBuf);

impl Restic {
    pub(crate) fn init(dir: PathBuf) -> Option<Self> {
        Command::new("restic").arg("version").output().ok()?;
        let restic = Self(dir);
        restic.run(&[OsStr::new("init")]);
        Some(restic)
    }

    /// As a checkpoint.
    pub(crate) fn backup(&self, tree: &Path) {
        self.run(&[OsStr::new("backup"), tree.as_os_str()]);
    }

    fn run(&self, arguments: &[&OsStr]) {
        let mut command = quiet("restic");
        command.arg("--quiet").arg("--no-cache").arg("--repo").arg(&self.0);
        check(command.args(arguments).env("RESTIC_PASSWORD", "rival").env("HOME", "/nonexistent"));
    }
}

/// Looks at every file, as `find` does.
pub(crate) fn find(tree: &Path) {
    check(quiet("find").arg(tree).args(["-printf", "%T@ %s %p\\n"]));
}

/// Bytes of all files of a directory.
pub(crate) fn size_of(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => size_of(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn check(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
