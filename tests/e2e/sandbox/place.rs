//! A place for a sandbox: a state directory, a home, a sandbox root with two tasks, and an outside.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Read, Write, pipe};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use cofferdam_protocol::pod::SandboxMode;
use cofferdam_storage::sandbox::{
    Launched, Limits, Order, PodUser, ProbeOrder, Program, Report, Stdio, default_hidden, launch,
};
use cofferdam_tests::{files, user};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::Way;

/// Longer than anything takes that does not hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place of a test's own.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    pub(crate) way: Way,
    program: File,
    /// A process of the daemon's user, for which the sandbox has no business.
    pub(crate) daemon: Child,
}

impl Place {
    pub(crate) fn new(way: Way) -> Self {
        let dir = tempfile::Builder::new().prefix("cofferdam-sandbox-").tempdir().unwrap();
        files::chmod(dir.path(), 0o755);
        let at = |name: &str| dir.path().join(name);
        for made in ["state/agents/task", "root/task", "root/other", "home/.config/tool", "outside"] {
            files::mkdir(at(made));
        }
        for file in
            ["state/secret", "root/other/secret", "home/secret", "home/.config/tool/key", "root/task/given"]
        {
            files::write(at(file), "content");
        }
        for name in
            ["write", "truncate", "link", "rename", "unlink", "chmod", "chown", "utime", "xattr", "flock"]
        {
            files::write(at("outside").join(name), "content");
        }
        for private in ["state", "root", "home"] {
            files::chmod(at(private), 0o700);
        }
        let mut sleep = Command::new("/usr/bin/sleep");
        sleep.arg("1000");
        if !way.root && user::is_root() {
            user::give_all(dir.path(), user::NOBODY);
            user::run_as(&mut sleep, user::NOBODY);
        }
        if way.root && !way.without.is_empty() {
            // Without a view of its own the private home is reached through the directories above it.
            files::chmod(at("state"), 0o711);
        }
        let program = File::open(env!("CARGO_BIN_EXE_cofferdam")).unwrap();
        // Left open on purpose: a descriptor that a program of the sandbox must not inherit.
        rustix::io::fcntl_setfd(&program, rustix::io::FdFlags::empty()).unwrap();
        Self { daemon: sleep.spawn().unwrap(), dir, way, program }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Whom the program runs as.
    pub(crate) fn uid(&self) -> u32 {
        if user::is_root() { user::NOBODY } else { rustix::process::geteuid().as_raw() }
    }

    /// An order for a python script, which finds the place in its environment.
    pub(crate) fn order(&self, script: &str) -> Order {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let env = [
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("OUTSIDE", text(self.path("outside"))),
            ("PLACE", text(self.dir.path().to_owned())),
            ("TASK", text(self.path("root/task"))),
            ("DAEMON", self.daemon.id().to_string()),
        ];
        let (state, root, home) = (self.path("state"), self.path("root"), self.path("home"));
        Order {
            task_dir: self.path("root/task"),
            mode: SandboxMode::WorkspaceWrite,
            private_parent: self.path("state/pods"),
            hidden: default_hidden(&state, &root, Some(&home), self.uid()),
            sandbox_root: root,
            real_home: Some(home),
            from_home: Vec::new(),
            home_files: Vec::new(),
            kept_home: None,
            readable: Vec::new(),
            writable: Vec::new(),
            user: Some(PodUser::default()),
            probe: None,
            program: Some(Program {
                argv: ["/usr/bin/python3", "-I", "-c", script].map(str::to_owned).to_vec(),
                env: env.map(|(name, value)| (name.to_owned(), value)).to_vec(),
                cwd: self.path("root/task"),
            }),
            limits: Limits::default(),
            grace_ms: 5000,
            least: Vec::new(),
            without: self.way.without.to_vec(),
        }
    }

    /// The test of the sandbox, outside.
    pub(crate) fn probe(&self, sockets: &[PathBuf]) -> ProbeOrder {
        let (places, sockets) = (vec![self.dir.path().to_owned()], sockets.to_vec());
        ProbeOrder { places, sockets, process: self.daemon.id() }
    }

    /// Starts an order.
    pub(crate) fn start(&self, order: &Order) -> Running {
        self.start_by(Command::new(self.program()), order)
    }

    /// The program, in words that any user can run.
    pub(crate) fn program(&self) -> String {
        format!("/proc/self/fd/{}", self.program.as_raw_fd())
    }

    /// Starts an order by a command that becomes the program, given one more argument.
    pub(crate) fn start_by(&self, command: Command, order: &Order) -> Running {
        self.start_with(command, order, &[])
    }

    /// The same with what its home files hold.
    pub(crate) fn start_with(&self, mut command: Command, order: &Order, files: &[OwnedFd]) -> Running {
        if !self.way.root && user::is_root() {
            user::run_as(&mut command, user::NOBODY);
        }
        let ((input, _), (output, theirs), (errors, their_errors)) =
            (pipe().unwrap(), pipe().unwrap(), pipe().unwrap());
        let stdio = Stdio { input: input.into(), output: theirs.into(), error: their_errors.into() };
        let Launched { supervisor, link } = launch(command, order, stdio, files).unwrap();
        link.set_read_timeout(Some(PATIENCE)).unwrap();
        let reports = BufReader::new(link.try_clone().unwrap());
        Running { supervisor, link: Some(link), reports, output, errors }
    }

    /// Runs an order to its end.
    pub(crate) fn run(&self, order: &Order) -> Ran {
        self.start(order).finish()
    }

    /// Runs a script to its end.
    #[track_caller]
    pub(crate) fn script(&self, script: &str) -> String {
        let ran = self.run(&self.order(script));
        assert_eq!(ran.exit(), Some((Some(0), None)), "{}: {ran:?}", self.way.name);
        ran.stdout
    }

    /// The programs that run in the sandbox and what they have started, known by their environment.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let mark = format!("PLACE={}", self.dir.path().display());
        let is_ours = |entry: &std::fs::DirEntry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let id = |entry: std::fs::DirEntry| Some(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        std::fs::read_dir("/proc").unwrap().flatten().filter(is_ours).filter_map(id).collect()
    }

    /// The private directories that are there.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.path("state/pods")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Fails unless nothing private is left.
    #[track_caller]
    pub(crate) fn nothing_left(&self) {
        assert!(self.left().is_empty(), "{}: {:?}", self.way.name, self.left());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        for name in ["state", "root", "home"] {
            let _ = std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755));
        }
    }
}

