//! The control API over its unix socket: what the frozen wire cannot carry.

mod client;
mod events;
mod server;

pub(crate) use client::{ControlClient, ControlError};
pub(crate) use events::{Answered, Heard, Listener};
pub(crate) use server::serve;
