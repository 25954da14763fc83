//! What is said with the program in one turn, line by line: it is told who is here and what the user says, and asked nothing;
//! what it asks is answered by what the task allows.

use std::collections::VecDeque;
use std::time::Duration;

use cofferdam_protocol::session::{bounded, limits};
use serde_json::{Value, json};

use super::tools::{asks, is_own, ours};
use crate::host::agent::AgentEvent;
use crate::host::agent::command::output::{Printed, too_long};
use crate::host::agent::command::texts::Tail;
use crate::host::agent::jsonl::{Item, Outcome, Request, Stream, event};
use crate::session::recovery::{ResultLine, RunObserver};

/// How long a program may take to end after its turn has.
const ENDING: Duration = Duration::from_secs(5);
/// How long an interrupted turn may take to end, before its program is ended.
const INTERRUPTED: Duration = Duration::from_millis(1500);
/// How many calls may wait for what becomes of them.
const HELD: usize = 256;
/// The longest id of a call that waits, and of a request that is answered, in bytes: programs give them, and they are kept.
const ID: usize = 256;
/// How much of the arguments of a call that waits is kept, in bytes. The guard goes by its name.
const HELD_INPUT: usize = 4000;

/// One turn.
#[derive(Debug)]
pub(in crate::host::agent::command) struct Talk {
    /// The tools that the task allows, by our names.
    allowed: Vec<String>,
    stream: Stream,
    observer: RunObserver,
    waiting: VecDeque<AgentEvent>,
    answers: VecDeque<Value>,
    /// Calls that the task does not allow, by their ids. One that is carried out all the same is for the guard.
    held: VecDeque<(String, AgentEvent)>,
    outcome: Option<Outcome>,
    too_long: bool,
}

impl Talk {
    /// A turn in which the user says this.
    pub(super) fn new(prompt: &str, session_id: &str, allowed: &[String]) -> Self {
        let user = json!({
            "type": "user",
            "message": {"role": "user", "content": prompt},
            "session_id": session_id,
        });
        Self {
            allowed: allowed.to_vec(),
            stream: Stream::default(),
            observer: RunObserver::default(),
            waiting: VecDeque::new(),
            answers: VecDeque::from([control("initialize"), user]),
            held: VecDeque::new(),
            outcome: None,
            too_long: false,
        }
    }

    /// Takes what was printed.
    pub(in crate::host::agent::command) fn push(&mut self, bytes: &[u8], complaints: &mut Tail) {
        for item in self.stream.push(bytes) {
            self.hear(item, complaints);
        }
    }

    /// Nothing more will be printed.
    pub(in crate::host::agent::command) fn finish(&mut self, complaints: &mut Tail) {
        for item in self.stream.finish() {
            self.hear(item, complaints);
        }
    }

    /// What is to be told.
    pub(in crate::host::agent::command) fn waiting(&self) -> &VecDeque<AgentEvent> {
        &self.waiting
    }

    /// The same, to be taken.
    pub(in crate::host::agent::command) fn waiting_mut(&mut self) -> &mut VecDeque<AgentEvent> {
        &mut self.waiting
    }

    /// The next line that the program reads.
    pub(in crate::host::agent::command) fn answer(&mut self) -> Option<String> {
        self.answers.pop_front().map(|line| format!("{line}\n"))
    }

    /// Whether the program is told nothing more.
    pub(in crate::host::agent::command) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// How long the program may take to end by itself, if it is to end.
    pub(in crate::host::agent::command) fn patience(&self) -> Option<Duration> {
        match self.too_long {
            true => Some(Duration::ZERO),
            false => self.outcome.as_ref().map(|_| ENDING),
        }
    }

    /// The turn is not wanted any more. How long the program may take to end it.
    pub(in crate::host::agent::command) fn interrupt(&mut self) -> Duration {
        self.answers.push_back(control("interrupt"));
        INTERRUPTED
    }

    /// What was said of the turn.
    pub(in crate::host::agent::command) fn printed(self) -> Printed {
        let unusable = self.too_long.then(too_long);
        Printed { outcome: self.outcome, session: self.observer, unusable }
    }

