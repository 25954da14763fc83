//! What a line of the sidecar says.

use cofferdam_protocol::pod::{PodErrorCode, PodEvent, WireError};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::pod::Failure;

/// A line that says something.
#[derive(Debug)]
pub(super) enum Frame {
    /// What came of a request.
    Answer {
        /// Whose.
        id: String,
        /// It; a result is still text, since only the request knows what it is.
        answer: Result<Box<RawValue>, Failure>,
    },
    /// Something unasked.
    Event(PodEvent),
}

#[derive(Deserialize)]
struct Line<'a> {
    id: Option<Value>,
    method: Option<Value>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Reads a line. Nothing if it says something that a newer core may say and that nobody here understands; the error says
/// why it is no line of the protocol at all. Neither quotes the line, which may hold what no log should.
pub(super) fn read(line: &[u8]) -> Result<Option<Frame>, String> {
    let no_frame = |why: &str| Err(format!("it has printed a line of {} bytes that {why}", line.len()));
    if !line.trim_ascii_start().starts_with(b"{") {
        return no_frame("is no JSON object");
    }
    let Ok(Line { id, method, result, error, params }) = serde_json::from_slice(line) else {
        return no_frame("is no frame");
    };
    match (id, method) {
        (Some(Value::String(id)), _) => Ok(Some(Frame::Answer { id, answer: answer(result, error) })),
        (_, Some(Value::String(method))) if method == "event" => {
            let event = params.map_or("{}", RawValue::get);
            let event = serde_json::from_str(event).inspect_err(|_| {
                tracing::warn!(kind = kind(event), "the core says something that is not understood");
            });
            Ok(event.ok().map(Frame::Event))
        }
        (_, Some(Value::String(method))) => {
            tracing::warn!(method, "the core asks something that is not understood");
            Ok(None)
        }
        (None | Some(Value::Null), None) if error.is_some() => {
            tracing::warn!("the core has not understood a request");
            Ok(None)
        }
        _ => no_frame("is neither an answer nor an event"),
    }
}

fn answer(result: Option<&RawValue>, error: Option<&RawValue>) -> Result<Box<RawValue>, Failure> {
    let internal = |message: String| Failure { code: PodErrorCode::Internal, message, data: Value::Null };
    match (result, error) {
        (_, Some(error)) => Err(match serde_json::from_str(error.get()) {
            Ok(WireError { code, message, data }) => Failure { code, message, data },
            // A code of a newer core.
            Err(_) => internal(match serde_json::from_str(error.get()) {
                Ok(UnknownError { code, message }) => format!("{code}: {message}"),
                Err(_) => "the core has refused, in a way that is not understood".to_owned(),
            }),
        }),
        (Some(result), None) => Ok(result.to_owned()),
        (None, None) => Err(internal("the core has answered neither a result nor an error".to_owned())),
    }
}

#[derive(Deserialize)]
struct UnknownError {
    code: String,
    message: String,
}

/// Of an event that cannot be read.
fn kind(event: &str) -> String {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    serde_json::from_str(event).map(|Kind { kind }| kind).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a line says, in a few words.
    fn said(line: &str) -> String {
        match read(line.as_bytes()) {
            Ok(Some(Frame::Answer { id, answer: Ok(result) })) => format!("{id} {}", result.get()),
            Ok(Some(Frame::Answer { id, answer: Err(Failure { code, message, data }) })) => {
                format!("{id} {} {message} {data}", json!(code).as_str().unwrap())
            }
            Ok(Some(Frame::Event(event))) => format!("{event:?}"),
            Ok(None) => "nothing".to_owned(),
            Err(why) => why,
        }
    }

    #[test]
    fn answers_and_events_are_told_apart() {
        for (line, says) in [
            (r#"{"id":"7","result":{"ok":true}}"#, r#"7 {"ok":true}"#),
            (
                r#"{"id":"7","error":{"code":"TASK_BUSY","message":"later","data":{"retryAfterMs":5}}}"#,
                r#"7 TASK_BUSY later {"retryAfterMs":5}"#,
            ),
            (
                r#"{"method":"event","params":{"kind":"queue.dispatch","taskId":"a"}}"#,
                r#"QueueDispatch { task_id: "a" }"#,
            ),
        ] {
            assert_eq!(said(line), says);
        }
    }

    #[test]
    fn what_a_newer_core_may_say_is_no_reason_to_end_it() {
        for line in [
            r#"{"method":"event","params":{"kind":"moon.rises","phase":3}}"#,
            r#"{"method":"event","params":{"kind":"queue.dispatch"}}"#,
            r#"{"method":"event"}"#,
            r#"{"method":"ask","params":{}}"#,
            r#"{"id":null,"error":{"code":"BAD_REQUEST","message":"m","data":null}}"#,
        ] {
            assert_eq!(said(line), "nothing", "{line}");
        }
        assert_eq!(said(r#"{"id":"7","error":{"code":"MOON","message":"m"}}"#), "7 INTERNAL MOON: m null");
        assert!(said(r#"{"id":"7","error":5}"#).starts_with("7 INTERNAL"));
        assert!(said(r#"{"id":"7"}"#).starts_with("7 INTERNAL"));
    }

    #[test]
    fn what_is_no_frame_is_told_and_not_quoted() {
        for line in
            ["secret", "[\"7\",null,{}]", "{\"id\":", "{}", r#"{"id":7,"result":{}}"#, "{\"id\":\"7\"} x"]
        {
            let why = said(line);
            assert!(why.starts_with(&format!("it has printed a line of {} bytes", line.len())), "{why}");
            assert!(!why.contains("secret"));
        }
        assert!(read(b"{\"id\":\"\xff\"}").is_err());
    }
}
