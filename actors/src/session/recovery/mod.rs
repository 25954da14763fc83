//! The client's side of sessions: which conversation the user has chosen, which one the newest turn was in, and whose
//! turn may still change that.
//!
//! - [`start`], [`Recovery`]: the actor that owns this, and the way to it;
//! - [`SessionCore`]: the core that knows what is stored, as the actor asks it;
//! - [`RunObserver`]: what has to be remembered of the lines of a turn;
//! - `state`: the state machine, pure; `table` is its heart.
//!
//! A turn goes like this: [`BeginTurn`] gives an [`Attempt`], whose id is the argument of `--resume`; each line of the
//! provider goes to a [`RunObserver`]; [`FinishTurn`] decides what the turn changed, and which of its last events the
//! user may see ([`Verdict::shown`]).

mod core;
mod error;
mod mailboxes;
mod messages;
mod observer;
mod session_recovery;
mod state;
mod table;
mod verdict;

use std::sync::Arc;

use actix::prelude::Actor;

pub use self::core::{ClearInterruption, ClearPlan, ClearReport, ListPage, SessionCore};
pub use error::ClientError;
pub use mailboxes::Recovery;
pub use messages::*;
pub(crate) use observer::ResultLine;
pub use observer::{RunObserver, TurnEnd};
pub(crate) use state::State;
pub use state::{Active, Attempt, Phase, Selection, Snapshot};
pub use verdict::{LastEvent, Verdict};

use self::session_recovery::SessionRecovery;
use super::lease_actor::LeaseActor;

/// Starts the actor in the running actix system, with a management lease of its own: for one client.
pub fn start(core: Arc<dyn SessionCore>) -> Recovery {
    let lease = LeaseActor::default().start();
    SessionRecovery::new(core, lease.into()).start().into()
}
