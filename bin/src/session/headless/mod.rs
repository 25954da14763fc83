//! The headless program: lines from stdin to a conversation, the conversation's lines to stdout.
//!
//! The conversation runs on the main thread. One thread reads stdin, one prints, one hears signals. The process ends by
//! `exit`, so that nothing that hangs is waited for.

mod adapter;
mod outbox;

pub(crate) use adapter::run;
