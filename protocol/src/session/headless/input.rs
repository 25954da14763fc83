//! What a client sends: one JSON object a line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::object::{object, object_or_null};

/// One line of a client. Unknown keys are ignored; anything else that is not as described makes the line malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Begins a turn.
    User(UserLine),
    /// Asks who is here.
    Initialize {
        /// What the answer refers to.
        request_id: String,
    },
    /// Ends the turn that runs.
    Interrupt,
    /// Ends the program.
    Shutdown,
    /// Names another model from now on.
    SwitchModel {
        /// The model.
        model: String,
    },
    /// Changes settings that no tool here depends on.
    ConfigOverride,
    /// Reads settings again that no tool here depends on.
    ReloadConfig,
    /// Answers a request of the program.
    Answer(ApprovalAnswer),
    /// Of no meaning here.
    Registry,
}

/// What a person, or a program in their place, says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserLine {
    /// The text; may be empty.
    pub content: String,
    /// The conversation it is meant for, if it says so.
    pub session_id: Option<String>,
    /// Where the person's shell is.
    pub shell_context: Option<ShellContext>,
}

/// Where the person's shell is, and what it has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ShellContext {
    /// Its directory.
    pub cwd: String,
    /// Its variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How its last command ended.
    #[serde(default)]
    pub last_exit_code: i64,
}

/// The answer to a request of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// Which request.
    pub request_id: String,
    /// What is to become of the call.
    pub verdict: Verdict,
}

/// What is to become of a tool's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Carry it out.
    Allow,
    /// Do not.
    Deny {
        /// Why not.
        message: String,
    },
    /// The client has carried it out itself.
    HostExecuted(HostExecuted),
}

/// What a command gave that the client carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostExecuted {
    /// What the model gets to see.
    pub content: String,
    /// How the command ended, if that is known.
    pub exit_code: Option<i64>,
}

/// A line that is none of a client's lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to parse stdin line as JSON")]
pub struct MalformedLine;

impl Input {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Result<Self, MalformedLine> {
        let mut reader = serde_json::Deserializer::from_slice(line);
        let read = object::<Wire, _>(&mut reader).and_then(|read| reader.end().map(|()| read));
        read.map(Self::from).map_err(|_| MalformedLine)
    }
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Wire {
    User {
        #[serde(deserialize_with = "object")]
        message: WireMessage,
        #[serde(default)]
        session_id: Option<String>,
        #[serde(default, rename = "parent_tool_use_id")]
        _parent_tool_use_id: Option<IgnoredAny>,
        #[serde(default, deserialize_with = "object_or_null")]
        shell_context: Option<ShellContext>,
    },
    ControlRequest {
        request_id: String,
        #[serde(deserialize_with = "object")]
        request: WireRequest,
    },
    ControlResponse {
        #[serde(deserialize_with = "object")]
        response: WireResponse,
    },
    RegistryRequest {},
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(rename = "role")]
    _role: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
enum WireRequest {
    Initialize {},
    Interrupt {},
    Shutdown {},
    SwitchModel {
        model: String,
    },
    ConfigOverride {
        #[serde(default, rename = "approval_mode")]
        _approval_mode: Option<String>,
        #[serde(default, rename = "allowed_tools")]
        _allowed_tools: Option<Vec<String>>,
    },
    ReloadConfig {},
}

#[derive(Deserialize)]
struct WireResponse {
    subtype: String,
    request_id: String,
    #[serde(default, deserialize_with = "object_or_null")]
    response: Option<WireVerdict>,
}

#[derive(Deserialize)]
struct WireVerdict {
    #[serde(default)]
    behavior: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default, deserialize_with = "object_or_null")]
    result: Option<WireResult>,
}

#[derive(Deserialize)]
struct WireResult {
    #[serde(rename = "llmContent")]
    llm_content: String,
    #[serde(default, rename = "returnDisplay")]
    _return_display: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "object_or_null")]
    metadata: Option<WireMetadata>,
}

#[derive(Deserialize)]
struct WireMetadata {
    #[serde(default)]
    exit_code: Option<i64>,
}

