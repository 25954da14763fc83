//! A place of its own for each test: a state directory, a home, a socket, the built programs and nothing else of the
//! world around.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;

use cofferdam_protocol::ckpt::{DiffEntry, SnapshotEntry, WsCkptErrorCode, WsCkptRequest, WsCkptResponse};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::process::end;
use crate::wire::{PATIENCE, Wire, ask, error_of};
use crate::{files, user};

/// Where the built programs are.
#[derive(Debug)]
pub struct Programs {
    /// `cofferdam`.
    pub cofferdam: PathBuf,
    /// `ws-ckpt`.
    pub ws_ckpt: PathBuf,
    open: Vec<File>,
}

impl Programs {
    /// The programs at these paths.
    pub fn new(cofferdam: impl Into<PathBuf>, ws_ckpt: impl Into<PathBuf>) -> Self {
        Self { cofferdam: cofferdam.into(), ws_ckpt: ws_ckpt.into(), open: Vec::new() }
    }

    /// Names them by descriptors of this process: another user can run them then, also where he may not search the
    /// directories above them.
    fn open_to_everybody(&mut self) {
        for program in [&mut self.cofferdam, &mut self.ws_ckpt] {
            let file = File::open(&*program).unwrap_or_else(|e| panic!("{}: {e}", program.display()));
            *program = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
            self.open.push(file);
        }
    }
}

/// A test's own place. Removed when dropped.
#[derive(Debug)]
pub struct Site {
    dir: TempDir,
    programs: Programs,
    state: PathBuf,
    runs_as: Option<u32>,
}

impl Site {
    /// A place in which programs run as whoever runs the test.
    pub fn new(programs: Programs) -> Self {
        let dir = tempfile::Builder::new().prefix("cofferdam-e2e-").tempdir().unwrap();
        files::chmod(dir.path(), 0o755);
        files::mkdir(dir.path().join("home"));
        let state = dir.path().join("state");
        Self { dir, programs, state, runs_as: None }
    }

    /// The same for an ordinary user: [`user::NOBODY`] if the test runs as root.
    pub fn of_ordinary_user(programs: Programs) -> Self {
        let mut site = Self::new(programs);
        if user::is_root() {
            site.runs_as = Some(user::NOBODY);
            site.programs.open_to_everybody();
            user::give_all(site.dir.path(), user::NOBODY);
        }
        site
    }

    /// Puts the state directory somewhere else.
    pub fn set_state(&mut self, state: PathBuf) {
        self.state = state;
    }

    /// The programs, as they are run here.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// A path in this place.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.path("ckpt.sock")
    }

    /// The daemon's configuration file. It is not there unless a test writes it.
    pub fn config(&self) -> PathBuf {
        self.path("config.toml")
    }

    /// Makes an empty directory, owned by whom the programs run as.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        files::mkdir(&path);
        self.hand_over(&path);
        path
    }

    /// Makes a directory with one small file in it.
    pub fn workspace(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        files::write(path.join("file"), "content\n");
        self.hand_over(&path);
        path
    }

    /// Gives a tree to whom the programs run as.
    pub fn hand_over(&self, path: &Path) {
        if let Some(uid) = self.runs_as {
            user::give_all(path, uid);
        }
    }

    /// A command with nothing of this process's environment but a path, in this place.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.path("home"))
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        if let Some(uid) = self.runs_as {
            user::run_as(&mut command, uid);
        }
        command
    }

    /// The daemon's command: `cofferdam serve` on this place's state directory and socket.
    pub fn serve(&self) -> Command {
        let mut command = self.command(&self.programs.cofferdam);
        command.arg("serve");
        self.tell(command)
    }

    /// The drop-in daemon's command.
    pub fn ws_ckpt_daemon(&self) -> Command {
        let mut command = self.command(&self.programs.ws_ckpt);
        command.arg("daemon");
        self.tell(command)
    }

    fn tell(&self, mut command: Command) -> Command {
        command.arg("--state-dir").arg(&self.state).arg("--socket").arg(self.socket());
        command.arg("--config").arg(self.config());
        command
    }

    /// `ws-ckpt` with these arguments, told by environment variables which daemon is meant.
    pub fn ws_ckpt(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.programs.ws_ckpt);
        command.args(arguments).env("WS_CKPT_SOCKET", self.socket()).env("COFFERDAM_STATE_DIR", &self.state);
        command
    }

    /// `cofferdam` with these arguments, told by environment variables which daemon is meant.
    pub fn cofferdam(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.programs.cofferdam);
        command.args(arguments).env("WS_CKPT_SOCKET", self.socket()).env("COFFERDAM_STATE_DIR", &self.state);
        command
    }

    /// Starts the daemon and waits until it serves.
    pub fn start(&self) -> Daemon {
        Daemon::start(&mut self.serve(), &self.socket())
    }

    /// Starts a daemon in which `fault` happens: `STEP[#N]=kill`, `=eio` or `=enospc`.
    pub fn start_with_fault(&self, fault: &str) -> Daemon {
        Daemon::start(self.serve().env("COFFERDAM_FAULT", fault), &self.socket())
    }

    /// Has the store checked to the last byte, beside a running daemon or without one, and fails unless it is sound.
    /// Returns how many snapshots it says there are.
    #[track_caller]
    pub fn check(&self) -> u64 {
        let ran = run(&mut self.cofferdam(&["ckpt", "check", "--read-data"]));
        assert_eq!(ran.code, 0, "the store is not sound: {ran:?}");
        first_count(&ran.stdout)
    }
}

/// The number before the first `snapshots`.
fn first_count(text: &str) -> u64 {
    let words: Vec<_> = text.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("snapshot"));
    let number = at.and_then(|at| at.checked_sub(1)).and_then(|at| words[at].parse().ok());
    number.unwrap_or_else(|| panic!("no number of snapshots in {text:?}"))
}

