//! The store of sessions: one directory for each workspace, one file for each conversation.
//!
//! [`SessionStore`] is the store as one workspace sees it. Its directory, and the flat one that came before it, are held
//! by descriptors; nothing beneath them is reached in another way, and no link in them is followed.
//!
//! In the order in which a request needs them: [`Config`], [`StoreRoot`], the directories (`scope`, `legacy`), then
//! reading (`listing`, `load`) or writing (`persist`, `clear`). What leaves through either has no secrets in it
//! (`redact`).

mod clear;
pub mod config;
mod dir;
mod error;
mod legacy;
mod listing;
mod load;
mod lock;
mod persist;
mod plan;
pub mod private;
pub mod redact;
mod root;
mod scan;
mod scope;
mod store;
mod sweep;
#[cfg(test)]
mod tests;

pub use clear::Cleared;
pub use config::Config;
pub use error::Error;
pub use listing::Page;
pub use plan::Plan;
pub use root::StoreRoot;
pub use store::{SessionStore, StoreParts};