    fn hear(&mut self, item: Item, complaints: &mut Tail) {
        match item {
            Item::Session(id) => self.observer.session(&id),
            Item::Init(init) => {
                self.observer.init(init.resumable);
                self.waiting.extend(event(&Item::Init(init), |name| ours(name).to_owned()));
            }
            Item::ToolCall { id, name, input } => self.call(id, name, input),
            Item::ToolResult { id, text, is_error } => {
                // It was carried out, though nobody allowed it.
                if let Some(at) = self.held.iter().position(|(held, _)| *held == id) {
                    self.waiting.extend(self.held.remove(at).map(|(_, call)| call));
                }
                self.waiting.extend(event(&Item::ToolResult { id, text, is_error }, str::to_owned));
            }
            Item::Request { id, request } => self.answer_to(id, request),
            Item::Result(outcome) => {
                self.observer.result(&said(&outcome));
                self.outcome.get_or_insert(outcome);
            }
            Item::Complaint(text) => {
                complaints.push(text.as_bytes());
                complaints.push(b"\n");
            }
            Item::TooLong => self.too_long = true,
            Item::Text(_) | Item::Thinking(_) | Item::Status(_) => {
                self.waiting.extend(event(&item, str::to_owned));
            }
        }
    }

    fn call(&mut self, id: String, name: String, input: Value) {
        let allows = self.allows(&name);
        let own = is_own(&name);
        let call = Item::ToolCall { id: id.clone(), name, input };
        match event(&call, |name| ours(name).to_owned()) {
            // What it does with itself is no more than a thought.
            Some(AgentEvent::ToolCall { name, input }) if own => {
                self.waiting.push_back(AgentEvent::Thinking(format!("{name} {input}")));
            }
            Some(call) if allows => self.waiting.push_back(call),
            // What cannot be told by its id whether it is carried out counts as if it was.
            Some(call) if id.len() > ID => self.waiting.push_back(cut(call)),
            Some(call) => {
                self.held.push_back((id, cut(call)));
                if self.held.len() > HELD {
                    self.waiting.extend(self.held.pop_front().map(|(_, call)| call));
                }
            }
            None => {}
        }
    }

    fn allows(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == ours(name))
    }

    fn answer_to(&mut self, id: String, request: Request) {
        // A program need not read its answers, which are kept for it with the ids.
        if id.len() > ID {
            return;
        }
        let refused = match request {
            Request::CanUseTool { name, .. } if asks(&name) => {
                Some("nobody is there to be asked; decide yourself, or end with the question".to_owned())
            }
            Request::CanUseTool { name, .. } if is_own(&name) || self.allows(&name) => None,
            Request::CanUseTool { name, call, .. } => {
                // It is not carried out, so there is nothing to guard against.
                self.held.retain(|(held, _)| *held != call);
                let name = bounded(ours(&name), limits::SKIPPED_ID);
                Some(format!("this task does not allow {name}; do without it"))
            }
            Request::Other { subtype } if subtype == "auth_required" => {
                self.outcome.get_or_insert(Outcome {
                    is_error: true,
                    text:
                        "the agent's provider wants credentials; put them into ~/.copilot-shell/config.toml"
                            .to_owned(),
                    ..Outcome::default()
                });
                return;
            }
            Request::Other { .. } => Some("nobody is there to answer".to_owned()),
        };
        let response = match refused {
            None => json!({"behavior": "allow"}),
            Some(message) => json!({"behavior": "deny", "message": message}),
        };
        self.answers.push_back(json!({
            "type": "control_response",
            "response": {"subtype": "success", "request_id": id, "response": response},
        }));
    }
}

/// As much of a call as is kept.
fn cut(call: AgentEvent) -> AgentEvent {
    match call {
        AgentEvent::ToolCall { name, input } => {
            AgentEvent::ToolCall { name: bounded(&name, ID), input: bounded(&input, HELD_INPUT) }
        }
        other => other,
    }
}

/// The end of a turn, as the rules of sessions know it.
fn said(outcome: &Outcome) -> ResultLine<'_> {
    ResultLine {
        is_error: outcome.is_error,
        message: &outcome.text,
        error_code: outcome.error_code.as_deref(),
        session_error_code: outcome.session_error_code.as_deref(),
        session_error_phase: outcome.session_error_phase.as_deref(),
    }
}

fn control(subtype: &str) -> Value {
    json!({"type": "control_request", "request_id": subtype, "request": {"subtype": subtype}})
}
