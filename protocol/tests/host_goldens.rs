//! The host's wire against frozen lines: one request and one answer a method, the status, failures, and the events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use cofferdam_protocol::host::*;
use serde::Serialize;
use serde_json::Value;

/// Each request with its answer behind it, then the status, then failures, then events.
const GOLDEN: &str = include_str!("vectors/host-v1.ndjson");

/// How a method's golden lines are held against its types: given both, as they are printed again.
type Again = fn(&str, &str) -> (String, String);

macro_rules! methods {
    ($($method:ident)+) => {
        fn methods() -> BTreeMap<&'static str, Again> {
            BTreeMap::from([$(($method::NAME, again::<$method> as Again)),+])
        }
    };
}
methods! {
    GetState SetConfig StartTask OpenTask ResumeTask CancelTask Cleanup BulkCleanup ListFiles ReadSandboxFile
    PreviewReturn ReturnToMain ExportEntries ListExports UndoExport GetDiagnostics RestartCore GetLegacyTask
    FollowUp GetTranscript ListTurns RewindTask UndoRewind
}

fn again<M: HostMethod>(request: &str, answer: &str) -> (String, String)
where
    M::Document: Serialize,
{
    let args: M = ApiRequest::parse(request.as_bytes()).unwrap().args().unwrap();
    let args = serde_json::to_string(&args).unwrap();
    let document: M::Document = serde_json::from_str(answer).unwrap();
    (format!(r#"{{"method":"{}","args":{args}}}"#, M::NAME), text(&success_body(&document)))
}

fn text(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}

fn lines() -> Vec<&'static str> {
    GOLDEN.lines().collect()
}

/// The line of the status: behind a request and an answer for each method.
fn status_at() -> usize {
    2 * methods().len()
}

#[test]
fn each_method_reads_and_writes_its_golden_lines() {
    let (methods, lines) = (methods(), lines());
    let mut seen = Vec::new();
    for pair in lines[..status_at()].chunks(2) {
        let name = ApiRequest::parse(pair[0].as_bytes()).unwrap().method;
        let (request, answer) = methods[name.as_str()](pair[0], pair[1]);
        assert_eq!((request.as_str(), answer.as_str()), (pair[0], pair[1]));
        seen.push(name);
    }
    let expected: Vec<&str> = METHODS.iter().chain(OWN_METHODS).copied().collect();
    assert_eq!(seen, expected, "one of each");
    assert_eq!(METHODS.len(), 18, "the contract's methods");
}

#[test]
fn status_failures_and_events_read_and_write_their_golden_lines() {
    let lines = &lines()[status_at()..];
    let status: Status = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(text(&success_body(&status)), lines[0]);
    for line in &lines[1..3] {
        let failure: Value = serde_json::from_str(line).unwrap();
        let code: HostErrorCode = serde_json::from_value(failure["code"].clone()).unwrap();
        assert_eq!(text(&failure_body(code, failure["message"].as_str().unwrap(), &failure["data"])), *line);
    }
    let mut kinds = Vec::new();
    for line in &lines[3..] {
        let event: HostEvent = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), *line);
        kinds.push(match event {
            HostEvent::TaskChanged { .. } => 0,
            HostEvent::TaskRemoved { .. } => 1,
            HostEvent::TaskEntry { .. } => 2,
            HostEvent::StateChanged => 3,
            HostEvent::ExportProgress { .. } => 4,
            HostEvent::CoreChanged { .. } => 5,
            HostEvent::MainMessage(_) => 6,
            HostEvent::Lost => 7,
        });
    }
    assert_eq!(kinds, (0..8).collect::<Vec<_>>(), "one of each");
}

#[test]
fn a_request_is_an_object_with_a_method_and_args_that_fit_it() {
    for (body, why) in [
        (&b"\xff"[..], "not UTF-8"),
        (b"", "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        (b"{", "EOF"),
        (b"{} {}", "trailing"),
        (br#"{"method":7}"#, "method is missing or not a string"),
        (br#"{"method":"getState"} x"#, "trailing"),
    ] {
        let refused = ApiRequest::parse(body);
        let says = refused.as_ref().map_or_else(ToString::to_string, |request| request.method.clone());
        assert!(refused.is_err() && says.contains(why), "{says}");
    }
    for none in [
        r#"{"method":"getState"}"#,
        r#"{"method":"getState","args":null}"#,
        r#"{"method":"getState","args":{}}"#,
    ] {
        let args: GetState = ApiRequest::parse(none.as_bytes()).unwrap().args().unwrap();
        assert_eq!(args.main_session_id, "");
    }
    for (args, why) in
        [("[]", "args must be an object"), ("7", "args must be an object"), ("{}", "description")]
    {
        let request =
            ApiRequest::parse(format!(r#"{{"method":"startTask","args":{args}}}"#).as_bytes()).unwrap();
        let refused = request.args::<StartTask>().unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let unknown = r#"{"method":"startTask","args":{"description":"d","more":1}}"#;
    assert!(ApiRequest::parse(unknown.as_bytes()).unwrap().args::<StartTask>().is_ok());
}

#[test]
fn a_lone_surrogate_in_a_text_is_no_reason_to_refuse_it() {
    let request = ApiRequest::parse(br#"{"method":"startTask","args":{"description":"a\ud83d"}}"#).unwrap();
    assert_eq!(request.args::<StartTask>().unwrap().description, "a\u{fffd}");
}

#[test]
fn a_change_of_golden_lines_needs_a_new_wire_version() {
    const FROZEN: [(u32, u64); 3] =
        [(1, 0xe209_fce3_d755_6c94), (2, 0xd264_6ff8_8be5_7483), (3, 0xab71_d0f0_4168_2c6f)];
    // FNV-1a: it only has to notice a change.
    let digest = GOLDEN.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(FROZEN.last(), Some(&(WIRE_VERSION, digest)), "{digest:#x}");
}
