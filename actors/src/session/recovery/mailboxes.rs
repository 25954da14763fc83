//! What a client holds: the mailboxes of its recovery.

use actix::Message;

use super::error::ClientError;
use super::messages::*;
use crate::mailbox::{Carries, mailboxes};

mailboxes! {
    /// The way to a client's recovery.
    pub struct Recovery {
        select: Select,
        prepare_clear_all: PrepareClearAll,
        clear: Clear,
        start_fresh: StartFresh,
        begin: BeginTurn,
        finish: FinishTurn,
        snapshot: GetSnapshot,
    }
}

impl Recovery {
    /// Sends a request and waits for its answer.
    pub async fn ask<M, T>(&self, request: M) -> Result<T, ClientError>
    where
        Self: Carries<M>,
        M: Message<Result = Result<T, ClientError>> + Send + 'static,
        T: Send + 'static,
    {
        match self.recipient().send(request).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::transport("the program is stopping")),
        }
    }
}
