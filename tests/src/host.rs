//! A daemon that hosts tasks, in a place of its own, spoken with as people do: over the command line.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_protocol::host::{CoreState, CoreStatus, HostEvent, State};
use serde_json::Value;

use crate::files;
use crate::program::LineProgram;
use crate::site::{Daemon, Programs, Ran, Site, run};
use crate::wire::PATIENCE;

/// Who keeps the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// The daemon itself.
    Embedded,
    /// `isolation-pod-core`, in a process of its own.
    Sidecar,
}

/// A place for a daemon that hosts tasks. Removed when dropped.
#[derive(Debug)]
pub struct HostSite {
    site: Site,
    /// `isolation-pod-core`, if it keeps the tasks.
    pod_core: Option<PathBuf>,
    scale: u32,
    http: &'static str,
    variables: Vec<(&'static str, String)>,
}

impl HostSite {
    /// A place in which programs run as whoever runs the test, and in which the core's program keeps the tasks, if it is named.
    pub fn new(programs: Programs, pod_core: Option<PathBuf>) -> Self {
        Self { pod_core, ..Self::at(Site::new(programs)) }
    }

    /// A place in which programs run as an ordinary user, also if root runs the test.
    pub fn of_ordinary_user(programs: Programs) -> Self {
        Self::at(Site::of_ordinary_user(programs))
    }

    fn at(site: Site) -> Self {
        Self { site, pod_core: None, scale: 1, http: "off", variables: Vec::new() }
    }

    /// Has the daemon serve HTTP at a free port.
    pub fn with_http(mut self) -> Self {
        self.http = "127.0.0.1:0";
        self
    }

    /// Gives the daemon a file of presets.
    pub fn with_presets(self, toml: &str) -> Self {
        let state = self.site.state().to_owned();
        files::write(state.join("pods.toml"), toml);
        files::chmod(&state, 0o700);
        self.site.hand_over(&state);
        self
    }

    /// Gives the daemon a variable.
    pub fn with_variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Has a shell script confine agents, which speaks as a supervisor does: it confines nothing, and finds what a test wants found.
    pub fn with_supervisor(self, script: &str) -> Self {
        let program = self.path("supervisor");
        files::write(&program, script);
        files::chmod(&program, 0o755);
        self.with_variable("COFFERDAM_POD_SUPERVISOR", program.to_str().unwrap())
    }

    /// Has the daemon's monotonic time run that many times faster.
    pub fn scaled(mut self, scale: u32) -> Self {
        self.scale = scale;
        self
    }

    /// The place itself, for what has nothing to do with tasks.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// A path in this place.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.site.path(name)
    }

    /// Starts the daemon and waits until tasks can be started.
    #[track_caller]
    pub fn start(&self) -> Daemon {
        self.start_at(self.http)
    }

    /// The same, with HTTP at that address.
    #[track_caller]
    pub fn start_at(&self, http: &str) -> Daemon {
        let daemon = self.serve(http, "");
        self.until_core(|core| core.status == CoreStatus::Ready);
        daemon
    }

    /// The same, with rules for what fails in it.
    #[track_caller]
    pub fn start_faulty(&self, fault: &str) -> Daemon {
        let daemon = self.serve(self.http, fault);
        self.until_core(|core| core.status == CoreStatus::Ready);
        daemon
    }

    /// Starts the daemon and waits until it serves, whatever becomes of its core.
    #[track_caller]
    pub fn start_at_once(&self) -> Daemon {
        self.serve(self.http, "")
    }

    #[track_caller]
    fn serve(&self, http: &str, fault: &str) -> Daemon {
        let mut serve = self.site.serve();
        serve.args(["--http", http]).env("COFFERDAM_TIME_SCALE", self.scale.to_string());
        serve.env("COFFERDAM_FAULT", fault).envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(program) = &self.pod_core {
            serve.arg("--pod-core").arg(program);
        }
        Daemon::start(&mut serve, &self.site.socket())
    }

    /// The same, with a sandbox root, the scripted agent, and these changes of the configuration.
    #[track_caller]
    pub fn start_with(&self, changes: &[&str]) -> Daemon {
        let daemon = self.start();
        let root = format!("sandboxRoot={}", self.root().display());
        self.ok(&[&["config", "set", &root, "presetId=fake"], changes].concat());
        daemon
    }

    /// The same, with the preset `shell` and the tool it needs.
    #[track_caller]
    pub fn start_with_shell(&self) -> Daemon {
        let daemon = self.start();
        let root = format!("sandboxRoot={}", self.root().display());
        self.ok(&["config", "set", &root, "presetId=shell", "allowedTools=bash"]);
        daemon
    }

