//! Which codes and cookies are good, and keeping that.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cofferdam_storage::clock::Clock;
use cofferdam_storage::console::{ConsoleFile, KeptBrowser, KeptConsole};

use super::{COOKIE_TIME, LinkPlace, secret};
use crate::access::secret::Hashed;

/// How long a code can be spent.
pub(super) const CODE_TIME: Duration = Duration::from_secs(600);
/// The most codes that wait to be spent; the oldest goes first.
pub(super) const CODES: usize = 16;
/// The most browsers that are signed in; whoever signed in first goes first.
pub(super) const BROWSERS: usize = 64;
/// How much later a cookie has to be shown again for that to be written down.
const NOTED: Duration = Duration::from_secs(3600);
/// Of 128 bits.
const NAME_DIGITS: usize = 32;

/// Codes and cookies, in memory and on the disk.
pub(super) struct Kept {
    name: String,
    known: Mutex<Known>,
    file: Option<ConsoleFile>,
    /// Held while the file is written.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Known {
    codes: VecDeque<Code>,
    browsers: VecDeque<Browser>,
}

struct Code {
    hash: Hashed,
    place: LinkPlace,
    until: Duration,
}

struct Browser {
    cookie: Hashed,
    /// About when it was shown last, in milliseconds of the wall clock.
    used_ms: i64,
}

impl Kept {
    /// What the file says, or a console of a new name in which nobody is signed in.
    pub(super) fn read(file: Option<ConsoleFile>) -> Self {
        let kept = file.as_ref().and_then(ConsoleFile::read);
        let kept = kept.unwrap_or_else(|| {
            let digits = secret::random();
            KeptConsole::new(format!("c{}", &digits[..NAME_DIGITS]), Vec::new())
        });
        let mut known = Known::default();
        for KeptBrowser { hash, used_ms } in kept.browsers {
            if let Some(cookie) = Hashed::from_hex(&hash) {
                keep_newest(&mut known.browsers, BROWSERS, Browser { cookie, used_ms });
            }
        }
        Self { name: kept.name, known: Mutex::new(known), file, writing: Mutex::new(()) }
    }

    /// The first label of the name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A fresh code, which is good at that place.
    pub(super) fn code(&self, place: LinkPlace, now: Duration) -> String {
        let code = secret::random();
        let hash = Hashed::of(code.as_bytes());
        keep_newest(&mut self.known().codes, CODES, Code { hash, place, until: now + CODE_TIME });
        code
    }

    /// Takes a code, and returns the cookie it buys. At another place it is no code, and stays good.
    pub(super) fn sign_in(&self, code: &str, place: LinkPlace, clock: &dyn Clock) -> Option<String> {
        let (hash, now) = (Hashed::of(code.as_bytes()), clock.monotonic());
        let mut known = self.known();
        known.codes.retain(|code| now < code.until);
        let at = known.codes.iter().position(|code| code.hash.is(&hash) && code.place == place)?;
        known.codes.remove(at);
        let cookie = secret::random();
        let browser = Browser { cookie: Hashed::of(cookie.as_bytes()), used_ms: millis(clock) };
        keep_newest(&mut known.browsers, BROWSERS, browser);
        Some(cookie)
    }

    /// Ends all codes and cookies, and says how many browsers were signed in.
    pub(super) fn sign_out(&self) -> usize {
        std::mem::take(&mut *self.known()).browsers.len()
    }

    /// Whether a cookie is good; it is then good for longer.
    pub(super) fn is_known(self: &Arc<Self>, shown: &Hashed, clock: &dyn Clock) -> bool {
        let now = millis(clock);
        let mut known = self.known();
        known.browsers.retain(|browser| since(browser, now) < COOKIE_TIME);
        // All are compared: how many there are is no secret, which one it is might be.
        let found = known
            .browsers
            .iter()
            .enumerate()
            .fold(None, |found, (at, browser)| if browser.cookie.is(shown) { Some(at) } else { found });
        let Some(browser) = found.and_then(|at| known.browsers.get_mut(at)) else { return false };
        if since(browser, now) >= NOTED || browser.used_ms > now {
            browser.used_ms = now;
            drop(known);
            if self.file.is_some() {
                // The next one to be written has it, too.
                drop(actix_web::rt::spawn(Arc::clone(self).note()));
            }
        }
        true
    }

    /// Writes down what is known, if there is a file.
    pub(super) async fn write(self: Arc<Self>) -> io::Result<()> {
        if self.file.is_none() {
            return Ok(());
        }
        let written = tokio::task::spawn_blocking(move || {
            let Some(file) = &self.file else { return Ok(()) };
            let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let browsers = self.known().browsers.iter().map(KeptBrowser::from).collect();
            file.write(&KeptConsole::new(self.name.clone(), browsers))
        });
        written.await.unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
    }

    /// The same where nobody has to know that it could not: it is logged.
    pub(super) async fn note(self: Arc<Self>) {
        if let Err(error) = self.write().await {
            tracing::warn!(%error, "browsers will have to sign in again after a restart: cannot write");
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing is left half done by whoever panicked.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<&Browser> for KeptBrowser {
    fn from(Browser { cookie, used_ms }: &Browser) -> Self {
        Self { hash: cookie.to_hex(), used_ms: *used_ms }
    }
}

/// How long ago a browser's cookie was shown; a clock that was set back says that it is now.
fn since(browser: &Browser, now_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(now_ms.saturating_sub(browser.used_ms)).unwrap_or(0))
}

fn millis(clock: &dyn Clock) -> i64 {
    clock.wall().0 / 1_000_000
}

fn keep_newest<T>(queue: &mut VecDeque<T>, most: usize, newest: T) {
    queue.push_back(newest);
    if queue.len() > most {
        queue.pop_front();
    }
}
