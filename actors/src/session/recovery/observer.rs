//! What has to be remembered of the lines that a provider writes in a turn.

use cofferdam_protocol::session::{SessionErrorCode as Code, bounded, limits};
use serde_json::Value;

use super::error::ClientError;

/// How a turn came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// By itself, well or not.
    Ended,
    /// The user wanted it to end.
    Cancelled,
}

/// Watches the lines of one turn. It believes fields only: nothing that stands in a text can pass for a session's error.
#[derive(Clone, Debug, Default)]
pub struct RunObserver {
    /// Whether the provider keeps sessions, if it says.
    resumable: Option<bool>,
    /// The session, as the newest line that names one says; never one that is not kept.
    reported: Option<String>,
    /// The newest error about the session that gives it up.
    session_error: Option<ClientError>,
    /// How the newest result says the turn went.
    result: Option<TurnResult>,
}

/// What a result line says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultLine<'a> {
    /// Whether something went wrong.
    pub(crate) is_error: bool,
    /// What; may be empty.
    pub(crate) message: &'a str,
    /// What was wrong with the request.
    pub(crate) error_code: Option<&'a str>,
    /// What was wrong with the session.
    pub(crate) session_error_code: Option<&'a str>,
    /// When that showed.
    pub(crate) session_error_phase: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnResult {
    Success,
    /// It failed by its length, and everything up to there is stored: going on in the same session makes sense.
    TooLong,
    Failure,
}

/// What a turn's end means for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending<'a> {
    /// The turn is complete, in this session.
    Reported(&'a str),
    /// It is not, or it is not known in which session it was.
    Unfinished,
    /// Sessions are not kept.
    NotResumable,
}

impl RunObserver {
    /// Takes a line that the provider wrote.
    pub fn line(&mut self, line: &Value) {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        match (text("type"), text("subtype")) {
            (Some("system"), Some("init")) => {
                self.init(line.get("session_resumable").and_then(Value::as_bool))
            }
            (Some("result"), _) => {
                let first = line.get("errors").and_then(|errors| errors.get(0)).and_then(Value::as_str);
                self.result(&ResultLine {
                    is_error: line.get("is_error").and_then(Value::as_bool) == Some(true),
                    message: first.or_else(|| text("result")).unwrap_or_default(),
                    error_code: text("error_code"),
                    session_error_code: text("session_error_code"),
                    session_error_phase: text("session_error_phase"),
                });
            }
            _ => {}
        }
        if let Some(id) = text("session_id") {
            self.session(id);
        }
    }

    /// A line names the session.
    pub(crate) fn session(&mut self, id: &str) {
        if self.resumable != Some(false) && !id.is_empty() {
            self.reported = Some(id.to_owned());
        }
    }

    /// A provider that once said it keeps no sessions keeps none in this turn.
    pub(crate) fn init(&mut self, resumable: Option<bool>) {
        if self.resumable != Some(false) {
            self.resumable = resumable.or(self.resumable);
        }
        if self.resumable == Some(false) {
            self.reported = None;
        }
    }

    /// The end of a turn.
    pub(crate) fn result(&mut self, line: &ResultLine<'_>) {
        let ResultLine { is_error, message, error_code, session_error_code, session_error_phase: phase } =
            *line;
        let too_long = message.starts_with("context_limit:") || error_code == Some("max_turns");
        self.result = Some(match is_error {
            true if too_long && phase != Some("persist") => TurnResult::TooLong,
            true => TurnResult::Failure,
            false => TurnResult::Success,
        });
        if let Some(code) = session_error_code
            && let Some(hint) = hint_if_given_up(code, phase)
        {
            self.session_error = Some(ClientError::new(code, bounded(message, limits::MESSAGE), hint));
        }
    }

    /// Why the session that was resumed is to be given up, if the provider said so.
    pub(crate) fn session_error(&self) -> Option<&ClientError> {
        self.session_error.as_ref()
    }

    /// Whether the turn makes a session active, if it may.
    pub(super) fn activates(&self, end: TurnEnd) -> bool {
        matches!(self.ending(end), Ending::Reported(_))
    }

    /// What the turn means for its session.
    pub(super) fn ending(&self, end: TurnEnd) -> Ending<'_> {
        let complete = end == TurnEnd::Ended
            && match self.result {
                Some(TurnResult::Success) => true,
                Some(TurnResult::TooLong) => self.resumable == Some(true),
                Some(TurnResult::Failure) | None => false,
            };
        match &self.reported {
            _ if self.resumable == Some(false) => Ending::NotResumable,
            Some(id) if complete => Ending::Reported(id),
            _ => Ending::Unfinished,
        }
    }
}

/// Whether an error about a session means that it cannot be gone on with; if so, what to do instead. The filesystem may
/// recover, and another writer may end; what could not be stored, however, is not in the session that is resumed next.
fn hint_if_given_up(code: &str, phase: Option<&str>) -> Option<&'static str> {
    let hopeless = [Code::NotFound, Code::Corrupt, Code::IncompatibleVersion, Code::ScopeMismatch];
    match phase {
        Some("persist") => Some("Resolve what keeps the session from being stored before you go on with it."),
        Some("load") | None if hopeless.iter().any(|one| one.as_str() == code) => {
            Some("Refresh the session list and choose another session, or start a new one.")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
