//! Everything of Cofferdam that touches a disk.
//!
//! Synchronous, without actors and without a transport: callers that must not block run it on a thread of
//! their own. The layers, lowest first:
//!
//! - [`clock`], [`disk`], [`fault`], [`sys`]: time, every mutating system call (with its fault hook), and the few calls
//!   no safe crate has;
//! - [`path`], [`peer`], [`fs`]: byte paths, whose rights an operation runs with, and descriptor-relative
//!   reading, restoring and removing of files;
//! - [`durable`], [`rotating`]: files that are replaced whole and survive power loss; logs that never get large;
//! - `sqlite`: what every database here has in common;
//! - [`ckpt`]: the snapshot engine;
//! - [`pod`]: the isolation pod: its database, the import of its predecessor, its sandbox root;
//! - [`sandbox`]: what keeps an agent in its task's directory, and what ends it;
//! - [`session`]: the store of conversations.

pub mod ckpt;
pub mod clock;
pub mod console;
pub mod disk;
pub mod durable;
pub mod fault;
pub mod fs;
pub mod path;
pub mod peer;
pub mod pod;
pub mod rotating;
pub mod sandbox;
pub mod session;
mod sqlite;
pub mod sys;
