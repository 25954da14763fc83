//! The wire types and codecs of Cofferdam's contracts. No I/O, no actors, no clock.
//!
//! - [`ckpt`]: the ws-ckpt socket protocol (spec: *ws-ckpt and Session Management IPC Protocols*).
//! - [`pod`]: the isolation pod protocol (spec: *Isolation Pod - Cross-layer protocol*).

pub mod ckpt;
pub mod pod;
