//! Who may speak to this process over TCP, where every page in every browser of this machine can connect: which names it is
//! reached by, whose programs may ask, the token of the contract, and what a browser has to show.

mod guard;
mod neighbour;
mod own;
pub(crate) mod secret;
mod token;
mod unread;

use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::RequestHead;

pub use guard::guard;
pub(crate) use guard::{OverTcp, admit};
pub use neighbour::{Sandboxed, introduce};
pub(crate) use own::Foreign;
pub use own::OwnAddress;
pub use token::Token;

/// How long a request's body may take, unless said otherwise.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Who is let in.
pub struct Access {
    /// What whoever calls the contract's API has to show.
    pub token: Token,
    /// Which browsers are let in without it.
    pub browser: Arc<dyn BrowserAuth>,
    /// Where this server is reached.
    pub own: OwnAddress,
    /// How long a request's body may take from its first byte to its last.
    pub body_time: Duration,
}

impl Access {
    /// For a server that is reached there, with the token of whoever knows its browsers.
    pub fn new(own: OwnAddress, browser: Arc<dyn BrowserAuth>) -> Self {
        Self { token: browser.token(), browser, own, body_time: BODY_TIME }
    }
}

/// Tells the requests of authenticated pages from others.
pub trait BrowserAuth: Send + Sync + 'static {
    /// Whether this request comes from an authenticated page.
    fn judge(&self, request: &RequestHead) -> Verdict;

    /// The token that such pages get. Whoever signs browsers out keeps a clone, and makes it another one then.
    fn token(&self) -> Token {
        Token::random()
    }
}

/// Whether a request comes from an authenticated page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Authenticated,
    /// Nothing says so.
    Unknown,
}

/// No browser is ever authenticated.
#[derive(Clone, Copy, Debug)]
pub struct NoBrowser;

impl BrowserAuth for NoBrowser {
    fn judge(&self, _: &RequestHead) -> Verdict {
        Verdict::Unknown
    }
}
