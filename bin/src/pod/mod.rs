//! The stdio adapter of the isolation pod: lines from stdin become messages, answers and events become lines on stdout.
//!
//! Three threads carry a request: one reads stdin and puts the message into the actor's mailbox, the actors' thread
//! answers, one prints. None of them opens a socket, or changes what its descriptors share with other processes.

mod adapter;
mod lifetime;
mod logs;
mod outbox;
mod surroundings;
mod translate;

pub(crate) use adapter::{Machine, run};
pub(crate) use surroundings::surroundings;
