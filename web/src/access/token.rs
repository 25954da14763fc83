//! The token of `x-ipp-token` (spec §9): made when the host is, in memory only, and another one once everybody is signed out.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix_web::http::header::HeaderMap;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::secret::same;

/// The header that carries it.
pub(crate) const HEADER: &str = "x-ipp-token";

/// How much of it a status shows.
const PREFIX: usize = 8;

/// The token. Clones are one and the same.
#[derive(Clone)]
pub struct Token(Arc<Mutex<Activation>>);

/// What it is until it is another.
struct Activation {
    secret: String,
    /// Says that it is another.
    over: CancellationToken,
}

impl Activation {
    fn fresh() -> Self {
        Self { secret: Uuid::new_v4().to_string(), over: CancellationToken::new() }
    }
}

impl Token {
    /// A fresh one.
    pub fn random() -> Self {
        Self(Arc::new(Mutex::new(Activation::fresh())))
    }

    /// All of it, for those who may have it: whether they may is asked afterwards, so that nobody gets the one that is made
    /// meanwhile.
    pub(crate) fn reveal(&self) -> String {
        self.now().secret.clone()
    }

    /// Its first 8 characters, by which people tell one from another.
    pub fn prefix(&self) -> String {
        self.now().secret[..PREFIX].to_owned()
    }

    /// Whether a request shows exactly this token, once.
    pub(crate) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(HEADER);
        match (shown.next(), shown.next()) {
            (Some(one), None) => same(one.as_bytes(), self.now().secret.as_bytes()),
            _ => false,
        }
    }

    /// What says that the token of now is none any more.
    pub(crate) fn over(&self) -> CancellationToken {
        self.now().over.clone()
    }

    /// Makes it another one. What goes on in the name of the one before ends.
    pub(crate) fn replace(&self) {
        let before = std::mem::replace(&mut *self.now(), Activation::fresh());
        before.over.cancel();
    }

    fn now(&self) -> MutexGuard<'_, Activation> {
        // Nothing is left half done by whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}…)", self.prefix())
    }
}
