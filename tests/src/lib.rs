//! Test tools: trees to snapshot and compare, a project generator, the built daemon in a place of its own, and a raw
//! client of the ws-ckpt socket.
//!
//! Everything here panics when it cannot do its work: a test that goes on without its set-up proves nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test tools fail by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests touch the disk and the clock as any user's program does"
)]

pub mod files;
pub mod mount;
pub mod process;
pub mod project;
pub mod site;
pub mod tree;
pub mod user;
pub mod wire;

/// Says on stderr why a test cannot run on this machine or for this user.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        #[allow(clippy::print_stderr, reason = "how a test says that it did not run")]
        { eprintln!("skipped: {}", format_args!($($why)*)); }
        return;
    }};
}
