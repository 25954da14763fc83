//! Lines as frames: reading requests, printing answers and events.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::code::PodErrorCode;
use super::event::PodEvent;
use super::methods::Answer;

/// A request whose params are still text, so that a bad one can be answered by id.
#[derive(Debug)]
pub struct Request {
    /// The host's name for it.
    pub id: String,
    /// Which method.
    pub method: String,
    params: Option<Box<RawValue>>,
}

/// A line that is no request, or params that do not fit their method. Answered with `BAD_REQUEST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRequest {
    /// The id, if the line had one.
    pub id: Option<String>,
    /// What is wrong with it.
    pub message: String,
}

/// The error of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WireError {
    /// Which kind.
    pub code: PodErrorCode,
    /// For people.
    pub message: String,
    /// What belongs to it; `null` if nothing does.
    pub data: Value,
}

impl Request {
    /// Reads one line.
    pub fn parse(line: &[u8]) -> Result<Self, BadRequest> {
        let _ = line;
        todo!()
    }

    /// The params as a method's; missing and `null` params are an empty object. The error is a text for people.
    pub fn params<T: for<'de> Deserialize<'de>>(&self) -> Result<T, String> {
        let _ = &self.params;
        todo!()
    }
}

/// The line of a success, without newline, never longer than [`super::MAX_RESPONSE_LINE`]: lists lose their oldest
/// rows and say so; what cannot be shortened becomes an `INTERNAL` error.
pub fn answer_line<T: Answer>(id: &str, result: T) -> String {
    let _ = (id, result);
    todo!()
}

/// The line of an error, without newline.
pub fn error_line(id: Option<&str>, error: &WireError) -> String {
    let _ = (id, error);
    todo!()
}

/// The line of an event, without newline.
pub fn event_line(event: &PodEvent) -> String {
    let _ = event;
    todo!()
}
