//! The isolation pod's sidecar in a place of its own, and a host of it that can also misbehave.

mod place;
mod words;

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::program::LineProgram;

pub use place::PodSite;
pub use words::{ended, held, is_event, reserve, told, turn, with};

/// The longest line a sidecar may print, without its newline.
const MAX_LINE: usize = 4 << 20;

/// A running sidecar and its host. Killed when dropped.
#[derive(Debug)]
pub struct Sidecar {
    program: LineProgram,
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

    /// Starts a sidecar whose output nobody reads before [`LineProgram::listen`].
    #[track_caller]
    pub fn spawn_unheard(command: &mut Command) -> Self {
        let program = LineProgram::spawn_unheard(command, "the sidecar");
        Self { program, passed: VecDeque::new(), asked: 0 }
    }

    /// Sends a request under an id of its own, which is returned, and does not wait.
    pub fn send(&mut self, method: &str, params: Value) -> String {
        self.asked += 1;
        let id = format!("q{}", self.asked);
        self.send_line(json!({"id": id, "method": method, "params": params}).to_string());
        id
    }

    /// The next line it prints; `None` if its output has ended.
    #[track_caller]
    pub fn line(&mut self) -> Option<Value> {
        let line = self.passed.pop_front();
        line.or_else(|| self.fresh_line())
    }

    #[track_caller]
    fn fresh_line(&mut self) -> Option<Value> {
        self.program.next_line().map(|line| frame(&line))
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
        let rest = std::iter::from_fn(|| self.program.next_line()).filter(|line| line.ends_with(b"\n"));
        let said = self.passed.drain(..).chain(rest.map(|line| frame(&line))).collect();
        self.wait();
        said
    }

    #[track_caller]
    fn has_ended(&mut self) -> ! {
        let (code, stderr) = self.wait();
        panic!("the sidecar has ended with {code}; before: {:?}\n{stderr}", self.passed)
    }
}

impl Deref for Sidecar {
    type Target = LineProgram;

    fn deref(&self) -> &LineProgram {
        &self.program
    }
}

impl DerefMut for Sidecar {
    fn deref_mut(&mut self) -> &mut LineProgram {
        &mut self.program
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
