//! The console: how a browser signs in, and the pages it gets.
//!
//! A one-time code in a link, which only this machine's user can see, buys a cookie. Neither is kept but as a hash, in memory.

mod assets;
pub(crate) mod code;
mod page;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::dev::RequestHead;
use actix_web::http::header::COOKIE;
use cofferdam_storage::clock::Clock;

pub use code::ConsoleLink;
pub(crate) use page::{PAGES, page};

use crate::access::secret::{self, Hashed};
use crate::access::{BrowserAuth, Verdict};

/// How long a code can be spent.
const CODE_TIME: Duration = Duration::from_secs(600);
/// The most codes that wait to be spent; the oldest goes first.
const CODES: usize = 16;
/// The most browsers that are signed in; whoever signed in first goes first.
const BROWSERS: usize = 64;

/// Who may look at the console.
pub struct Console {
    address: SocketAddr,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    codes: VecDeque<Code>,
    cookies: VecDeque<Hashed>,
}

struct Code {
    hash: Hashed,
    until: Duration,
}

impl Console {
    /// That of a server which listens there. Nobody is signed in.
    pub fn new(address: SocketAddr, clock: Arc<dyn Clock>) -> Self {
        Self { address, clock, known: Mutex::default() }
    }

    /// A link with a fresh code: whoever opens it within ten minutes, and first, is signed in.
    pub fn login_url(&self) -> String {
        let code = secret::random();
        let until = self.clock.monotonic() + CODE_TIME;
        let mut known = self.known();
        keep_newest(&mut known.codes, CODES, Code { hash: Hashed::of(code.as_bytes()), until });
        format!("http://{}/login?code={code}", self.address)
    }

    /// Takes a code, and returns the cookie it buys.
    fn sign_in(&self, code: &str) -> Option<String> {
        let (hash, now) = (Hashed::of(code.as_bytes()), self.clock.monotonic());
        let mut known = self.known();
        known.codes.retain(|code| now < code.until);
        let at = known.codes.iter().position(|code| code.hash.is(&hash))?;
        known.codes.remove(at);
        let cookie = secret::random();
        keep_newest(&mut known.cookies, BROWSERS, Hashed::of(cookie.as_bytes()));
        Some(format!("{}={cookie}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name()))
    }

    /// Browsers send the cookies of one port to all ports of a machine, so each port's has a name of its own.
    fn cookie_name(&self) -> String {
        format!("cofferdam-{}", self.address.port())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing is left half done by whoever panicked.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep_newest<T>(queue: &mut VecDeque<T>, most: usize, newest: T) {
    queue.push_back(newest);
    if queue.len() > most {
        queue.pop_front();
    }
}

impl BrowserAuth for Console {
    fn judge(&self, request: &RequestHead) -> Verdict {
        let name = self.cookie_name();
        let known = self.known();
        let headers = request.headers().get_all(COOKIE).filter_map(|header| header.to_str().ok());
        let shown = headers.flat_map(|header| header.split(';')).filter_map(|cookie| {
            let (of, value) = cookie.trim_matches(' ').split_once('=')?;
            (of == name).then(|| Hashed::of(value.as_bytes()))
        });
        // All are compared: how many there are is no secret, which one it is might be.
        let is_known = |shown: Hashed| known.cookies.iter().fold(false, |found, one| found | one.is(&shown));
        match shown.fold(false, |found, shown| found | is_known(shown)) {
            true => Verdict::Authenticated,
            false => Verdict::Unknown,
        }
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
