//! Cofferdam for programs: the client library, the programs, and the daemon as a library.
//!
//! - [`checkpoint`]: a blocking client of the ws-ckpt daemon;
//! - [`session`]: a blocking client of the program that keeps conversations;
//! - [`Cofferdam`]: everything the daemon does, in your own process and without a socket;
//! - [`programs`]: what each program's `main` calls.
//!
//! # Without a daemon
//!
//! ```
//! use std::sync::Arc;
//!
//! use cofferdam::ckpt::{CheckpointOutcome, CreateCheckpoint, Rollback};
//! use cofferdam::{Cofferdam, Peer, Store, StoreOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let project = std::fs::canonicalize(dir.path())?.join("project");
//! # std::fs::create_dir(&project)?;
//! # let file = project.join("file");
//! # std::fs::write(&file, "before")?;
//! let (store, _recovery) = Store::open(StoreOptions::new(dir.path().join("state")))?;
//! let cofferdam = Cofferdam::builder().backend(Arc::new(store)).start()?;
//!
//! // Requests are messages; any task may wait for the answer. Here a thread without tasks does.
//! let (peer, workspace) = (Peer::own(), project.to_str().ok_or("not UTF-8")?.to_owned());
//! let taken = cofferdam.run({
//!     let (peer, workspace) = (peer.clone(), workspace.clone());
//!     let (id, message, metadata) = ("one".to_owned(), None, None);
//!     async move |ckpt| {
//!         ckpt.ask(CreateCheckpoint { peer, workspace, id, message, metadata, pin: false }).await
//!     }
//! });
//! assert!(matches!(taken.blocking_recv()??, CheckpointOutcome::Created(_)));
//!
//! std::fs::write(&file, "broken")?;
//! let back = cofferdam.run(async move |ckpt| ckpt.ask(Rollback { peer, workspace, to: "one".to_owned() }).await);
//! assert_eq!(back.blocking_recv()??.outcome.changed, 1);
//! assert_eq!(std::fs::read_to_string(&file)?, "before");
//!
//! cofferdam.stop();
//! # Ok(())
//! # }
//! ```

pub mod checkpoint;
mod client;
mod control;
mod daemon;
mod deadline;
mod logging;
mod paths;
mod pod;
pub mod programs;
pub mod session;
mod signals;
mod socket;
mod stdio;
mod terminal;

pub use cofferdam_actors::{Builder, Cofferdam, StartError, ckpt};
pub use cofferdam_storage::ckpt::{Store, StoreOptions};
pub use cofferdam_storage::peer::Peer;