impl Drop for Site {
    fn drop(&mut self) {
        // A sealed directory would outlive its test.
        if !std::thread::panicking() {
            files::remove(self.dir.path());
        }
    }
}

/// What became of a command.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; negative if a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    Ran {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| -signal)).unwrap()
}

/// A running daemon. Killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    socket: PathBuf,
    /// The first line it printed.
    ready: String,
    /// In a mutex only so that threads of a test may share the daemon.
    stdout: Mutex<Receiver<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Daemon {
    /// Starts a daemon that serves `socket`, and waits for the line by which it says that it does.
    #[track_caller]
    pub fn start(command: &mut Command, socket: &Path) -> Self {
        let mut daemon = Self::spawn(command, socket);
        match daemon.next_line() {
            Ok(line) => daemon.ready = line,
            Err(RecvTimeoutError::Timeout) => panic!("{command:?} neither serves nor ends"),
            Err(RecvTimeoutError::Disconnected) => {
                let (code, stderr) = daemon.wait();
                panic!("{command:?} ended with {code} before it served:\n{stderr}");
            }
        }
        daemon
    }

    /// Starts a daemon and does not wait.
    pub fn spawn(command: &mut Command, socket: &Path) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let (lines, stdout) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test may have lost interest.
                let _ = lines.send(line);
            }
        });
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            socket: socket.to_owned(),
            ready: String::new(),
            stdout: Mutex::new(stdout),
            stderr: Some(stderr),
        }
    }

    fn next_line(&self) -> Result<String, RecvTimeoutError> {
        self.stdout.lock().unwrap().recv_timeout(PATIENCE)
    }

    /// The next line it prints.
    #[track_caller]
    pub fn line(&self) -> String {
        self.next_line().unwrap_or_else(|error| panic!("it prints nothing more: {error}"))
    }

    /// The line by which it said that it serves.
    pub fn ready_line(&self) -> &str {
        &self.ready
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection to it.
    pub fn connect(&self) -> Wire {
        Wire::connect(&self.socket)
    }

    /// Sends a request on a connection of its own.
    #[track_caller]
    pub fn call(&self, request: &WsCkptRequest) -> WsCkptResponse {
        self.connect().call(request)
    }

    /// Sends a request during which a fault ends the daemon, and waits for that end.
    #[track_caller]
    pub fn call_to_death(mut self, request: &WsCkptRequest) {
        let mut wire = self.connect();
        wire.send(request);
        let answer = wire.receive();
        assert_eq!(answer, None, "the fault did not happen");
        let (code, stderr) = self.wait();
        assert_eq!(code, -(Signal::SIGKILL as i32), "{stderr}");
    }

    /// Sends a request that must fail; returns code and text.
    #[track_caller]
    pub fn refused(&self, request: &WsCkptRequest) -> (WsCkptErrorCode, String) {
        error_of(self.call(request))
    }

    /// Registers a workspace; returns its id.
    #[track_caller]
    pub fn init(&self, workspace: impl AsRef<Path>) -> String {
        match self.call(&ask::init(workspace)) {
            WsCkptResponse::InitOk { ws_id } => ws_id,
            other => panic!("{other:?}"),
        }
    }

    /// Takes a snapshot.
    #[track_caller]
    pub fn checkpoint(&self, workspace: impl AsRef<Path>, id: &str) {
        let expected = WsCkptResponse::CheckpointOk { snapshot_id: id.to_owned() };
        assert_eq!(self.call(&ask::checkpoint(workspace, id)), expected);
    }

    /// Rolls back.
    #[track_caller]
    pub fn rollback(&self, workspace: impl AsRef<Path>, to: &str) {
        match self.call(&ask::rollback(workspace, to)) {
            WsCkptResponse::RollbackOk { to: reached, .. } => assert_eq!(reached, to),
            other => panic!("{other:?}"),
        }
    }

    /// The snapshots of a workspace, oldest first.
    #[track_caller]
    pub fn list(&self, workspace: impl AsRef<Path>) -> Vec<SnapshotEntry> {
        match self.call(&ask::list(workspace)) {
            WsCkptResponse::ListOk { snapshots } => snapshots,
            other => panic!("{other:?}"),
        }
    }

    /// The ids of the snapshots of a workspace, oldest first.
    #[track_caller]
    pub fn ids(&self, workspace: impl AsRef<Path>) -> Vec<String> {
        self.list(workspace).into_iter().map(|entry| entry.id).collect()
    }

    /// How two trees of a workspace differ.
    #[track_caller]
    pub fn diff(&self, workspace: impl AsRef<Path>, from: &str, to: &str) -> Vec<DiffEntry> {
        match self.call(&ask::diff(workspace, from, to)) {
            WsCkptResponse::DiffOk { changes } => changes,
            other => panic!("{other:?}"),
        }
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        self.wait();
    }

    /// Asks it to stop, and waits until it has; returns its exit code and what it complained about.
    pub fn stop(mut self) -> (i32, String) {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    /// Waits until it has ended; returns its exit code (negative: a signal) and what it complained about.
    #[track_caller]
    pub fn wait(&mut self) -> (i32, String) {
        // Its end closes its stdout, and this channel with it.
        loop {
            match self.next_line() {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("the daemon does not end"),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().map(|reader| reader.join().unwrap()).unwrap_or_default();
        (code(status), stderr)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        end(&mut self.child, self.stderr.take(), "the daemon");
    }
}

/// Whether `path` is a socket that only its owner may use.
pub fn is_private_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path)
        .is_ok_and(|meta| meta.file_type().is_socket() && meta.permissions().mode() & 0o777 == 0o600)
}
