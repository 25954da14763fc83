//! The console: how a browser signs in, and the pages it gets.
//!
//! A one-time code in a link, which only this machine's user can see, buys a cookie. Neither is kept but as a hash; of the
//! cookies these are kept over restarts, too.
//!
//! Browsers send a cookie to every port of the host that set it. So the link leads to a name that only this machine's user
//! knows, and that every browser of this machine takes for this machine: `c` and 128 random bits below `localhost`. Whoever
//! else serves something here gets no cookie.

mod assets;
pub(crate) mod code;
mod known;
mod page;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::RequestHead;
use actix_web::http::header::{COOKIE, HOST};
use cofferdam_storage::clock::Clock;
use cofferdam_storage::console::ConsoleFile;

pub use code::{ConsoleLink, SignedOut};
use known::Kept;
pub(crate) use page::{PAGES, elsewhere, page};

use crate::access::secret::{self, Hashed};
use crate::access::{BrowserAuth, Token, Verdict};

/// How long a cookie is good after it was shown last.
const COOKIE_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Who may look at the console.
pub struct Console {
    address: SocketAddr,
    clock: Arc<dyn Clock>,
    kept: Arc<Kept>,
    /// What the pages of whoever is signed in get.
    token: Token,
}

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPlace {
    /// To the name that nobody else knows.
    Named,
    /// To the address itself, for browsers that do not know the name. Every server at that address gets the cookie.
    Plain,
}

impl Console {
    /// That of a server which listens there, with what `file` keeps of it.
    pub fn new(address: SocketAddr, clock: Arc<dyn Clock>, file: Option<ConsoleFile>) -> Self {
        Self { address, clock, kept: Arc::new(Kept::read(file)), token: Token::random() }
    }

    /// The name it is reached by, and its port.
    pub fn host(&self) -> String {
        format!("{}.localhost:{}", self.kept.name(), self.address.port())
    }

    /// A link with a fresh code: whoever opens it within ten minutes, and first, is signed in.
    pub fn login_url(&self, place: LinkPlace) -> String {
        // Browsers take the name for these two.
        let is_known = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let place = if is_known.contains(&self.address.ip()) { place } else { LinkPlace::Plain };
        let code = self.kept.code(place, self.clock.monotonic());
        match place {
            LinkPlace::Named => format!("http://{}/login?code={code}", self.host()),
            LinkPlace::Plain => format!("http://{}/login?code={code}", self.address),
        }
    }

    /// Takes a code, at the place it was made for, and returns the header that sets the cookie it buys. That is kept by then.
    async fn sign_in(&self, request: &RequestHead, code: &str) -> Option<String> {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let place = if host == Some(self.host().as_str()) { LinkPlace::Named } else { LinkPlace::Plain };
        let cookie = self.kept.sign_in(code, place, &*self.clock)?;
        Arc::clone(&self.kept).note().await;
        Some(self.header(&cookie))
    }

    /// Ends all codes and cookies, the token, and what goes on in its name; says of how many browsers. That is kept by then; if
    /// it could not be, it holds until the next start.
    async fn sign_out(&self) -> io::Result<usize> {
        let browsers = self.kept.sign_out();
        self.token.replace();
        Arc::clone(&self.kept).write().await?;
        Ok(browsers)
    }

    /// The header that sets a request's cookie again, for as long as from now on; nothing if it shows none that is good.
    fn renewed(&self, request: &RequestHead) -> Option<String> {
        self.shown(request).map(|cookie| self.header(&cookie))
    }

    fn header(&self, cookie: &str) -> String {
        let (name, seconds) = (self.cookie_name(), COOKIE_TIME.as_secs());
        format!("{name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}")
    }

    /// Browsers send the cookies of one port to all ports of a host, so each port's has a name of its own.
    fn cookie_name(&self) -> String {
        format!("cofferdam-{}", self.address.port())
    }

    /// The cookie that a request shows, if it is good.
    fn shown(&self, request: &RequestHead) -> Option<String> {
        let name = self.cookie_name();
        let headers = request.headers().get_all(COOKIE).filter_map(|header| header.to_str().ok());
        let shown = headers.flat_map(|header| header.split(';')).filter_map(|cookie| {
            let (of, value) = cookie.trim_matches(' ').split_once('=')?;
            (of == name).then_some(value)
        });
        let mut good = None;
        for value in shown {
            if self.kept.is_known(&Hashed::of(value.as_bytes()), &*self.clock) {
                good = Some(value.to_owned());
            }
        }
        good
    }
}

impl BrowserAuth for Console {
    fn judge(&self, request: &RequestHead) -> Verdict {
        match self.shown(request) {
            Some(_) => Verdict::Authenticated,
            None => Verdict::Unknown,
        }
    }

    fn token(&self) -> Token {
        self.token.clone()
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
