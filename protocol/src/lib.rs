//! The wire types and codecs of Cofferdam's contracts. No I/O, no actors, no clock.
//!
//! - [`ckpt`]: the ws-ckpt socket protocol (spec: *ws-ckpt and Session Management IPC Protocols*).
//! - [`host`]: what a host of isolation pods offers over HTTP (the same spec, §9).
//! - [`pod`]: the isolation pod protocol (spec: *Isolation Pod - Cross-layer protocol*).
//! - [`session`]: stored conversations, their management and the headless line mode (spec: *cosh-core Session
//!   Management JSON Protocol*).

mod budget;
pub mod ckpt;
pub mod host;
pub mod pod;
pub mod session;
