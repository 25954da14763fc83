//! The isolation pod's sidecar in a place of its own, and a host of it that can also misbehave.

mod place;
mod words;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::PidfdFlags;
use serde_json::{Value, json};

use crate::process::end;
use crate::wire::PATIENCE;

pub use place::PodSite;
pub use words::{ended, held, is_event, reserve, told, turn, with};

/// The longest line a sidecar may print, without its newline.
const MAX_LINE: usize = 4 << 20;

/// A running sidecar and its host. Killed when dropped.
#[derive(Debug)]
pub struct Sidecar {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Until somebody listens.
    stdout: Option<ChildStdout>,
    lines: Option<Receiver<Vec<u8>>>,
    stderr: Option<JoinHandle<String>>,
    /// Lines that came before the answer somebody waited for.
    passed: VecDeque<Value>,
    asked: u64,
}

impl Sidecar {
    /// Starts a sidecar whose output is read from now on.
    #[track_caller]
    pub fn spawn(command: &mut Command) -> Self {
        let mut sidecar = Self::spawn_unheard(command);
        sidecar.listen();
        sidecar
    }

    /// Starts a sidecar whose output nobody reads before [`Sidecar::listen`].
    #[track_caller]
    pub fn spawn_unheard(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            child,
            lines: None,
            stderr: Some(stderr),
            passed: VecDeque::new(),
            asked: 0,
        }
    }

    /// Reads its output from now on.
    pub fn listen(&mut self) {
        let mut output = BufReader::new(self.stdout.take().unwrap());
        let (lines, received) = channel();
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                match output.read_until(b'\n', &mut line) {
                    // The test may have lost interest.
                    Ok(read) if read > 0 => drop(lines.send(line)),
                    _ => return,
                }
            }
        });
        self.lines = Some(received);
    }

    /// Closes the host's end of its output, of which nothing was read.
    pub fn hang_up(&mut self) {
        drop(self.stdout.take().unwrap());
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request under an id of its own, which is returned, and does not wait.
    pub fn send(&mut self, method: &str, params: Value) -> String {
        self.asked += 1;
        let id = format!("q{}", self.asked);
        self.send_line(json!({"id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Sends bytes and a newline.
    pub fn send_line(&mut self, line: impl AsRef<[u8]>) {
        self.send_bytes([line.as_ref(), b"\n"].concat());
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdin.as_mut().unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// The host's end of its input, for a thread that writes without reading.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    /// Says that nothing more will be sent.
    pub fn end(&mut self) {
        drop(self.stdin.take());
    }

    /// The next line it prints; `None` if its output has ended.
    #[track_caller]
    pub fn line(&mut self) -> Option<Value> {
        let line = self.passed.pop_front();
        line.or_else(|| self.fresh_line())
    }

    #[track_caller]
    fn fresh_line(&mut self) -> Option<Value> {
        match self.lines.as_ref().unwrap().recv_timeout(PATIENCE) {
            Ok(line) => Some(frame(&line)),
            Err(RecvTimeoutError::Timeout) => panic!("the sidecar says nothing; before: {:?}", self.passed),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The next line that is wanted; the others stay in their order.
    #[track_caller]
    pub fn await_line(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.passed.iter().position(&wanted) {
            return self.passed.remove(at).unwrap();
        }
        loop {
            let Some(line) = self.fresh_line() else { self.has_ended() };
            match wanted(&line) {
                true => return line,
                false => self.passed.push_back(line),
            }
        }
    }

    /// The answer of that id.
    #[track_caller]
    pub fn answer(&mut self, id: &str) -> Value {
        self.await_line(|line| line.get("id").is_some_and(|answered| answered == id))
    }

    /// The next answer to a line without a usable id.
    #[track_caller]
    pub fn answer_without_id(&mut self) -> Value {
        self.await_line(|line| line.get("id").is_some_and(Value::is_null))
    }

    /// The next event of that kind, its params.
    #[track_caller]
    pub fn event(&mut self, kind: &str) -> Value {
        self.await_line(|line| is_event(line, kind))["params"].clone()
    }

    /// The next event of that kind about a task, its params.
    #[track_caller]
    pub fn event_of(&mut self, kind: &str, task: &str) -> Value {
        self.await_line(|line| is_event(line, kind) && line["params"]["taskId"] == task)["params"].clone()
    }

    /// Waits until an event shows the task in that status; returns the task.
    #[track_caller]
    pub fn becomes(&mut self, task: &str, status: &str) -> Value {
        let wanted = |line: &Value| {
            let params = &line["params"];
            is_event(line, "task.changed") && params["taskId"] == task && params["status"] == status
        };
        self.await_line(wanted)["params"]["task"].clone()
    }

    /// Everything that was told and not yet looked at, up to now: whatever the requests so far led to.
    #[track_caller]
    pub fn heard(&mut self) -> Vec<Value> {
        // State requests are answered in their order, each before its events.
        let id = self.send("config.get", json!({}));
        let _ = self.answer(&id);
        self.passed.drain(..).collect()
    }

    /// Sends a request and returns the line that answers it.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(&id)
    }

    /// Sends a request that must succeed; returns its result.
    #[track_caller]
    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params.clone());
        let line = self.answer(&id);
        match line.get("result") {
            Some(result) => result.clone(),
            None => panic!("{method} {}: {line}", brief(&params)),
        }
    }

    /// Sends a request that must fail; returns code and data.
    #[track_caller]
    pub fn err(&mut self, method: &str, params: Value) -> (String, Value) {
        let id = self.send(method, params.clone());
        let line = self.answer(&id);
        match line.get("error") {
            Some(error) => (error["code"].as_str().unwrap().to_owned(), error["data"].clone()),
            None => panic!("{method} {} did not fail: {line}", brief(&params)),
        }
    }

    /// Sends a request that must fail with that code; returns the whole error.
    #[track_caller]
    pub fn refused(&mut self, code: &str, method: &str, params: Value) -> Value {
        let id = self.send(method, params.clone());
        let line = self.answer(&id);
        assert_eq!(line["error"]["code"], code, "{method} {}: {line}", brief(&params));
        line["error"].clone()
    }

    /// Changes the configuration, with nothing to remark; returns it.
    #[track_caller]
    pub fn configure(&mut self, patch: Value) -> Value {
        let result = self.ok("config.set", json!({"patch": patch}));
        assert_eq!(result["messages"], json!([]), "{patch}");
        result["config"].clone()
    }

    /// A task.
    #[track_caller]
    pub fn task(&mut self, task: &str) -> Value {
        self.ok("task.get", json!({"taskId": task}))["task"].clone()
    }

    /// The status of a task.
    #[track_caller]
    pub fn status(&mut self, task: &str) -> String {
        self.task(task)["status"].as_str().unwrap().to_owned()
    }

    /// All tasks.
    #[track_caller]
    pub fn tasks(&mut self) -> Vec<Value> {
        self.ok("task.list", json!({}))["tasks"].as_array().unwrap().clone()
    }

    /// Reserves a task.
    #[track_caller]
    pub fn reserve(&mut self, task: &str) -> Value {
        self.ok("task.reserve", reserve(task))
    }

    /// Reserves a task that gets a slot, and begins its first turn.
    #[track_caller]
    pub fn run(&mut self, task: &str) {
        assert_eq!(self.reserve(task)["startNow"], true, "{task}");
        self.ok("task.markRunning", held(task));
        self.ok("task.turnStarted", turn(task, 1));
    }

    /// Ends a task's first turn.
    #[track_caller]
    pub fn complete(&mut self, task: &str) -> Value {
        self.ok("task.turnEnded", ended(task, 1, "completed"))["task"].clone()
    }

    /// Runs a task to its end.
    #[track_caller]
    pub fn finish(&mut self, task: &str) {
        self.run(task);
        self.complete(task);
    }

    /// Ends it in good order; returns what it logged to stderr.
    #[track_caller]
    pub fn shutdown(mut self) -> String {
        assert_eq!(self.ok("shutdown", json!({})), json!({"ok": true}));
        let (code, stderr) = self.wait();
        assert_eq!(code, 0, "{stderr}");
        stderr
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.wait();
    }

    /// The same; returns what it had said and nobody had looked at. A line of which only a part came is no line.
    pub fn kill_and_hear(mut self) -> Vec<Value> {
        self.signal(Signal::SIGKILL);
        let rest = self.lines.as_ref().unwrap().iter().filter(|line| line.ends_with(b"\n"));
        let said = self.passed.drain(..).chain(rest.map(|line| frame(&line))).collect();
        self.wait();
        said
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    /// Whether it has ended within `time` from now.
    pub fn ends_within(&self, time: Duration) -> bool {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let process = rustix::process::pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let time = Timespec::try_from(time).unwrap();
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&time)).unwrap() == 1
    }

    /// Waits until it has ended; returns its exit code (negative: a signal) and what it logged to stderr.
    #[track_caller]
    pub fn wait(&mut self) -> (i32, String) {
        assert!(self.ends_within(PATIENCE), "the sidecar does not end");
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().map(|reader| reader.join().unwrap()).unwrap_or_default();
        (status.code().or(status.signal().map(|signal| -signal)).unwrap(), stderr)
    }

    #[track_caller]
    fn has_ended(&mut self) -> ! {
        let (code, stderr) = self.wait();
        panic!("the sidecar has ended with {code}; before: {:?}\n{stderr}", self.passed)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        end(&mut self.child, self.stderr.take(), "the sidecar");
    }
}

/// A printed line, which must be an answer or an event as the contract has them.
#[track_caller]
fn frame(line: &[u8]) -> Value {
    let text = std::str::from_utf8(line).unwrap();
    let text = text.strip_suffix('\n').unwrap_or_else(|| panic!("half a line: {text}"));
    assert!(text.len() <= MAX_LINE, "a line of {} bytes", text.len());
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    match keys[..] {
        ["id", "result"] => assert!(value["id"].is_string() && value["result"].is_object(), "{text}"),
        ["error", "id"] | ["id", "error"] => {
            assert!(value["id"].is_string() || value["id"].is_null(), "{text}");
            let error = value["error"].as_object().unwrap();
            let mut keys: Vec<_> = error.keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["code", "data", "message"], "{text}");
            assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{text}");
        }
        ["method", "params"] => {
            assert!(value["method"] == "event" && value["params"]["kind"].is_string(), "{text}");
        }
        _ => panic!("no frame of the contract: {text}"),
    }
    value
}

/// As much of params as a person reads.
fn brief(params: &Value) -> String {
    let mut text = params.to_string();
    if let Some((at, _)) = text.char_indices().nth(300) {
        text.truncate(at);
        text.push('…');
    }
    text
}
