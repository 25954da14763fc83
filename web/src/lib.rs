//! Cofferdam over HTTP: the JSON API `/api/v1/…` and the isolation pod's surface `/isolation-pod/…`, each as a scope for any
//! actix-web application, and a whole server for loopback TCP with both and the console.
//!
//! The JSON API carries what the frozen wires cannot. Handlers translate: a request becomes one message to the actors, and the
//! reply becomes one JSON document. `openapi.json` describes every route, and a test compares the two.
//!
//! Whoever mounts the scope says who asks: a [`Peer`] in the connection's data (`HttpServer::on_connect`) or in the
//! request's extensions. Without one, every route answers 403. The isolation pod's surface has [`Access`] for that.
//!
//! [`Peer`]: cofferdam_storage::peer::Peer

pub mod access;
mod api;
mod caller;
pub mod ckpt;
pub mod console;
mod directories;
mod error;
mod events;
mod hangup;
pub mod host;
mod packed;
mod pod;
mod session;
pub mod tcp;

pub use access::{Access, Sandboxed};
pub use api::{OPENAPI, Services, scope};
pub use console::{Console, ConsoleLink, LinkPlace, SignedOut};
pub use error::ErrorReport;
pub use events::EventStreams;
pub use hangup::Hangup;