impl From<Wire> for Input {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::User { message, session_id, shell_context, .. } => {
                Self::User(UserLine { content: message.content, session_id, shell_context })
            }
            Wire::ControlRequest { request_id, request } => match request {
                WireRequest::Initialize {} => Self::Initialize { request_id },
                WireRequest::Interrupt {} => Self::Interrupt,
                WireRequest::Shutdown {} => Self::Shutdown,
                WireRequest::SwitchModel { model } => Self::SwitchModel { model },
                WireRequest::ConfigOverride { .. } => Self::ConfigOverride,
                WireRequest::ReloadConfig {} => Self::ReloadConfig,
            },
            Wire::ControlResponse { response } => Self::Answer(response.into()),
            Wire::RegistryRequest {} => Self::Registry,
        }
    }
}

impl From<WireResponse> for ApprovalAnswer {
    /// Only what clearly allows a call does.
    fn from(WireResponse { subtype, request_id, response }: WireResponse) -> Self {
        let (behavior, message, result) = response
            .map_or((None, None, None), |verdict| (verdict.behavior, verdict.message, verdict.result));
        let verdict = match (subtype.as_str(), behavior.as_deref(), result) {
            ("success", Some("allow"), _) => Verdict::Allow,
            ("success", Some("host_executed_shell"), Some(result)) => Verdict::HostExecuted(HostExecuted {
                content: result.llm_content,
                exit_code: result.metadata.and_then(|metadata| metadata.exit_code),
            }),
            _ => Verdict::Deny { message: message.unwrap_or_else(|| "no reason given".to_owned()) },
        };
        Self { request_id, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Input {
        Input::parse(line.as_bytes()).unwrap_or_else(|_| panic!("{line}"))
    }

    fn user(content: &str) -> UserLine {
        UserLine { content: content.to_owned(), ..UserLine::default() }
    }

    #[test]
    fn a_user_line_is_read_with_what_it_may_hold() {
        let plain = r#"{"type":"user","message":{"role":"user","content":"hi"}}"#;
        assert_eq!(read(plain), Input::User(user("hi")));
        let full = r#"{"message":{"content":"","role":"anything","more":[]},"foo":1,"parent_tool_use_id":{"a":1},
            "session_id":"x","shell_context":{"cwd":"/w","env":{"A":"1"},"last_exit_code":-3},"type":"user"}"#;
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let context = ShellContext { cwd: "/w".to_owned(), env, last_exit_code: -3 };
        let session_id = Some("x".to_owned());
        assert_eq!(
            read(full),
            Input::User(UserLine { session_id, shell_context: Some(context), ..user("") })
        );
        let nulls = r#"{"type":"user","message":{"role":"","content":"a"},"session_id":null,
            "shell_context":null,"parent_tool_use_id":null}"#;
        assert_eq!(read(nulls), Input::User(user("a")));
    }

