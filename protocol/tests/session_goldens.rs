//! The sessions' wires and file against frozen ones: a request and an answer an action, an error a code, every kind of line
//! of a conversation, an envelope.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use cofferdam_protocol::session::headless::{Delta, Input, Output, StreamEvent, System, Verdict};
use cofferdam_protocol::session::*;

/// A conversation: each request with its answer behind it, then errors.
const LINES: &str = include_str!("vectors/session-v1.ndjson");
/// Lines of a client and of the program, as in a conversation.
const HEADLESS: &str = include_str!("vectors/headless-v1.ndjson");
/// A session's file with everything in it that can be.
const FILE: &str = include_str!("vectors/session-envelope-v1.json");

fn action(data: &SessionData) -> &'static str {
    match data {
        SessionData::List { .. } => "list",
        SessionData::Inspect { .. } => "inspect",
        SessionData::Validate { .. } => "validate",
        SessionData::PrepareClearAll { .. } => "prepare_clear_all",
        SessionData::Clear { .. } => "clear",
    }
}

fn printed(response: &SessionResponse) -> (String, bool) {
    let (line, succeeded) = response.line();
    (String::from_utf8(line).unwrap(), succeeded)
}

#[test]
fn every_action_reads_its_golden_lines_and_prints_them_byte_for_byte() {
    let mut seen = BTreeSet::new();
    let mut lines = LINES.lines();
    while let Some(line) = lines.next().filter(|line| line.starts_with(r#"{"action""#)) {
        let request = SessionRequest::parse(line.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), line);
        let answer = lines.next().unwrap();
        let response: SessionResponse = serde_json::from_str(answer).unwrap();
        assert_eq!(printed(&response), (format!("{answer}\n"), true));
        assert_eq!(action(&response.data.unwrap()), request.action());
        assert!(line.starts_with(&format!(r#"{{"action":"{}""#, request.action())), "{line}");
        seen.insert(request.action());
    }
    assert_eq!(seen.len(), 5);
}

#[test]
fn every_code_is_spelled_as_in_the_contract_and_its_error_printed_byte_for_byte() {
    let mut seen = Vec::new();
    for line in LINES.lines().filter(|line| line.starts_with(r#"{"ok":false"#)) {
        let error = serde_json::from_str::<SessionResponse>(line).unwrap().error.unwrap();
        let again = SessionError::new(error.code, &error.message);
        assert_eq!(printed(&SessionResponse::of(Err(again))), (format!("{line}\n"), false));
        seen.push(error.code.as_str());
        assert_eq!(serde_json::to_value(error.code).unwrap(), error.code.as_str());
    }
    let contract = "invalid_id invalid_cursor invalid_request not_found io corrupt incompatible_version \
        scope_mismatch conflict active_session";
    assert_eq!(seen, contract.split_whitespace().collect::<Vec<_>>());
    assert_eq!(seen, SessionErrorCode::ALL.map(SessionErrorCode::as_str));
}

/// What kind of line a client's is.
fn kind_of_input(input: &Input) -> &'static str {
    match input {
        Input::User(_) => "user",
        Input::Initialize { .. } => "initialize",
        Input::Interrupt => "interrupt",
        Input::Shutdown => "shutdown",
        Input::SwitchModel { .. } => "switch_model",
        Input::ConfigOverride => "config_override",
        Input::ReloadConfig => "reload_config",
        Input::Registry => "registry_request",
        Input::Answer(answer) => match answer.verdict {
            Verdict::Allow => "allow",
            Verdict::Deny { .. } => "deny",
            Verdict::HostExecuted(_) => "host_executed_shell",
        },
    }
}

/// What kind of line the program's is.
fn kind_of_output(output: &Output) -> &'static str {
    match output {
        Output::ControlResponse { .. } => "control_response",
        Output::System(System::Init { .. }) => "init",
        Output::System(System::Status { .. }) => "status",
        Output::StreamEvent { event } => match event {
            StreamEvent::MessageStart {} => "message_start",
            StreamEvent::ContentBlockStart { .. } => "content_block_start",
            StreamEvent::ContentBlockDelta { delta, .. } => match delta {
                Delta::TextDelta { .. } => "text_delta",
                Delta::ThinkingDelta { .. } => "thinking_delta",
                Delta::InputJsonDelta { .. } => "input_json_delta",
            },
            StreamEvent::ContentBlockStop { .. } => "content_block_stop",
            StreamEvent::MessageStop {} => "message_stop",
        },
        Output::Assistant { .. } => "assistant",
        Output::User { .. } => "user",
        Output::ControlRequest { .. } => "can_use_tool",
        Output::Result(_) => "result",
    }
}

#[test]
fn every_line_of_a_golden_conversation_is_read_or_printed_byte_for_byte() {
    let (mut read, mut printed) = (BTreeSet::new(), BTreeSet::new());
    for line in HEADLESS.lines() {
        // A client's lines are none of the program's.
        if let Ok(output) = serde_json::from_str::<Output>(line) {
            assert_eq!(String::from_utf8(output.line()).unwrap(), format!("{line}\n"));
            printed.insert(kind_of_output(&output));
        } else {
            read.insert(kind_of_input(&Input::parse(line.as_bytes()).unwrap()));
        }
    }
    assert_eq!((read.len(), printed.len()), (11, 14), "{read:?} {printed:?}");
}

#[test]
fn the_golden_file_is_read_and_written_byte_for_byte() {
    let id = SessionId::new("2d711642-b726-4b04-8d2a-8a0470f4ed24").unwrap();
    let envelope = Envelope::read(FILE.as_bytes(), &id, "/work/project", 0).unwrap();
    assert!(envelope.compaction.is_some(), "the digest is that of its messages");
    assert_eq!(String::from_utf8(envelope.write().unwrap()).unwrap(), FILE);
}

#[test]
fn every_kind_of_health_is_in_the_golden_lines() {
    for health in [Health::Ready, Health::Corrupt, Health::Incompatible, Health::ScopeMismatch] {
        let word = serde_json::to_string(&health).unwrap();
        assert!(LINES.contains(&format!(r#""health":{word}"#)), "{word}");
    }
}

#[test]
fn a_change_of_golden_lines_or_of_the_golden_file_needs_a_new_wire_version() {
    const FROZEN: [(u32, u64); 1] = [(1, 0x20d3_a150_4926_bcc6)];
    // FNV-1a: it only has to notice a change.
    let digest = LINES
        .bytes()
        .chain(HEADLESS.bytes())
        .chain(FILE.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    assert_eq!(FROZEN.last(), Some(&(WIRE_VERSION, digest)), "{digest:#x}");
}
