//! A place for a sidecar: what it is given, and what it must leave alone.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Sidecar, with};
use crate::{files, user};

/// A place for a sidecar: a home, a database directory, a sandbox root, and what must stay as it is. They lie side by
/// side, so that none protects the other. Removed when dropped.
#[derive(Debug)]
pub struct PodSite {
    dir: TempDir,
    program: PathBuf,
    /// Keeps the program within reach of a user who may not search the directories above it.
    _open: Option<File>,
    runs_as: Option<u32>,
    variables: Vec<(String, String)>,
}

impl PodSite {
    /// A place in which `program` runs as whoever runs the test.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let dir = tempfile::Builder::new().prefix("cofferdam-pod-").tempdir().unwrap();
        files::chmod(dir.path(), 0o755);
        for name in ["home", "cwd", "db", "root", "outside"] {
            files::mkdir(dir.path().join(name));
        }
        Self { dir, program: program.into(), _open: None, runs_as: None, variables: Vec::new() }
    }

    /// The same for an ordinary user: [`user::NOBODY`] if the test runs as root.
    pub fn of_ordinary_user(program: impl Into<PathBuf>) -> Self {
        let mut site = Self::new(program);
        if user::is_root() {
            let file = File::open(&site.program).unwrap();
            site.program = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
            site._open = Some(file);
            site.runs_as = Some(user::NOBODY);
            user::give_all(site.dir.path(), user::NOBODY);
        }
        site
    }

    /// Has every sidecar started from now on see this environment variable.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.variables.push((name.to_owned(), value.to_string()));
    }

    /// A path in this place.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The database.
    pub fn db(&self) -> PathBuf {
        self.path("db/pod.db")
    }

    /// The sandbox root: an empty directory.
    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// A directory outside of the sandbox root: empty.
    pub fn outside(&self) -> PathBuf {
        self.path("outside")
    }

    /// The predecessor's file. It is not there unless a test writes it.
    pub fn legacy(&self) -> PathBuf {
        self.path("legacy.json")
    }

    /// The names in the sandbox root, sorted.
    pub fn in_root(&self) -> Vec<String> {
        files::names(self.root())
    }

    /// The sidecar's command, with nothing of this process's environment but a path.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.path("home"))
            .env("LC_ALL", "C.UTF-8")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path("cwd"));
        if let Some(uid) = self.runs_as {
            user::run_as(&mut command, uid);
        }
        command
    }

    /// What a host of this place sends with `initialize`.
    pub fn initialize(&self) -> Value {
        json!({
            "protocol": 1,
            "pluginVersion": "0.2.0",
            "dbPath": self.db(),
            "legacyJsonPath": self.legacy(),
            "hostPid": std::process::id(),
            "platform": "linux",
        })
    }

    /// Starts a sidecar that nothing was said to yet.
    pub fn spawn(&self) -> Sidecar {
        Sidecar::spawn(&mut self.command())
    }

    /// Starts a sidecar and initializes it.
    #[track_caller]
    pub fn start(&self) -> Sidecar {
        let mut sidecar = self.spawn();
        sidecar.ok("initialize", self.initialize());
        sidecar
    }

    /// Starts a sidecar, initializes it and sets its sandbox root.
    #[track_caller]
    pub fn start_rooted(&self) -> Sidecar {
        self.start_with(json!({}))
    }

    /// The same with more of the configuration set.
    #[track_caller]
    pub fn start_with(&self, config: Value) -> Sidecar {
        let mut sidecar = self.start();
        sidecar.configure(with(&json!({"sandboxRoot": self.root()}), config));
        sidecar
    }

    /// Starts an initialized sidecar in which `fault` happens: `STEP[#N]=kill`, `=eio` or `=enospc`.
    #[track_caller]
    pub fn start_with_fault(&self, fault: &str) -> Sidecar {
        let mut sidecar = Sidecar::spawn(self.command().env("COFFERDAM_FAULT", fault));
        sidecar.ok("initialize", self.initialize());
        sidecar
    }
}

impl Drop for PodSite {
    fn drop(&mut self) {
        // A sealed directory would outlive its test.
        if !std::thread::panicking() {
            files::remove(self.dir.path());
        }
    }
}
