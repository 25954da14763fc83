//! The pod's actors in this process.

use actix::prelude::Recipient;

use super::{CoreEvent, CoreParts, PodCore};
use crate::pod;

/// Starts them.
pub(super) fn start(_parts: CoreParts, _pod: pod::Parts, _events: Recipient<CoreEvent>) -> PodCore {
    unimplemented!()
}
