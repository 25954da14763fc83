//! What an adapter holds: the mailboxes of the session actors.

use actix::Message;
use cofferdam_protocol::session::SessionError;

use super::failure::internal_error;
use super::messages::*;
use crate::mailbox::{Carries, mailboxes};

mailboxes! {
    /// The way to the stored conversations.
    pub struct Sessions {
        list: ListSessions,
        inspect: InspectSession,
        validate: ValidateSession,
        prepare_clear_all: PrepareClearAll,
        clear: ClearSessions,
        open: OpenStore,
        load: LoadSession,
        persist: PersistSession,
    }
}

impl Sessions {
    /// Sends a request and waits for its answer.
    pub async fn ask<M, T>(&self, request: M) -> Result<T, SessionError>
    where
        Self: Carries<M>,
        M: Message<Result = Result<T, SessionError>> + Send + 'static,
        T: Send + 'static,
    {
        match self.recipient().send(request).await {
            Ok(answer) => answer,
            Err(_) => Err(internal_error("the session store is stopping")),
        }
    }
}