/// A supervisor at work.
pub(crate) struct Running {
    pub(crate) supervisor: Child,
    pub(crate) link: Option<UnixStream>,
    reports: BufReader<UnixStream>,
    pub(crate) output: PipeReader,
    errors: PipeReader,
}

impl Running {
    /// The next report; `None` at the end.
    pub(crate) fn report(&mut self) -> Option<Report> {
        let mut line = String::new();
        self.reports.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Waits until the program has written a line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Tells the supervisor something.
    pub(crate) fn tell(&mut self, line: &str) {
        let link = self.link.as_mut().unwrap();
        link.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits until all is over: every process that had the program's output has ended.
    pub(crate) fn finish(mut self) -> Ran {
        let (mut stdout, mut stderr, mut reports) = (String::new(), String::new(), Vec::new());
        self.output.read_to_string(&mut stdout).unwrap();
        self.errors.read_to_string(&mut stderr).unwrap();
        while let Some(report) = self.report() {
            reports.push(report);
        }
        self.supervisor.wait().unwrap();
        Ran { stdout, stderr, reports }
    }
}

/// What came of an order.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) reports: Vec<Report>,
}

impl Ran {
    /// How the program ended: exit code and signal.
    pub(crate) fn exit(&self) -> Option<(Option<i32>, Option<i32>)> {
        self.reports.iter().find_map(|report| match report {
            Report::Exited { code, signal } => Some((*code, *signal)),
            _ => None,
        })
    }

    /// Why nothing ran.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.reports.iter().find_map(|report| match report {
            Report::Failed { message } => Some(message.as_str()),
            _ => None,
        })
    }
}
