//! The actor around the state: it asks the core, and holds the management lease where events must not overlap.
//!
//! The state changes only at the moments in which a handler has all it needs, never while one waits: a snapshot does not
//! wait for a slow removal.

use std::sync::Arc;

use actix::fut::{self, ActorFutureExt, LocalBoxActorFuture};
use actix::prelude::*;
use cofferdam_protocol::session::Summary;
use tokio::task::spawn_blocking;

use super::core::{ClearPlan, SessionCore};
use super::error::ClientError;
use super::messages::*;
use super::state::{Attempt, Selection, Snapshot, State};
use super::verdict::Verdict;
use crate::mailbox::Carries;
use crate::session::lease_actor::Lease;
use crate::session::messages::{AcquireLease, ManagementLease};

/// Owns one client's recovery state.
pub(super) struct SessionRecovery {
    state: State,
    core: Arc<dyn SessionCore>,
    lease: Lease,
}

/// An answer that takes a while.
type Later<T> = ResponseActFuture<SessionRecovery, Result<T, ClientError>>;

impl SessionRecovery {
    pub(super) fn new(core: Arc<dyn SessionCore>, lease: Lease) -> Self {
        Self { state: State::default(), core, lease }
    }

    /// Does something while nobody else does anything that needs the lease.
    fn under_lease<T: 'static>(
        &self,
        work: impl FnOnce(&mut Self) -> LocalBoxActorFuture<Self, Result<T, ClientError>> + 'static,
    ) -> Later<T> {
        let asked = self.lease.recipient().send(AcquireLease).into_actor(self);
        Box::pin(asked.then(|lease, actor, _| match lease {
            Ok(lease) => {
                let done = work(actor).map(move |done, _, _| {
                    let _ended: ManagementLease = lease;
                    done
                });
                Box::pin(done) as LocalBoxActorFuture<_, _>
            }
            Err(_) => Box::pin(fut::ready(Err(ClientError::transport("the program is stopping")))),
        }))
    }

    /// Asks the core, on a thread that may wait for it.
    fn ask_core<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn SessionCore) -> Result<T, ClientError> + Send + 'static,
    ) -> LocalBoxActorFuture<Self, Result<T, ClientError>> {
        let core = Arc::clone(&self.core);
        let asked = async move {
            // Only a panic or a runtime that shuts down keeps a blocking task from ending.
            let asked = spawn_blocking(move || ask(&*core)).await;
            asked.unwrap_or_else(|_| Err(ClientError::transport("the core's client panicked")))
        };
        Box::pin(asked.into_actor(self))
    }
}

impl Actor for SessionRecovery {
    type Context = Context<Self>;
}

impl Handler<Select> for SessionRecovery {
    type Result = Later<Summary>;

    fn handle(&mut self, Select { workspace, session_id }: Select, _: &mut Context<Self>) -> Self::Result {
        self.under_lease(|actor| {
            let selection = Selection { session_id: session_id.clone(), workspace: workspace.clone() };
            let validated = actor.ask_core(move |core| core.validate(&workspace, &session_id));
            Box::pin(validated.map(|validated, actor, _| {
                match &validated {
                    Ok(_) => actor.state.select(selection),
                    Err(error) => actor.state.reject(error.clone()),
                }
                validated
            }))
        })
    }
}

impl Handler<PrepareClearAll> for SessionRecovery {
    type Result = Later<ClearPlan>;

    fn handle(
        &mut self,
        PrepareClearAll { workspace }: PrepareClearAll,
        _: &mut Context<Self>,
    ) -> Self::Result {
        self.under_lease(move |actor| {
            let protected = actor.state.protected();
            actor.ask_core(move |core| core.prepare_clear_all(&workspace, &protected))
        })
    }
}

impl Handler<Clear> for SessionRecovery {
    type Result = Later<Cleared>;

    fn handle(&mut self, Clear { workspace, session_ids }: Clear, _: &mut Context<Self>) -> Self::Result {
        self.under_lease(move |actor| {
            let protected = actor.state.protected();
            let in_use = |id: &String| protected.iter().any(|one| one.as_str() == id);
            let (kept, clearable): (Vec<_>, Vec<_>) = session_ids.into_iter().partition(in_use);
            actor.ask_core(move |core| {
                let report = core.clear(&workspace, &clearable, &protected)?;
                Ok(Cleared { protected: kept, report })
            })
        })
    }
}

impl Handler<StartFresh> for SessionRecovery {
    type Result = Later<Option<String>>;

    fn handle(&mut self, StartFresh: StartFresh, _: &mut Context<Self>) -> Self::Result {
        self.under_lease(|actor| Box::pin(fut::ready(Ok(actor.state.start_fresh()))))
    }
}

impl Handler<BeginTurn> for SessionRecovery {
    type Result = Result<Attempt, ClientError>;

    fn handle(&mut self, BeginTurn { workspace, resume }: BeginTurn, _: &mut Context<Self>) -> Self::Result {
        Ok(self.state.begin(&workspace, resume))
    }
}

impl Handler<FinishTurn> for SessionRecovery {
    type Result = Later<Verdict>;

    fn handle(
        &mut self,
        FinishTurn { attempt, run, end }: FinishTurn,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let activates = run.activates(end);
        let finish = move |actor: &mut Self| -> LocalBoxActorFuture<Self, _> {
            Box::pin(fut::ready(Ok(actor.state.finish(&attempt, &run, end))))
        };
        // What makes nothing active needs not wait.
        if activates { self.under_lease(finish) } else { finish(self) }
    }
}

impl Handler<GetSnapshot> for SessionRecovery {
    type Result = Result<Snapshot, ClientError>;

    fn handle(&mut self, GetSnapshot: GetSnapshot, _: &mut Context<Self>) -> Self::Result {
        Ok(self.state.snapshot())
    }
}

#[cfg(test)]
mod tests;