    /// The same, with the preset `cosh`, and the tool of its that asks.
    #[track_caller]
    pub fn start_with_cosh(&self) -> Daemon {
        let daemon = self.start();
        let root = format!("sandboxRoot={}", self.root().display());
        self.ok(&["config", "set", &root, "presetId=cosh", "allowedTools=bash"]);
        daemon
    }

    /// Writes a file that the daemon's user owns.
    pub fn give(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        files::write(&path, content);
        let top = Path::new(name).iter().next().map_or(path.clone(), |top| self.path(top));
        self.site.hand_over(&top);
        path
    }

    /// What the program that manages sessions answers.
    #[track_caller]
    pub fn session_control(&self, cosh_core: &str, request: &Value) -> Value {
        let mut command = self.site.command(cosh_core);
        command.arg("--session-control").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
        let printed = child.wait_with_output().unwrap().stdout;
        serde_json::from_slice(&printed).unwrap_or_else(|error| panic!("{error}: {printed:?}"))
    }

    /// The sandbox root.
    pub fn root(&self) -> PathBuf {
        self.path("pods")
    }

    /// Another program, as whoever has the daemon of this place.
    pub fn program(&self, name: &str) -> Command {
        self.site.command(name)
    }

    /// `cofferdam` with these arguments, for the daemon of this place.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.site.cofferdam(arguments)
    }

    /// Runs `cofferdam` with these arguments to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        run(&mut self.command(arguments))
    }

    /// The same, where that must succeed; returns what it printed.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran.stdout
    }

    /// The document that a verb prints.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Starts a task, waits for nothing, and returns its id.
    #[track_caller]
    pub fn task(&self, script: &str) -> String {
        self.json(&["task", "run", script])["taskId"].as_str().unwrap().to_owned()
    }

    /// What is known of a task.
    #[track_caller]
    pub fn row(&self, task: &str) -> Value {
        self.json(&["task", "show", task])
    }

    /// Starts `cofferdam`; what it complains about comes between its lines.
    pub fn spawn(&self, arguments: &[&str]) -> LineProgram {
        let command = self.command(arguments);
        let mut both = self.site.command("/bin/sh");
        both.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            both.env(name, value.unwrap_or_default());
        }
        LineProgram::spawn(&mut both, "cofferdam")
    }

    /// Waits until a task is so.
    #[track_caller]
    pub fn until(&self, task: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut events = self.events();
        let mut row = self.row(task);
        while !is_so(&row) {
            if let HostEvent::TaskChanged { task_id, task: changed } = events.next_event()
                && task_id == task
            {
                row = serde_json::to_value(changed).unwrap();
            }
        }
        row
    }

    /// Waits until the core is so.
    #[track_caller]
    pub fn until_core(&self, is_so: impl Fn(&CoreState) -> bool) -> CoreState {
        let mut events = self.events();
        let mut core = self.core();
        while !is_so(&core) {
            if let HostEvent::CoreChanged { core: changed } = events.next_event() {
                core = changed;
            }
        }
        core
    }

    /// How the core is.
    pub fn core(&self) -> CoreState {
        let mut stream = self.control();
        write!(stream, "POST /api/v1/pod/getState HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}")
            .unwrap();
        let answer = std::io::read_to_string(stream).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str::<State>(body).unwrap_or_else(|error| panic!("{error}: {answer}")).core
    }

    /// Listens to what the daemon says unasked.
    pub fn events(&self) -> Events {
        let mut stream = self.control();
        write!(stream, "GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut stream = BufReader::new(stream);
        let mut first = String::new();
        stream.read_line(&mut first).unwrap();
        assert!(first.starts_with("HTTP/1.1 200"), "{first}");
        Events { stream }
    }

    /// A connection to the control socket.
    pub fn control(&self) -> UnixStream {
        let stream = UnixStream::connect(self.site.state().join("run/control.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Makes a directory outside of the sandbox root, and returns its path as text.
    pub fn outside(&self) -> String {
        let path = self.path("outside");
        files::mkdir(&path);
        self.site.hand_over(&path);
        path.to_str().unwrap().to_owned()
    }
}

/// Somebody who listens to the daemon.
#[derive(Debug)]
pub struct Events {
    stream: BufReader<UnixStream>,
}

impl Events {
    /// The next event.
    #[track_caller]
    pub fn next_event(&mut self) -> HostEvent {
        loop {
            let mut line = String::new();
            let read = self.stream.read_line(&mut line).unwrap();
            assert!(read > 0, "the daemon says nothing any more");
            if let Some(json) = line.strip_prefix("data: ") {
                return serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
            }
        }
    }
}
