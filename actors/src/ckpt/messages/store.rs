//! The store as a whole; for the daemon's own user and root.

use actix::Message;
use cofferdam_storage::ckpt::{self, CheckReport};
use cofferdam_storage::peer::Peer;

use crate::ckpt::Failure;

/// Verifies the store. One check runs at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<CheckReport, Failure>")]
pub struct CheckStore {
    /// Who asks.
    pub peer: Peer,
    /// Read every byte of every object, not only the indexes.
    pub read_data: bool,
}

/// What the store takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Message)]
#[rtype(result = "Result<ckpt::StoreSize, Failure>")]
pub struct StoreSize {
    /// Who asks.
    pub peer: Peer,
}
