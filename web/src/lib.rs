//! Cofferdam's JSON API, `/api/v1/…`, as a scope for any actix-web application.
//!
//! It carries what the frozen wires cannot. Handlers translate: a request becomes one message to the actors, and the
//! reply becomes one JSON document. `openapi.json` describes every route, and a test compares the two.
//!
//! Whoever mounts the scope says who asks: a [`Peer`] in the connection's data (`HttpServer::on_connect`) or in the
//! request's extensions. Without one, every route answers 403.
//!
//! [`Peer`]: cofferdam_storage::peer::Peer

mod api;
mod caller;
pub mod ckpt;
mod error;
mod session;

pub use api::{OPENAPI, Services, scope};
pub use error::ErrorReport;
