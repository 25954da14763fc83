//! The error codes of the host's envelope.

use serde::{Deserialize, Serialize};

use crate::pod::PodErrorCode;

/// Why the host refused: one of the sidecar's codes, or one of its own (spec §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HostErrorCode {
    /// What the sidecar says.
    Core(PodErrorCode),
    /// What only a host says.
    Host(HostCode),
}

/// What only a host says. The names on the wire never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HostCode {
    /// The main session has no client that could take a message.
    MainSessionNotLive,
    /// The token is missing or wrong (HTTP 403).
    Forbidden,
    /// The page is not authenticated (HTTP 401).
    Unauthorized,
    /// No such path (HTTP 404).
    NotFound,
    /// The path has no such HTTP method (HTTP 405).
    MethodNotAllowed,
}

impl From<PodErrorCode> for HostErrorCode {
    fn from(code: PodErrorCode) -> Self {
        Self::Core(code)
    }
}

impl From<HostCode> for HostErrorCode {
    fn from(code: HostCode) -> Self {
        Self::Host(code)
    }
}

impl HostErrorCode {
    /// The word on the wire.
    pub fn word(self) -> String {
        // A unit variant is a text in JSON.
        serde_json::to_value(self)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_contracts_words() {
        let words = [
            (HostErrorCode::from(PodErrorCode::NoSandboxRoot), "NO_SANDBOX_ROOT"),
            (HostCode::MainSessionNotLive.into(), "MAIN_SESSION_NOT_LIVE"),
            (HostCode::Forbidden.into(), "FORBIDDEN"),
            (HostCode::Unauthorized.into(), "UNAUTHORIZED"),
            (HostCode::NotFound.into(), "NOT_FOUND"),
            (HostCode::MethodNotAllowed.into(), "METHOD_NOT_ALLOWED"),
        ];
        for (code, word) in words {
            assert_eq!(code.word(), word);
            assert_eq!(serde_json::from_str::<HostErrorCode>(&format!("\"{word}\"")).unwrap(), code);
        }
    }
}
