//! A running `cosh-core --headless`, and its client.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::SessionSite;
use crate::files::{Locked, read, write};
use crate::program::LineProgram;

/// A conversation that runs. Killed when dropped.
#[derive(Debug)]
pub struct Headless(LineProgram);

/// The settings of a mock that repeats what the user has said.
const MOCK: &str = r#"
    [ai]
    active_provider = "demo"
    [ai.providers.demo]
    type = "mock"
    model = "mock-history"
"#;

impl SessionSite {
    /// Has a mock answer that repeats what the user has said.
    pub fn use_mock(&self) {
        self.configure(MOCK);
    }

    /// Has a shell script answer, which writes the wire's events.
    pub fn use_script(&self, script: &str) {
        let path = self.home().join("provider.sh");
        write(&path, script);
        self.configure(&format!(
            r#"
                [ai]
                active_provider = "script"
                [ai.providers.script]
                type = "command"
                output = "events"
                model = "stub-model"
                command = ["sh", "{}"]
            "#,
            path.display()
        ));
    }

    /// Begins a conversation in the site's workspace.
    #[track_caller]
    pub fn converse(&self, arguments: &[&str]) -> Headless {
        let workspace = self.workspace();
        let mut all = vec!["--headless", "--workspace", workspace.to_str().unwrap()];
        all.extend(arguments);
        Headless(LineProgram::spawn(&mut self.core(&all), "cosh-core"))
    }

    /// Holds a conversation of the site's workspace that needs nothing from its client: its lines.
    #[track_caller]
    pub fn one_shot(&self, arguments: &[&str]) -> Vec<Value> {
        let mut headless = self.converse(arguments);
        headless.end();
        headless.ends(0)
    }

    /// What is stored of a session of the site's workspace.
    #[track_caller]
    pub fn stored(&self, id: &str) -> Value {
        serde_json::from_slice(&read(self.stored_at(id))).unwrap()
    }

    /// Where a session of the site's workspace is stored.
    pub fn stored_at(&self, id: &str) -> PathBuf {
        self.scope().join(format!("{id}.json"))
    }

    /// Writes a session as if somebody else did, for as long as the result is kept.
    pub fn lock(&self, id: &str) -> Locked {
        Locked::new(self.scope().join(format!(".{id}.lock")))
    }
}

impl Headless {
    /// Speaks with a program that was started in another way.
    pub fn of(program: LineProgram) -> Self {
        Self(program)
    }

    /// Sends a line.
    pub fn send(&mut self, line: Value) {
        self.0.send_line(line.to_string());
    }

    /// Sends a control request.
    pub fn request(&mut self, subtype: &str) {
        self.send(json!({"type": "control_request", "request_id": "r", "request": {"subtype": subtype}}));
    }

    /// Says something as the user.
    pub fn say(&mut self, text: &str) {
        self.send(json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    /// Answers a request of the program.
    pub fn respond(&mut self, request: &str, response: Value) {
        let response = json!({"subtype": "success", "request_id": request, "response": response});
        self.send(json!({"type": "control_response", "response": response}));
    }

    /// The next line; `None` if there are no more.
    #[track_caller]
    pub fn line(&mut self) -> Option<Value> {
        self.0.next_line().map(|line| {
            let text = std::str::from_utf8(&line).unwrap();
            let text = text.strip_suffix('\n').unwrap_or_else(|| panic!("half a line: {text}"));
            serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
        })
    }

    /// The next line of that type; those before it are dropped.
    #[track_caller]
    pub fn next(&mut self, kind: &str) -> Value {
        loop {
            match self.line() {
                Some(line) if line["type"] == kind => return line,
                Some(_) => {}
                None => panic!("no {kind} comes: {:?}", self.wait()),
            }
        }
    }

    /// Says something and waits for the turn's end: the result.
    #[track_caller]
    pub fn turn(&mut self, text: &str) -> Value {
        self.say(text);
        self.next("result")
    }

    /// A turn that must go well; what the answer was.
    #[track_caller]
    pub fn answer_to(&mut self, text: &str) -> String {
        self.say(text);
        let answer = self.next("assistant");
        let result = self.next("result");
        assert_eq!(result["subtype"], "success", "{result}");
        answer["message"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Asks who is there.
    #[track_caller]
    pub fn initialize(&mut self) -> Value {
        self.request("initialize");
        self.next("system")
    }

    /// Waits for its end; what it said until then.
    #[track_caller]
    pub fn ends(mut self, code: i32) -> Vec<Value> {
        let lines: Vec<Value> = std::iter::from_fn(|| self.line()).collect();
        let (ended, stderr) = self.wait();
        assert_eq!(ended, code, "{lines:?}\n{stderr}");
        lines
    }
}

impl Deref for Headless {
    type Target = LineProgram;

    fn deref(&self) -> &LineProgram {
        &self.0
    }
}

impl DerefMut for Headless {
    fn deref_mut(&mut self) -> &mut LineProgram {
        &mut self.0
    }
}
