//! Lines as frames: reading requests, printing answers and events.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::MAX_RESPONSE_LINE;
use super::code::PodErrorCode;
use super::event::PodEvent;
use super::lenient_json;
use super::methods::Answer;
use super::text::cut;
use crate::budget::Budget;

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

/// How deep a request may be nested, its frame included.
const MAX_DEPTH: usize = 64;
/// The longest text of an error, in UTF-16 units; a text that quotes what was sent is cut.
const MAX_MESSAGE: usize = 2000;

/// A request line. Its values are looked at one by one, so that a bad one does not hide the others.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Request {
    /// Reads one line. Halves of surrogate pairs, which JavaScript writes where it cut a text, become U+FFFD.
    pub fn parse(line: &[u8]) -> Result<Self, BadRequest> {
        let anonymous = |message: &str| BadRequest { id: None, message: format!("not a request: {message}") };
        let text = str::from_utf8(line).map_err(|_| anonymous("the line is not UTF-8"))?;
        let text = lenient_json::repair_surrogates(text);
        let frame: Frame<'_> = object("the line", &text).map_err(|what| anonymous(&what))?;

        let string = |value: Option<&RawValue>| serde_json::from_str(value?.get()).ok();
        let id: String = string(frame.id).ok_or_else(|| anonymous("id is missing or not a string"))?;
        let bad = |message: String| BadRequest { id: Some(id.clone()), message };
        if lenient_json::depth(&text) > MAX_DEPTH {
            return Err(bad(format!("the line is nested deeper than {MAX_DEPTH}")));
        }
        let method =
            string(frame.method).ok_or_else(|| bad("method is missing or not a string".to_owned()))?;
        Ok(Self { id, method, params: frame.params.map(ToOwned::to_owned) })
    }

    /// The params as a method's; missing and `null` params are an empty object. The error is a text for people that
    /// says which one is wrong.
    pub fn params<T: for<'de> Deserialize<'de>>(&self) -> Result<T, String> {
        object("params", self.params.as_deref().map_or("{}", RawValue::get))
    }
}

/// Reads a JSON object; serde alone would take an array for a struct, too. The error says what is wrong with it.
pub(crate) fn object<'a, T: Deserialize<'a>>(name: &str, json: &'a str) -> Result<T, String> {
    if !json.trim_ascii_start().starts_with('{') {
        return Err(format!("{name} must be an object"));
    }
    let mut source = serde_json::Deserializer::from_str(json);
    let (path, error) = match serde_path_to_error::deserialize(&mut source) {
        Ok(read) => match source.end() {
            Ok(()) => return Ok(read),
            Err(error) => (".".to_owned(), error),
        },
        Err(error) => (error.path().to_string(), error.into_inner()),
    };
    let what = error.to_string();
    // Which param it is says more than where in the line.
    let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
    // `?` stands for a place that has no name, as where the text is no JSON.
    let message = match path.as_str() {
        "." | "?" => what.to_owned(),
        path => format!("{path}: {what}"),
    };
    Err(cut(&message, MAX_MESSAGE).to_owned())
}

/// The line of a success, without newline, never longer than [`MAX_RESPONSE_LINE`]: lists lose their oldest rows and
/// say so; what cannot be shortened becomes an `INTERNAL` error.
pub fn answer_line<T: Answer>(id: &str, mut result: T) -> String {
    #[derive(Serialize)]
    struct Success<'a, T> {
        id: &'a str,
        result: &'a T,
    }
    loop {
        match line_of(&Success { id, result: &result }) {
            Ok(line) => return line,
            Err(TooLong { excess }) if result.shorten(excess) => {}
            Err(TooLong { .. }) => return too_long(Some(id)),
        }
    }
}

/// The line of an error, without newline.
pub fn error_line(id: Option<&str>, error: &WireError) -> String {
    #[derive(Serialize)]
    struct Failed<'a> {
        id: Option<&'a str>,
        error: WireError,
    }
    let message = cut(&error.message, MAX_MESSAGE).to_owned();
    line_of(&Failed { id, error: WireError { message, code: error.code, data: error.data.clone() } })
        .unwrap_or_else(|TooLong { .. }| too_long(id))
}

/// The line of an event, without newline.
pub fn event_line(event: &PodEvent) -> String {
    #[derive(Serialize)]
    struct Event<'a> {
        method: &'static str,
        params: &'a PodEvent,
    }
    let line = |params: &PodEvent| line_of(&Event { method: "event", params });
    line(event).unwrap_or_else(|TooLong { .. }| {
        // What an event carries is limited where it comes in, so this is a mistake of ours that a host is told.
        let message = "an event was too long to be sent".to_owned();
        line(&PodEvent::CoreWarning { task_id: None, message }).unwrap_or_default()
    })
}

fn too_long(id: Option<&str>) -> String {
    let message = "the result is longer than a line may be; ask for less";
    let error =
        json!({"code": PodErrorCode::Internal, "message": message, "data": {"limit": MAX_RESPONSE_LINE}});
    json!({"id": id, "error": error}).to_string()
}

/// A line would have more bytes than it may.
struct TooLong {
    /// How many more.
    excess: usize,
}

fn line_of<T: Serialize>(frame: &T) -> Result<String, TooLong> {
    let mut line = Budget::new(MAX_RESPONSE_LINE);
    // Wire types have string keys only and the writer takes everything, so nothing can fail here but the length.
    let written = serde_json::to_writer(&mut line, frame);
    let text = line.finish().map_err(|excess| TooLong { excess })?;
    match (written, String::from_utf8(text)) {
        (Ok(()), Ok(text)) => Ok(text),
        _ => Err(TooLong { excess: 0 }),
    }
}
