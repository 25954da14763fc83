//! Hostile programs in the sandbox of an agent, which the built supervisor makes: as an ordinary user and as root, with
//! namespaces and without.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests do to files what users do")]

mod ending;
mod home;
mod hostile;
mod neighbours;
mod nested;
mod place;
mod probe;

use cofferdam_storage::sandbox::LeftOut;
use cofferdam_tests::user;

/// A way in which a sandbox is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    name: &'static str,
    /// Whether the daemon, and with it the supervisor, is root.
    root: bool,
    without: &'static [LeftOut],
}

const WAYS: [Way; 4] = [
    Way { name: "ordinary user", root: false, without: &[] },
    Way { name: "ordinary user without namespaces", root: false, without: &[LeftOut::Namespaces] },
    Way { name: "root", root: true, without: &[] },
    Way { name: "root without namespaces", root: true, without: &[LeftOut::Namespaces] },
];

/// The ways that this user can take.
fn ways() -> impl Iterator<Item = Way> {
    if !user::is_root() {
        cofferdam_tests::skipped(format_args!("a sandbox made by root needs root"));
    }
    WAYS.into_iter().filter(|way| user::is_root() || !way.root)
}
