//! The token of `x-ipp-token` (spec §9): made when the host is, in memory only.

use std::fmt;

use actix_web::http::header::HeaderMap;
use uuid::Uuid;

use super::secret::same;

/// The header that carries it.
pub(crate) const HEADER: &str = "x-ipp-token";

/// How much of it a status shows.
const PREFIX: usize = 8;

/// The token.
pub struct Token(String);

impl Token {
    /// A fresh one.
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    /// All of it, for those who may have it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Its first 8 characters, by which people tell one from another.
    pub fn prefix(&self) -> &str {
        &self.0[..PREFIX]
    }

    /// Whether a request shows exactly this token, once.
    pub(crate) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(HEADER);
        match (shown.next(), shown.next()) {
            (Some(one), None) => same(one.as_bytes(), self.0.as_bytes()),
            _ => false,
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}…)", self.prefix())
    }
}
