//! Sessions: the built `cosh-core` over its standard input and output.

mod clear;
mod cli;
mod daemon;
mod headless;
mod health;
mod legacy;
mod listing;
mod replay;
mod requests;
mod scripts;
mod writing;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use cofferdam_protocol::session::{Content, Message};
use cofferdam_tests::session::{SessionSite, Turn};

/// A place of its own for a test, with the program of this build.
fn site() -> SessionSite {
    SessionSite::new(env!("CARGO_BIN_EXE_cosh-core"))
}

/// The same for an ordinary user, also if root runs the tests.
fn site_of_ordinary_user() -> SessionSite {
    SessionSite::of_ordinary_user(env!("CARGO_BIN_EXE_cosh-core"))
}

/// The texts of a stored conversation; the program agrees that it can be resumed.
#[track_caller]
fn texts(site: &SessionSite, n: u32) -> Vec<String> {
    assert_eq!(site.validate(n), "ok");
    let text = |message: Message| match message.content {
        Content::Text(text) => text,
        blocks @ Content::Blocks(_) => panic!("{blocks:?}"),
    };
    site.envelope(n).messages.into_iter().map(text).collect()
}

/// Runs `scene` for every operation on the disk: it gets a rule for `COFFERDAM_FAULT` by which that operation fails, or
/// is never begun since the process is killed; it says whether that came to pass.
fn each_fault(scene: impl Fn(&str) -> bool) {
    for action in ["kill", "eio", "enospc"] {
        let met = (1..).take_while(|nth| scene(&format!("op#{nth}={action}"))).count();
        assert!(met > 3, "{action}: only {met} operations");
    }
}

/// Runs a command under a fault; whether the process was killed, and what it printed.
#[track_caller]
fn under(fault: &str, mut command: Command) -> (bool, Turn) {
    let turn = Turn::of(command.env("COFFERDAM_FAULT", fault));
    let killed = turn.status.signal() == Some(9);
    assert!(killed || turn.status.code().is_some(), "{turn:?}");
    (killed, turn)
}
