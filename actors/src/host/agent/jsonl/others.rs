//! The lines of programs that have words of their own for the same things.
//!
//! | program | lines |
//! |---|---|
//! | Codex (`exec --json`) | `thread.started`, `item.started`, `item.completed`, `turn.completed`, `turn.failed`, `error` |
//! | Gemini CLI (`stream-json`) | `init`, `message`, `tool_use`, `tool_result`, `error`; `result` as elsewhere |
//! | Cursor (`stream-json`) | `tool_call`, `thinking`; the others as elsewhere |
//! | opencode (`--format json`) | `text`, `reasoning`, `tool_use` with a `part`, `error` |

use serde_json::{Map, Value, json};

use super::blocks::Kind;
use super::messages::complaint;
use super::{Heard, Init, Item, Outcome, object_of, shown, string, text_of};

impl Heard {
    /// Takes a line of another kind than the common ones; what is not known is ignored.
    pub(super) fn other(&mut self, line: &Map<String, Value>) {
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
        match (kind, object_of(line, "part")) {
            ("item.started", _) => self.item(line, false),
            ("item.completed", _) => self.item(line, true),
            ("turn.completed", _) => {
                self.end(Outcome { subtype: "completed".to_owned(), ..Outcome::default() });
            }
            ("turn.failed", _) => self.end(Outcome {
                is_error: true,
                subtype: "failed".to_owned(),
                text: complaint(line),
                ..Outcome::default()
            }),
            ("error", _) => self.say(Item::Complaint(complaint(line))),
            ("text", Some(part)) => self.whole(Kind::Text, &text_of(part, "text")),
            ("reasoning", Some(part)) => self.whole(Kind::Thinking, &text_of(part, "text")),
            ("tool_use", Some(part)) => self.part(part),
            ("init", _) => {
                self.say(Item::Init(Init { model: string(line, "model"), ..Init::default() }));
            }
            ("message", _) if string(line, "role").as_deref() == Some("assistant") => {
                match line.get("delta").and_then(Value::as_bool) {
                    Some(true) => self.piece(Kind::Text, &text_of(line, "content")),
                    _ => self.whole(Kind::Text, &shown(line.get("content"))),
                }
            }
            ("tool_use", None) => {
                let input = line.get("parameters").cloned().unwrap_or_default();
                self.call(text_of(line, "tool_id"), text_of(line, "tool_name"), input);
            }
            ("tool_result", _) => {
                let failed = string(line, "status").as_deref() == Some("error");
                let text = [shown(line.get("output")), complaint(line)];
                let text = text.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
                self.answer(text_of(line, "tool_id"), text, failed);
            }
            ("thinking", _) => match string(line, "subtype").as_deref() {
                Some("delta") => self.piece(Kind::Thinking, &text_of(line, "text")),
                _ => self.close(),
            },
            ("tool_call", _) => self.tool_call(line),
            _ => {}
        }
    }

    /// What Codex does, step by step. A step may be told only when it is over.
    fn item(&mut self, line: &Map<String, Value>, over: bool) {
        let Some(item) = object_of(line, "item") else { return };
        let (id, kind) = (text_of(item, "id"), text_of(item, "type"));
        let (name, input) = match kind.as_str() {
            "agent_message" | "reasoning" => {
                let kind = if kind == "reasoning" { Kind::Thinking } else { Kind::Text };
                if over {
                    self.whole(kind, &text_of(item, "text"));
                }
                return;
            }
            "error" => return self.say(Item::Complaint(text_of(item, "message"))),
            "command_execution" => (kind, json!({ "command": item.get("command") })),
            "file_change" => (kind, json!({ "changes": item.get("changes") })),
            "web_search" => (kind, json!({ "query": item.get("query") })),
            "mcp_tool_call" => {
                let name = format!("mcp__{}__{}", text_of(item, "server"), text_of(item, "tool"));
                (name, item.get("arguments").cloned().unwrap_or_default())
            }
            // Its plan, and what is not known yet.
            _ => return,
        };
        self.call(id.clone(), name, input);
        if over {
            let failed = matches!(text_of(item, "status").as_str(), "failed" | "declined");
            let given = item.get("aggregated_output").or_else(|| item.get("result"));
            let text = [shown(given), complaint(item)].into_iter().find(|text| !text.is_empty());
            self.answer(id, text.unwrap_or_default(), failed);
        }
    }

    /// A call of opencode, told when it is over.
    fn part(&mut self, part: &Map<String, Value>) {
        let id = text_of(part, "callID");
        let state = object_of(part, "state");
        let get = |key: &str| state.and_then(|state| state.get(key));
        self.call(id.clone(), text_of(part, "tool"), get("input").cloned().unwrap_or_default());
        match get("status").and_then(Value::as_str) {
            Some("error") => self.answer(id, shown(get("error")), true),
            Some("completed") => self.answer(id, shown(get("output")), false),
            _ => {}
        }
    }

    /// A call of Cursor: an object with one key, which names the tool.
    fn tool_call(&mut self, line: &Map<String, Value>) {
        let id = text_of(line, "call_id");
        let Some((key, call)) = object_of(line, "tool_call").and_then(|call| call.iter().next()) else {
            return;
        };
        let Some(call) = call.as_object() else { return };
        let (name, input) = match key.as_str() {
            "function" => (text_of(call, "name"), call.get("arguments")),
            key => (key.to_owned(), call.get("args")),
        };
        self.call(id.clone(), name, input.cloned().unwrap_or_default());
        if string(line, "subtype").as_deref() == Some("completed") {
            let result = object_of(call, "result");
            let failed = result.is_some_and(|result| !result.contains_key("success"));
            self.answer(id, shown(call.get("result")), failed);
        }
    }
}
