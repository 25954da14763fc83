//! One turn: answers and calls of tools until an answer calls none, then the disk, then the result.

use std::ops::ControlFlow;

use cofferdam_protocol::session::headless::{ErrorLine, Output, Phase, ToolPermission, Verdict};
use cofferdam_protocol::session::{Content, Message, SessionError, ToolCall, ToolFunction};
use cofferdam_storage::session::redact;
use serde_json::{Map, Value};
use tokio::select;

use super::Conversation;
use crate::session::PersistSession;
use crate::session::provider::{Answer, Call, Draft, ProviderError, Request};
use crate::session::tool::{Outcome, SHELL};

/// How many answers of a turn may call tools.
const MAX_TURNS: u32 = 20;

impl Conversation {
    /// Carries a turn out, and says how it ended.
    pub(super) async fn turn(&mut self, text: &str) {
        let began = self.parts.clock.monotonic();
        self.keep(message("user", text.to_owned()));
        let answered = self.rounds().await;
        // Also what failed is kept: the person has said it.
        let stored = self.persist().await;
        let line = match (answered, stored) {
            (Ok(()), Ok(())) => {
                let took = self.parts.clock.monotonic().saturating_sub(began);
                Output::success(self.id(), u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
            }
            (Err(ProviderError(why)), Ok(())) => ErrorLine::new(self.id(), why).into(),
            (answered, Err(error)) => {
                let mut text =
                    format!("session persistence failed [{}]: {}", error.code.as_str(), error.message);
                if let Err(ProviderError(why)) = answered {
                    text.insert_str(0, &format!("{why}; "));
                }
                ErrorLine::of_store(self.id(), Phase::Persist, error.code, text).into()
            }
        };
        self.put(line);
    }

    async fn rounds(&mut self) -> Result<(), ProviderError> {
        for round in 0.. {
            let (text, calls) = self.answer().await?;
            if calls.is_empty() {
                if !text.is_empty() {
                    self.keep(message("assistant", text.clone()));
                    self.put(Output::assistant(self.id(), text));
                }
                return Ok(());
            }
            if round == MAX_TURNS {
                break;
            }
            if self.carry_out(text, calls).await.is_break() {
                return Ok(());
            }
        }
        Err(ProviderError(format!("Agent exceeded max turns ({MAX_TURNS})")))
    }

    /// Asks the provider, and passes on what it says as it comes. Returns the text and the calls.
    async fn answer(&mut self) -> Result<(String, Vec<Call>), ProviderError> {
        let mut answer = self.provider.answer(Request {
            model: self.envelope.model.clone(),
            messages: self.envelope.messages.clone(),
            tools: self.tools.iter().map(|tool| tool.description()).collect(),
        });
        let mut draft = Draft::default();
        while !draft.is_complete() {
            let sink = &*self.parts.sink;
            let next = async |Answer { pieces, .. }: &mut Answer| {
                sink.room().await;
                pieces.recv().await
            };
            let piece = select! {
                biased;
                () = self.lines.interrupt() => return Err(ProviderError("provider request cancelled".to_owned())),
                piece = next(&mut answer) => piece,
            };
            let unfinished = || Err(ProviderError("the provider's answer has no end".to_owned()));
            let event = piece.unwrap_or_else(unfinished)?;
            draft.add(&event)?;
            self.put(Output::StreamEvent { event });
        }
        Ok(draft.into_parts())
    }

    /// Carries calls out, one after the other. `Break` if the client has interrupted that.
    async fn carry_out(&mut self, text: String, calls: Vec<Call>) -> ControlFlow<()> {
        let tool_calls = calls.iter().map(to_be_kept).collect();
        self.keep(Message { tool_calls: Some(tool_calls), ..message("assistant", text) });
        let mut flow = ControlFlow::Continue(());
        for call in calls {
            // A call without a result would make the conversation useless for a provider.
            let called = match flow {
                ControlFlow::Continue(()) => self.call(&call).await,
                ControlFlow::Break(()) => Called::Interrupted,
            };
            let (outcome, told) = match called {
                Called::Here(outcome) => (outcome, true),
                Called::ByClient(outcome) => (outcome.clone(), outcome.is_error),
                Called::Interrupted => {
                    flow = ControlFlow::Break(());
                    (Outcome::error("Interrupted by user"), true)
                }
            };
            let Outcome { content, is_error } = outcome;
            self.keep(Message { tool_call_id: Some(call.id.clone()), ..message("tool", content.clone()) });
            if told {
                self.put(Output::tool_result(self.id(), call.id, content, is_error));
            }
        }
        flow
    }

    async fn call(&mut self, call: &Call) -> Called {
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == call.name).cloned() else {
            return Called::Here(Outcome::error(format!("there is no tool {}", call.name)));
        };
        let Some(arguments) = arguments(call) else {
            return Called::Here(Outcome::error("the arguments are not a JSON object"));
        };
        let request = format!("req-{}", self.requests);
        self.requests += 1;
        let permission = ToolPermission {
            tool_name: call.name.clone(),
            input: Value::Object(arguments.clone()),
            tool_use_id: call.id.clone(),
        };
        self.put(Output::can_use_tool(request.clone(), permission));
        match self.lines.answer(&request).await {
            None => Called::Interrupted,
            Some(Verdict::Allow) => {
                let mut running = tool.call(&arguments, &self.place);
                select! {
                    biased;
                    () = self.lines.interrupt() => Called::Interrupted,
                    outcome = &mut running.outcome => {
                        Called::Here(outcome.unwrap_or_else(|_| Outcome::error("the tool gave nothing")))
                    }
                }
            }
            Some(Verdict::HostExecuted(executed)) if call.name == SHELL => Called::ByClient(Outcome {
                content: executed.content,
                is_error: executed.exit_code.is_some_and(|code| code != 0),
            }),
            Some(Verdict::HostExecuted(_)) => {
                Called::Here(denied("only a shell's command can be carried out by a client"))
            }
            Some(Verdict::Deny { message }) => Called::Here(denied(&message)),
        }
    }

