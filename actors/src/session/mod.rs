//! Sessions: one actor that keeps conversations, one that says who may manage them, one that knows which conversation a
//! client is in, and a task that holds a conversation.
//!
//! - [`Sessions`]: the way to the stored conversations, from the management protocol's requests to a turn's end;
//! - [`recovery`]: the client's side: which conversation is selected, which is active, whose turn may still change that;
//! - [`conversation`], `provider`, `tool`: the headless program's side: turns, who answers in them, and what an answer may
//!   call.

pub mod conversation;
mod failure;
mod lease_actor;
mod mailboxes;
mod messages;
mod operations;
pub(crate) mod process;
mod provider;
pub mod recovery;
mod session_store_actor;
mod tool;

use std::sync::Arc;

use actix::prelude::Actor;
use cofferdam_storage::clock::{Clock, IdGen, RandomIds, SystemClock};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::session::config::Places;

pub use failure::error_of;
pub use mailboxes::Sessions;
pub use messages::*;

use lease_actor::LeaseActor;
use session_store_actor::SessionStoreActor;

/// What the session actors work with.
#[derive(Clone)]
pub struct Parts {
    /// The way to the disk.
    pub disk: Disk,
    /// What is written as time of a conversation.
    pub clock: Arc<dyn Clock>,
    /// Ids of new conversations, and names of temporary files.
    pub ids: Arc<dyn IdGen>,
    /// Where the settings are.
    pub places: Places,
}

impl Parts {
    /// What the machine has, with settings from these places.
    pub fn new(places: Places) -> Self {
        let (clock, ids) = (Arc::new(SystemClock::new()), Arc::new(RandomIds));
        Self { disk: Disk::default(), clock, ids, places }
    }
}

/// Starts the session actors in the running actix system.
pub fn start(parts: Parts) -> Sessions {
    let lease = LeaseActor::default().start();
    SessionStoreActor::new(parts, lease.into()).start().into()
}
