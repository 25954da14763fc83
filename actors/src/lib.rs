//! The actors of Cofferdam: who owns which state, and the system that wires them together.
//!
//! Adapters (sockets, HTTP) turn a frame into one message, send it with [`ckpt::Ckpt::ask`], and turn the reply
//! into one frame. They know neither the rules of a contract nor the disk.
//!
//! - [`Cofferdam`]: starts everything on a thread of its own and stops it again;
//! - [`ckpt`]: workspaces and their snapshots;
//! - [`host`]: agents for tasks, and what people see and do about them;
//! - [`pod`]: tasks, their queue, leases and deadlines;
//! - [`session`]: stored conversations.

pub mod ckpt;
mod cofferdam;
pub mod host;
mod mailbox;
pub mod pod;
pub mod session;

pub use cofferdam::{Builder, Cofferdam, StartError};
pub use mailbox::Carries;