    /// Adds a message to the conversation, without secrets.
    fn keep(&mut self, mut message: Message) {
        redact::message(&mut message);
        self.envelope.messages.push(message);
    }

    /// Makes the conversation durable, if it is kept at all.
    async fn persist(&mut self) -> Result<(), SessionError> {
        let Some(store) = self.store.clone() else { return Ok(()) };
        let envelope = self.envelope.clone();
        let persisted = self.parts.sessions.ask(PersistSession { store, envelope }).await?;
        self.envelope = persisted.envelope;
        persisted.result
    }
}

/// What became of a call.
enum Called {
    /// It was carried out, or refused, here.
    Here(Outcome),
    /// The client has carried it out, and knows what it gave.
    ByClient(Outcome),
    /// The client wants the turn to end.
    Interrupted,
}

fn denied(why: &str) -> Outcome {
    Outcome::error(format!("Tool call denied: {why}"))
}

fn message(role: &str, text: String) -> Message {
    let (role, content) = (role.to_owned(), Content::Text(text));
    Message { role, content, tool_call_id: None, name: None, tool_calls: None }
}

/// The arguments of a call, if they are an object. Nothing is an empty one.
fn arguments(call: &Call) -> Option<Map<String, Value>> {
    match call.arguments.trim() {
        "" => Some(Map::new()),
        text => serde_json::from_str(text).ok(),
    }
}

/// A call as it is kept: its arguments compact and in the order of their names, if they can be read.
fn to_be_kept(call: &Call) -> ToolCall {
    let arguments = match arguments(call) {
        Some(arguments) => Value::Object(arguments).to_string(),
        None => call.arguments.clone(),
    };
    let function = ToolFunction { name: call.name.clone(), arguments };
    ToolCall { id: call.id.clone(), kind: "function".to_owned(), function }
}
