//! Test tools: trees to snapshot and compare, a project generator, the built daemon in a place of its own, a raw
//! client of the ws-ckpt socket, a host of the isolation pod's sidecar, and sessions with the program that manages them.
//!
//! Everything here panics when it cannot do its work: a test that goes on without its set-up proves nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test tools fail by panicking")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests touch the disk and the clock as any user's program does"
)]

use std::io::Write;

pub mod browser;
pub mod dice;
pub mod effort;
pub mod files;
pub mod host;
pub mod mount;
pub mod pod;
pub mod process;
pub mod program;
pub mod project;
pub mod session;
pub mod site;
pub mod stamps;
pub mod tree;
pub mod user;
pub mod web;
pub mod wire;

/// Says on stderr why a test cannot run on this machine or for this user, and returns from it.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        $crate::skipped(format_args!($($why)*));
        return;
    }};
}

/// Says on stderr why a test, or a part of it, cannot run on this machine or for this user. Past the test runner, which
/// swallows what a test that passes prints: nobody should take a skipped test for a proof.
pub fn skipped(why: std::fmt::Arguments<'_>) {
    let thread = std::thread::current();
    let line = format!("skipped: {why} ({})\n", thread.name().unwrap_or("unnamed"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
