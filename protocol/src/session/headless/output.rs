//! What is answered: one compact JSON object a line.

use serde::{Deserialize, Serialize};

use super::StreamEvent;
use crate::session::SessionErrorCode;

/// One line of the program. Keys are written in the order in which they stand here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// Answers `initialize`.
    ControlResponse {
        /// The answer.
        response: ControlResponse,
    },
    /// Says something about the program.
    System(System),
    /// A step of an answer.
    StreamEvent {
        /// The step.
        event: StreamEvent,
    },
    /// The text of an answer that calls no tool.
    Assistant {
        /// The conversation.
        session_id: String,
        /// The text.
        message: AssistantMessage,
    },
    /// What a tool gave.
    User {
        /// The conversation.
        session_id: String,
        /// The result.
        message: UserMessage,
    },
    /// Asks the client whether a tool may be called.
    ControlRequest {
        /// What the answer has to refer to.
        request_id: String,
        /// The request.
        request: ControlRequest,
    },
    /// How a turn, or the whole run, ended.
    Result(TurnResult),
}

/// Something about the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum System {
    /// Who is here.
    Init {
        /// The conversation.
        session_id: String,
        /// Whether it will be there after the end of the program.
        session_resumable: bool,
        /// The model's name.
        model: String,
        /// The tools there are, sorted.
        tools: Vec<String>,
    },
    /// Something was done.
    Status {
        /// What.
        status: String,
    },
}

/// The answer to `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum ControlResponse {
    /// It was done.
    Success {
        /// Of the request.
        request_id: String,
        /// What the program can do.
        response: Initialized,
    },
}

/// What the program can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Initialized {
    /// The only answer there is.
    Initialize {
        /// What a client may count on.
        capabilities: Capabilities,
    },
}

/// What a client may count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// `can_use_tool` is asked.
    pub can_handle_can_use_tool: bool,
    /// A client may answer with the result of a command it has carried out itself.
    pub can_handle_host_executed_shell_tool_result: bool,
    /// Evidence of a shell can be asked for.
    pub can_handle_shell_evidence_tool: bool,
}

/// What this program can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    can_handle_can_use_tool: true,
    can_handle_host_executed_shell_tool_result: true,
    can_handle_shell_evidence_tool: false,
};

/// The text of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// One block.
    pub content: Vec<TextBlock>,
}

/// A block of text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TextBlock {
    /// The only kind there is.
    Text {
        /// The text.
        text: String,
    },
}

/// A message in the user's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum UserMessage {
    /// The only role there is.
    User {
        /// One block.
        content: Vec<ToolResult>,
    },
}

/// A block with what a tool gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolResult {
    /// The only kind there is.
    ToolResult {
        /// Which call.
        tool_use_id: String,
        /// Whether it failed.
        is_error: bool,
        /// What it gave.
        content: String,
    },
}

/// A request of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum ControlRequest {
    /// May this tool be called?
    CanUseTool(ToolPermission),
}

/// The call of a tool that needs to be allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolPermission {
    /// The tool.
    pub tool_name: String,
    /// Its arguments, as the model gave them.
    pub input: serde_json::Value,
    /// Which call.
    pub tool_use_id: String,
}

/// How a turn, or the whole run, ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum TurnResult {
    /// Well.
    Success {
        /// `false`.
        is_error: bool,
        /// `completed`.
        result: String,
        /// The conversation.
        session_id: String,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// Not well.
    Error(ErrorLine),
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorLine {
    is_error: bool,
    result: String,
    errors: Vec<String>,
    /// Which kind of error in what the client gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// What the store said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_error_code: Option<SessionErrorCode>,
    /// What the store was to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_error_phase: Option<Phase>,
    /// The conversation.
    pub session_id: String,
}

/// What the store was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Find the conversation that was to be resumed.
    Load,
    /// Keep the turn.
    Persist,
}

impl ErrorLine {
    /// An error without any code.
    pub fn new(session_id: &str, text: String) -> Self {
        Self {
            is_error: true,
            errors: vec![text.clone()],
            result: text,
            error_code: None,
            session_error_code: None,
            session_error_phase: None,
            session_id: session_id.to_owned(),
        }
    }

    /// An error in what the client gave.
    pub fn of_client(session_id: &str, code: &str, text: String) -> Self {
        Self { error_code: Some(code.to_owned()), ..Self::new(session_id, text) }
    }

    /// An error of the store.
    pub fn of_store(session_id: &str, phase: Phase, code: SessionErrorCode, text: String) -> Self {
        Self {
            session_error_code: Some(code),
            session_error_phase: Some(phase),
            ..Self::new(session_id, text)
        }
    }

    /// For people.
    pub fn text(&self) -> &str {
        &self.result
    }
}

impl From<ErrorLine> for Output {
    fn from(line: ErrorLine) -> Self {
        Self::Result(TurnResult::Error(line))
    }
}

impl Output {
    /// The answer to `initialize`.
    pub fn initialized(request_id: String) -> Self {
        let response = Initialized::Initialize { capabilities: CAPABILITIES };
        Self::ControlResponse { response: ControlResponse::Success { request_id, response } }
    }

    /// Says that something was done.
    pub fn status(status: impl Into<String>) -> Self {
        Self::System(System::Status { status: status.into() })
    }

    /// The text of an answer.
    pub fn assistant(session_id: &str, text: String) -> Self {
        let message = AssistantMessage { content: vec![TextBlock::Text { text }] };
        Self::Assistant { session_id: session_id.to_owned(), message }
    }

    /// What a tool gave.
    pub fn tool_result(session_id: &str, tool_use_id: String, content: String, is_error: bool) -> Self {
        let content = vec![ToolResult::ToolResult { tool_use_id, is_error, content }];
        Self::User { session_id: session_id.to_owned(), message: UserMessage::User { content } }
    }

    /// Asks whether a tool may be called.
    pub fn can_use_tool(request_id: String, permission: ToolPermission) -> Self {
        Self::ControlRequest { request_id, request: ControlRequest::CanUseTool(permission) }
    }

    /// A turn has ended well.
    pub fn success(session_id: &str, duration_ms: u64) -> Self {
        Self::Result(TurnResult::Success {
            is_error: false,
            result: "completed".to_owned(),
            session_id: session_id.to_owned(),
            duration_ms,
        })
    }

    /// The line, with its newline.
    pub fn line(&self) -> Vec<u8> {
        // Nothing in it can fail to be written: keys are strings, and there is no writer but memory.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
