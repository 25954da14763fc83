//! The lines of the session contract's headless stream, and of programs that print stream-json.

use serde_json::{Map, Value};

use super::blocks::Kind;
use super::{Heard, Init, Item, Outcome, Request, object_of, shown, string, text_of};

impl Heard {
    /// Takes a line of these kinds; whether it was one.
    pub(super) fn message(&mut self, line: &Map<String, Value>) -> bool {
        match line.get("type").and_then(Value::as_str) {
            Some("system") => self.system(line),
            Some("assistant") => self.content(line),
            Some("user") => self.content(line),
            Some("stream_event") => self.streamed(line),
            Some("control_request") => self.request(line),
            // Answers what somebody asked the program, and says nothing else.
            Some("control_response") => {}
            Some("result") => self.result(line),
            _ => return false,
        }
        true
    }

    fn system(&mut self, line: &Map<String, Value>) {
        match line.get("subtype").and_then(Value::as_str) {
            Some("init") => {
                let names = |tools: &Vec<Value>| tools.iter().filter_map(tool_name).collect();
                self.say(Item::Init(Init {
                    resumable: line.get("session_resumable").and_then(Value::as_bool),
                    model: string(line, "model"),
                    tools: line.get("tools").and_then(Value::as_array).map(names),
                }));
            }
            Some("status") => {
                if let Some(status) = string(line, "status") {
                    self.say(Item::Status(status));
                }
            }
            _ => {}
        }
    }

    /// A message with blocks, or with one text. Of a message in the user's place only what tools gave is of interest.
    fn content(&mut self, line: &Map<String, Value>) {
        let assistant = line.get("type").and_then(Value::as_str) == Some("assistant");
        let Some(message) = object_of(line, "message") else { return };
        match message.get("content") {
            Some(Value::String(text)) if assistant => self.whole(Kind::Text, text),
            Some(Value::Array(blocks)) => {
                for block in blocks.iter().filter_map(Value::as_object) {
                    self.block(block, assistant);
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, block: &Map<String, Value>, assistant: bool) {
        match block.get("type").and_then(Value::as_str) {
            Some("text") if assistant => self.whole(Kind::Text, &text_of(block, "text")),
            Some("thinking") if assistant => self.whole(Kind::Thinking, &text_of(block, "thinking")),
            // Such as `server_tool_use`, too.
            Some(kind) if kind.ends_with("tool_use") => {
                let input = block.get("input").cloned().unwrap_or_default();
                self.call(text_of(block, "id"), text_of(block, "name"), input);
            }
            Some(kind) if kind.ends_with("tool_result") => {
                let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                self.answer(text_of(block, "tool_use_id"), shown(block.get("content")), is_error);
            }
            _ => {}
        }
    }

    pub(super) fn whole(&mut self, kind: Kind, text: &str) {
        self.blocks.text(kind, text, &mut self.items);
    }

    pub(super) fn piece(&mut self, kind: Kind, text: &str) {
        self.blocks.piece(kind, text, &mut self.items);
    }

    /// A step of an answer. Those of an agent that another one has called come among the others, and all that they say comes
    /// as whole messages later.
    fn streamed(&mut self, line: &Map<String, Value>) {
        if line.get("parent_tool_use_id").is_some_and(|parent| !parent.is_null()) {
            return;
        }
        let Some(event) = object_of(line, "event") else { return };
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                self.close();
                self.blocks.forget_texts();
            }
            Some("content_block_start") => {
                self.close();
                let Some(block) = object_of(event, "content_block") else { return };
                match block.get("type").and_then(Value::as_str) {
                    Some(kind) if kind.ends_with("tool_use") => {
                        let (id, name) = (text_of(block, "id"), text_of(block, "name"));
                        self.blocks.begin_call(id, name, &mut self.items);
                    }
                    Some("text") => self.begin(Kind::Text, block, "text"),
                    Some("thinking") => self.begin(Kind::Thinking, block, "thinking"),
                    _ => {}
                }
            }
            Some("content_block_delta") => {
                let Some(delta) = object_of(event, "delta") else { return };
                match delta.get("type").and_then(Value::as_str) {
                    Some("text_delta") => self.piece(Kind::Text, &text_of(delta, "text")),
                    Some("thinking_delta") => self.piece(Kind::Thinking, &text_of(delta, "thinking")),
                    Some("input_json_delta") => self.blocks.arguments(&text_of(delta, "partial_json")),
                    _ => {}
                }
            }
            Some("content_block_stop" | "message_stop") => self.close(),
            _ => {}
        }
    }

    /// Some begin a block with a part of its text.
    fn begin(&mut self, kind: Kind, block: &Map<String, Value>, key: &str) {
        let text = text_of(block, key);
        if !text.is_empty() {
            self.piece(kind, &text);
        }
    }

    fn request(&mut self, line: &Map<String, Value>) {
        let id = text_of(line, "request_id");
        let Some(request) = object_of(line, "request") else { return };
        let request = match text_of(request, "subtype") {
            subtype if subtype == "can_use_tool" => Request::CanUseTool {
                name: text_of(request, "tool_name"),
                input: request.get("input").cloned().unwrap_or_default(),
                call: text_of(request, "tool_use_id"),
            },
            subtype => Request::Other { subtype },
        };
        self.say(Item::Request { id, request });
    }

    /// Also where the end is called a status, and where what went wrong is an object with a message.
    fn result(&mut self, line: &Map<String, Value>) {
        let subtype = string(line, "subtype").or_else(|| string(line, "status")).unwrap_or_default();
        let is_error = line.get("is_error").and_then(Value::as_bool).unwrap_or(
            subtype.starts_with("error") || line.get("error").is_some_and(|error| !error.is_null()),
        );
        let text = [shown(line.get("result")), complaint(line)].into_iter().find(|text| !text.is_empty());
        self.end(Outcome {
            is_error,
            text: text.unwrap_or_default(),
            error_code: string(line, "error_code"),
            session_error_code: string(line, "session_error_code"),
            session_error_phase: string(line, "session_error_phase"),
            subtype,
        });
    }
}

/// A tool is named, or described by an object with a name.
fn tool_name(tool: &Value) -> Option<String> {
    let name = tool.as_str().or_else(|| tool.get("name").and_then(Value::as_str));
    name.map(str::to_owned)
}

/// What went wrong, as a line has it; empty if it does not say.
pub(super) fn complaint(line: &Map<String, Value>) -> String {
    let of_error = |error: &Value| match error {
        Value::Object(error) => {
            let inner = object_of(error, "data").and_then(|data| string(data, "message"));
            let said = inner.or_else(|| string(error, "message")).or_else(|| string(error, "name"));
            said.unwrap_or_else(|| shown(Some(&Value::Object(error.clone()))))
        }
        other => shown(Some(other)),
    };
    let errors = || {
        let errors = line.get("errors")?.as_array()?;
        Some(errors.iter().map(of_error).collect::<Vec<_>>().join("; "))
    };
    let error = line.get("error").filter(|error| !error.is_null()).map(of_error);
    error.or_else(errors).or_else(|| string(line, "message")).unwrap_or_default()
}
