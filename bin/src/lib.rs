//! Cofferdam for programs: the client library, the programs, and the daemon as a library.
//!
//! - [`checkpoint`]: a blocking client of the ws-ckpt daemon;
//! - [`Cofferdam`]: everything the daemon does, in your own process and without a socket;
//! - [`pod`]: where the isolation pod's sidecar is, and how it is spoken to;
//! - [`session`]: stored conversations: their messages, a blocking client of the program that keeps them, and which of
//!   them a client is in;
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
//! let back = cofferdam.run(async move |ckpt| {
//!     ckpt.ask(Rollback { peer, workspace, to: "one".to_owned(), exact: true }).await
//! });
//! assert_eq!(back.blocking_recv()??.outcome.changed, 1);
//! assert_eq!(std::fs::read_to_string(&file)?, "before");
//!
//! cofferdam.stop();
//! # Ok(())
//! # }
//! ```
//!
//! It keeps conversations, too:
//!
//! ```
//! # use std::sync::Arc;
//! use cofferdam::session::{ListRequest, ListSessions, Parts, Places, SessionData};
//! # use cofferdam::{Cofferdam, Store, StoreOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let home = dir.path().to_owned();
//! # let workspace_scope = home.to_str().ok_or("not UTF-8")?.to_owned();
//! # let (store, _recovery) = Store::open(StoreOptions::new(dir.path().join("state")))?;
//! let places = Places { home: Some(home), ..Places::default() };
//! let builder = Cofferdam::builder().backend(Arc::new(store)).sessions(Parts::new(places));
//! let cofferdam = builder.start()?;
//!
//! let request = ListRequest { workspace_scope, limit: 20, cursor: None, all_workspaces: false };
//! let sessions = cofferdam.sessions();
//! let listed = cofferdam.run(async move |_| sessions.ask(ListSessions(request)).await);
//! let SessionData::List { sessions, .. } = listed.blocking_recv()?? else { unreachable!() };
//! assert!(sessions.is_empty());
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
mod hosting;
mod http;
mod logging;
mod paths;
pub mod pod;
pub mod programs;
pub mod session;
mod signals;
mod socket;
mod stdio;
mod terminal;

pub use cofferdam_actors::{Builder, Cofferdam, StartError, ckpt};
pub use cofferdam_storage::ckpt::{Store, StoreOptions};
pub use cofferdam_storage::peer::Peer;
