//! Why there is no sandbox.

use std::fmt::Display;
use std::io;

/// What could not be done, and why.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct Failure {
    what: String,
    source: io::Error,
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure that no system call has reported.
    pub(super) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), source: io::Error::other(why.into()) }
    }

    /// What went wrong of several things that were done whatever became of the others; the first says what, the others follow.
    pub(super) fn all(done: impl IntoIterator<Item = Result<()>>) -> Result<()> {
        let mut failures = done.into_iter().filter_map(Result::err);
        let Some(first) = failures.next() else { return Ok(()) };
        let why = std::iter::once(first.source.to_string()).chain(failures.map(|more| more.to_string()));
        Err(Self::refused(first.what, why.collect::<Vec<_>>().join("; ")))
    }
}

/// Says what could not be done.
pub(super) trait Doing<T> {
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Failure { what: what.to_string(), source: error.into() })
    }
}
