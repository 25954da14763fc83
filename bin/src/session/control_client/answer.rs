//! What the program's output means.

use cofferdam_actors::session::recovery::ClientError;
use cofferdam_protocol::session::{SessionData, SessionError, bounded, limits};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::TransportError;
use super::exchange::Printed;

/// An answer whose parts are still text, so that each is judged for itself.
#[derive(Deserialize)]
struct Answer<'a> {
    ok: bool,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    error: Option<SessionError>,
}

/// Which request data belongs to.
#[derive(Deserialize)]
struct Tag {
    action: String,
}

/// The data of the answer to `action`. The program's exit status says nothing that the answer does not.
pub(super) fn read(printed: &Printed, action: &str) -> Result<SessionData, ClientError> {
    let shape = |error: serde_json::Error| TransportError::Shape(error.to_string());
    let answer: Answer<'_> = serde_json::from_slice(&printed.stdout)
        .map_err(|error| if error.is_data() { shape(error) } else { not_json(&error, &printed.stderr) })?;
    let data = match answer {
        Answer { ok: true, data: Some(data), .. } => data.get(),
        Answer { ok: true, data: None, .. } => return Err(TransportError::OmittedData.into()),
        Answer { ok: false, error: Some(error), .. } => return Err(error.into()),
        Answer { ok: false, error: None, .. } => return Err(TransportError::OmittedError.into()),
    };
    let tag: Tag = serde_json::from_str(data).map_err(shape)?;
    if tag.action != action {
        return Err(ClientError::transport("wrong session action in the response"));
    }
    Ok(serde_json::from_str(data).map_err(shape)?)
}

/// What the program says to people often tells why there is no answer.
fn not_json(error: &serde_json::Error, stderr: &[u8]) -> TransportError {
    let said = String::from_utf8_lossy(stderr);
    let why = match said.trim() {
        "" => error.to_string(),
        said => format!("{error}; stderr: {said}"),
    };
    TransportError::NotJson(bounded(&why, limits::MESSAGE))
}
