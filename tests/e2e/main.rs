//! End-to-end tests: the built programs over their real sockets, each test in a place of its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests do to files what users do")]

mod checkpoint;
mod cleanup;
mod cli;
mod concurrency;
mod config;
mod console;
mod crash;
mod crash_random;
mod daemon;
mod damage;
mod diff;
mod errors;
mod fidelity;
mod filesystems;
mod frames;
mod full_disk;
mod host;
mod http;
mod init;
mod kept;
mod kinds;
mod left_out;
mod peers;
mod pod;
mod requests;
mod rollback;
mod session;
mod trash;
mod undo;
mod workspaces;

use cofferdam_tests::site::{Programs, Site};

/// A place of its own for a test, with the programs of this build.
fn site() -> Site {
    Site::new(programs())
}

/// The same for an ordinary user, also if root runs the tests.
fn site_of_ordinary_user() -> Site {
    Site::of_ordinary_user(programs())
}

fn programs() -> Programs {
    Programs::new(env!("CARGO_BIN_EXE_cofferdam"), env!("CARGO_BIN_EXE_ws-ckpt"))
}
