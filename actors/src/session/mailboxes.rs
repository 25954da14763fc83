//! What an adapter holds: the mailboxes of the session actors.

use actix::Message;
use cofferdam_protocol::session::SessionError;

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
        let _ = request;
        todo!("an actor that is gone is an io error")
    }
}
