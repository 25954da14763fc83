//! Programs that answer, and programs that do not.

use cofferdam_protocol::session::Content;
use serde_json::Value;

use super::*;
use crate::session::provider::{Message, of};

fn settings(output: Option<&str>, script: &str) -> Settings {
    Settings {
        kind: "command".to_owned(),
        model: None,
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        output: output.map(str::to_owned),
    }
}

fn answer(settings: &Settings) -> Answer {
    let said = Content::Text("hi".to_owned());
    let message =
        Message { role: "user".to_owned(), content: said, tool_call_id: None, name: None, tool_calls: None };
    let request = Request { model: "m".to_owned(), messages: vec![message], tools: Vec::new() };
    of(Some(settings), "m", &Processes::default()).answer(request)
}

/// All pieces; those of a text put together.
fn pieces(output: Option<&str>, script: &str) -> Vec<String> {
    let mut answer = answer(&settings(output, script));
    let mut told: Vec<String> = Vec::new();
    while let Some(piece) = answer.pieces.blocking_recv() {
        match piece {
            Ok(StreamEvent::ContentBlockDelta { delta: Delta::TextDelta { text }, .. }) => {
                match told.last_mut().filter(|last| last.starts_with("text ")) {
                    Some(last) => last.push_str(&text),
                    None => told.push(format!("text {text}")),
                }
            }
            Ok(event) => {
                let event: Value = serde_json::to_value(event).unwrap();
                told.push(event["type"].as_str().unwrap().to_owned());
            }
            Err(error) => told.push(format!("error {error}")),
        }
    }
    told
}

const WHOLE: [&str; 2] = ["content_block_stop", "message_stop"];

#[test]
fn what_a_program_writes_is_the_text_of_the_answer() {
    let told = pieces(None, "printf 'héllo\\n'; printf there");
    assert_eq!(told[..3], ["message_start", "content_block_start", "text héllo\nthere"]);
    assert_eq!(told[3..], WHOLE);
    assert_eq!(pieces(Some("text"), "exit 0"), ["message_start", "message_stop"]);
}

#[test]
fn the_program_gets_the_conversation_on_its_input() {
    let told = pieces(None, "cat");
    let text = told[2].strip_prefix("text ").unwrap();
    let request: Value = serde_json::from_str(text).unwrap();
    let expected = serde_json::json!({
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [],
    });
    assert_eq!(request, expected);
}

#[test]
fn a_program_that_fails_says_why_itself_or_how_it_ended_is_said() {
    let told = pieces(None, "printf half; echo context_limit: too much >&2; exit 1");
    assert_eq!(told[2..], ["text half", "error context_limit: too much"]);
    let told = pieces(None, "echo refused: api_key=abc123 >&2; exit 1");
    assert_eq!(told, ["error refused: api_key=<redacted>"]);
    let told = pieces(None, "exit 7");
    assert_eq!(told, ["error the provider's program sh ended with exit status: 7"]);
    let told = pieces(None, "yes complaint | head -c 100000 >&2; echo END >&2; exit 1");
    let said = told[0].strip_prefix("error ").unwrap();
    assert!(said.ends_with("END") && said.len() <= COMPLAINT, "{}", said.len());
}

#[test]
fn a_program_may_write_the_events_of_its_answer_itself() {
    let call =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"n"}}"#;
    let script = format!("echo '{{\"type\":\"message_start\"}}'; echo '{call}'; echo nonsense");
    let told = pieces(Some("events"), &script);
    assert_eq!(told[..2], ["message_start", "content_block_start"]);
    assert!(told[2].starts_with("error the provider's program wrote a line that is no event"), "{told:?}");
    let script = r#"echo '{"type":"message_start"}'; echo '{"type":"message_stop"}'"#;
    assert_eq!(pieces(Some("events"), script), ["message_start", "message_stop"]);
}

#[test]
fn settings_that_make_no_sense_are_told_with_the_first_answer() {
    let told = |settings: &Settings| {
        let mut answer = answer(settings);
        answer.pieces.blocking_recv().unwrap().unwrap_err().0
    };
    assert!(told(&settings(Some("xml"), "")).contains(r#""text" or "events""#));
    assert!(told(&Settings { command: Vec::new(), ..settings(None, "") }).contains("needs a command"));
    let missing = Settings { command: vec!["/nowhere/program".to_owned()], ..settings(None, "") };
    assert!(told(&missing).starts_with("the provider's program /nowhere/program cannot be run"));
    assert!(told(&Settings { kind: "generic".to_owned(), ..settings(None, "") }).contains("not known"));
}

#[test]
fn a_program_whose_answer_nobody_wants_is_killed_with_all_that_it_started() {
    let Answer { mut pieces, _work } = answer(&settings(None, "sleep 3600 & echo begun; wait"));
    let mut next = || pieces.blocking_recv();
    while !matches!(next(), Some(Ok(StreamEvent::ContentBlockDelta { .. }))) {}
    drop(_work);
    // Told after the last of them has closed the pipe that both hold.
    assert!(next().unwrap().unwrap_err().0.contains("signal: 9"));
    assert!(next().is_none());
}

#[test]
fn a_character_that_comes_in_pieces_is_told_whole() {
    for (bytes, whole) in [
        (&b"abc"[..], 3),
        ("aé".as_bytes(), 3),
        (&"aé".as_bytes()[..2], 1),
        (&"a😀".as_bytes()[..2], 1),
        (&"a😀".as_bytes()[..4], 1),
        ("a😀".as_bytes(), 5),
        (b"a\xff", 2),
        (b"\x80\x80\x80\x80\x80", 5),
        (b"", 0),
    ] {
        assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
    }
}
