//! Cofferdam for programs: the client library, the programs, and the daemon as a library.
//!
//! - [`checkpoint`]: a blocking client of the ws-ckpt daemon;
//! - [`Cofferdam`]: everything the daemon does, in your own process and without a socket;
//! - [`programs`]: what each program's `main` calls.

pub mod checkpoint;
mod client;
mod control;
mod daemon;
mod logging;
mod paths;
pub mod programs;
mod socket;
mod terminal;

pub use cofferdam_actors::{Builder, Cofferdam, StartError, ckpt};
