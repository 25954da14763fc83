//! The isolation pod: where a host finds the sidecar's program, and that program's own side.
//!
//! - [`SidecarPlaces`]: finds the program;
//! - [`SidecarParts`]: how a host speaks to it.
//!
//! The program is a stdio adapter: lines from stdin become messages, answers and events become lines on stdout. Three
//! threads carry a request: one reads stdin and puts the message into the actor's mailbox, the actors' thread answers, one
//! prints. None of them opens a socket, or changes what its descriptors share with other processes.

mod adapter;
mod discover;
mod lifetime;
mod logs;
mod outbox;
mod surroundings;
mod translate;

pub use cofferdam_actors::host::core::sidecar::SidecarParts;
pub use discover::{NoSidecar, SidecarPlaces, Tried};

pub(crate) use adapter::{Machine, run};
pub(crate) use surroundings::surroundings;
