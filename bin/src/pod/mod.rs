//! The stdio adapter of the isolation pod: lines from stdin become messages, answers and events become lines on stdout.

mod adapter;
mod input;
mod lifetime;
mod outbox;
mod translate;
