//! The control API over its unix socket: what the frozen wire cannot carry.

mod client;
mod server;

pub(crate) use client::{ControlClient, ControlError};
pub(crate) use server::serve;
