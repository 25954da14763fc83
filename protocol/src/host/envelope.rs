//! The JSON around every request and answer (spec §9).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::HostErrorCode;
use super::methods::HostMethod;

/// A request whose args are still text, so that bad ones can be told from an unknown method.
#[derive(Debug)]
pub struct ApiRequest {
    /// Which method.
    pub method: String,
    args: Option<Box<RawValue>>,
}

/// A body that is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not a request: {0}")]
pub struct BadBody(String);

impl ApiRequest {
    /// Reads a body.
    pub fn parse(body: &[u8]) -> Result<Self, BadBody> {
        #[derive(Deserialize)]
        struct Frame<'a> {
            method: Option<Value>,
            #[serde(borrow)]
            args: Option<&'a RawValue>,
        }
        let bad = |message: String| BadBody(message);
        let text = str::from_utf8(body).map_err(|_| bad("it is not UTF-8".to_owned()))?;
        let text = crate::pod::repair_surrogates(text);
        if !text.trim_ascii_start().starts_with('{') {
            return Err(bad("it must be a JSON object".to_owned()));
        }
        let frame: Frame<'_> = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        let Some(Value::String(method)) = frame.method else {
            return Err(bad("method is missing or not a string".to_owned()));
        };
        Ok(Self { method, args: frame.args.map(ToOwned::to_owned) })
    }

    /// The args as a method's; missing and `null` args are an empty object. The error is a text for people.
    pub fn args<M: HostMethod>(&self) -> Result<M, String> {
        args_of(self.args.as_deref().map_or("{}", RawValue::get))
    }
}

/// Reads args; the error says which one is wrong.
pub(super) fn args_of<M: HostMethod>(json: &str) -> Result<M, String> {
    let json = match json.trim_ascii() {
        "" | "null" => "{}",
        json => json,
    };
    crate::pod::object("args", json)
}

/// The body of a success: `ok` and the answer's fields beside it.
pub fn success_body<T: Serialize>(answer: &T) -> Bytes {
    #[derive(Serialize)]
    struct Success<'a, T> {
        ok: bool,
        #[serde(flatten)]
        answer: &'a T,
    }
    // Answers are structs with text keys, which can always be written.
    Bytes::from(serde_json::to_vec(&Success { ok: true, answer }).unwrap_or_default())
}

/// The body of a failure. `data` is left out where there is none.
pub fn failure_body(code: HostErrorCode, message: &str, data: &Value) -> Bytes {
    #[derive(Serialize)]
    struct Failed<'a> {
        ok: bool,
        code: HostErrorCode,
        message: &'a str,
        #[serde(skip_serializing_if = "Value::is_null")]
        data: &'a Value,
    }
    Bytes::from(serde_json::to_vec(&Failed { ok: false, code, message, data }).unwrap_or_default())
}
