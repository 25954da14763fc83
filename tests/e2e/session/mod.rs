//! Sessions: the built `cosh-core` over its standard input and output.

mod cli;
mod daemon;
mod headless;
mod health;
mod listing;
mod replay;
mod requests;
mod scripts;

use cofferdam_tests::session::SessionSite;

/// A place of its own for a test, with the program of this build.
fn site() -> SessionSite {
    SessionSite::new(env!("CARGO_BIN_EXE_cosh-core"))
}

/// The same for an ordinary user, also if root runs the tests.
fn site_of_ordinary_user() -> SessionSite {
    SessionSite::of_ordinary_user(env!("CARGO_BIN_EXE_cosh-core"))
}