    #[test]
    fn every_request_of_a_client_is_known() {
        let of = |request: &str| {
            read(&format!(r#"{{"type":"control_request","request_id":"r","request":{request}}}"#))
        };
        assert_eq!(of(r#"{"subtype":"initialize"}"#), Input::Initialize { request_id: "r".to_owned() });
        assert_eq!(of(r#"{"subtype":"interrupt"}"#), Input::Interrupt);
        assert_eq!(of(r#"{"subtype":"shutdown","why":"x"}"#), Input::Shutdown);
        assert_eq!(
            of(r#"{"model":"m","subtype":"switch_model"}"#),
            Input::SwitchModel { model: "m".to_owned() }
        );
        assert_eq!(of(r#"{"subtype":"config_override","allowed_tools":["a"]}"#), Input::ConfigOverride);
        assert_eq!(of(r#"{"subtype":"config_override","approval_mode":null}"#), Input::ConfigOverride);
        assert_eq!(of(r#"{"subtype":"reload_config"}"#), Input::ReloadConfig);
        assert_eq!(read(r#"{"type":"registry_request","request":7}"#), Input::Registry);
    }

    #[test]
    fn only_what_clearly_allows_a_call_does() {
        let verdict = |subtype: &str, response: &str| {
            let line = format!(
                r#"{{"type":"control_response","response":{{"subtype":"{subtype}","request_id":"req-0"{response}}}}}"#
            );
            match read(&line) {
                Input::Answer(ApprovalAnswer { request_id, verdict }) if request_id == "req-0" => verdict,
                other => panic!("{other:?}"),
            }
        };
        let denied = |message: &str| Verdict::Deny { message: message.to_owned() };
        assert_eq!(verdict("success", r#","response":{"behavior":"allow"}"#), Verdict::Allow);
        assert_eq!(
            verdict("success", r#","response":{"behavior":"deny","message":"not now"}"#),
            denied("not now")
        );
        for response in [
            "",
            r#","response":null"#,
            r#","response":{}"#,
            r#","response":{"behavior":"deny"}"#,
            r#","response":{"behavior":"Allow"}"#,
            r#","response":{"behavior":"host_executed_shell"}"#,
        ] {
            assert_eq!(verdict("success", response), denied("no reason given"), "{response}");
        }
        assert_eq!(verdict("error", r#","response":{"behavior":"allow"}"#), denied("no reason given"));
        for (metadata, exit_code) in
            [("", None), (r#","metadata":{}"#, None), (r#","metadata":{"exit_code":2}"#, Some(2))]
        {
            let response = format!(
                r#","response":{{"behavior":"host_executed_shell","result":{{"llmContent":"out"{metadata}}}}}"#
            );
            let executed = HostExecuted { content: "out".to_owned(), exit_code };
            assert_eq!(verdict("success", &response), Verdict::HostExecuted(executed), "{metadata}");
        }
    }

    #[test]
    fn a_line_that_is_not_as_described_is_malformed() {
        for line in [
            "",
            "{",
            "null",
            "7",
            r#"["user",{"role":"user","content":"hi"}]"#,
            r#"{"type":"hello"}"#,
            r#"{"message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"user"}"#,
            r#"{"type":"user","message":["user","hi"]}"#,
            r#"{"type":"user","message":{"content":"hi"}}"#,
            r#"{"type":"user","message":{"role":"user"}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#,
            r#"{"type":"user","message":{"role":"user","content":null}}"#,
            r#"{"type":"user","message":{"role":"user","content":"hi"},"session_id":7}"#,
            r#"{"type":"user","message":{"role":"user","content":"hi"},"message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"user","type":"user","message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"user","message":{"role":"user","content":"a","content":"b"}}"#,
            r#"{"type":"user","message":{"role":"user","content":"hi"},"shell_context":{}}"#,
            r#"{"type":"user","message":{"role":"user","content":"hi"},"shell_context":["/w"]}"#,
            r#"{"type":"user","message":{"role":"user","content":"hi"},"shell_context":{"cwd":"/","env":{"A":1}}}"#,
            r#"{"type":"user","message":{"role":"user","content":"\ud83d"}}"#,
            r#"{"type":"user","message":{"role":"user","content":"hi"}} {}"#,
            r#"{"type":"control_request","request":{"subtype":"initialize"}}"#,
            r#"{"type":"control_request","request_id":7,"request":{"subtype":"initialize"}}"#,
            r#"{"type":"control_request","request_id":"x"}"#,
            r#"{"type":"control_request","request_id":"x","request":{"subtype":"nope"}}"#,
            r#"{"type":"control_request","request_id":"x","request":["initialize"]}"#,
            r#"{"type":"control_request","request_id":"x","request":{"subtype":"switch_model"}}"#,
            r#"{"type":"control_response","response":{"subtype":"success"}}"#,
            r#"{"type":"control_response","response":{"request_id":"req-0"}}"#,
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"req-0","response":["allow"]}}"#,
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"req-0",
                "response":{"behavior":"deny","behavior":"allow"}}}"#,
        ] {
            assert_eq!(Input::parse(line.as_bytes()), Err(MalformedLine), "{line}");
        }
        assert_eq!(Input::parse(b"{\"type\":\"registry_request\",\"a\":\"\xff\"}"), Err(MalformedLine));
    }
}
