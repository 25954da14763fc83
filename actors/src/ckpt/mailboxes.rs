//! What an adapter holds: the mailboxes of the checkpoint actors.

use actix::Message;

use super::failure::{Failure, RoutingError};
use super::messages::*;
use crate::mailbox::{Carries, mailboxes};

mailboxes! {
    /// The way to the checkpoint actors. Cheap enough to clone per connection; wrap it in an `Rc` or `Arc` to clone
    /// it per request.
    pub struct Ckpt of Snapshots {
        init: InitWorkspace,
        checkpoint: CreateCheckpoint,
        rollback: Rollback,
        undo: UndoRollback,
        last_rollback: GetLastRollback,
        newest_rollback: NewestRollback,
        delete: DeleteSnapshot,
        list: ListSnapshots,
        diff: DiffSnapshots,
        compare: CompareFile,
        status: WorkspaceStatus,
        cleanup: Cleanup,
        config: GetConfig,
        reload: ReloadConfig,
        recover: RecoverWorkspace,
        health: HealthAdvisory,
        warnings: SnapshotWarnings,
        check: CheckStore,
        size: StoreSize,
        trash: ListTrash,
        restore_trashed: RestoreTrashed,
        undelivered_checkpoint: Undelivered<CreateCheckpoint>,
        undelivered_delete: Undelivered<DeleteSnapshot>,
        undelivered_undo: Undelivered<UndoRollback>,
        undelivered_recover: Undelivered<RecoverWorkspace>,
    } and Keeper {
        keep: KeepTree,
        rewind: RewindTree,
        kept: ListKept,
        forget: ForgetTree,
    }
}

impl Ckpt {
    /// Sends a request and waits for its answer. Do not drop the future when a client goes away: its answer is then
    /// what [`Undelivered`] wants to know.
    pub async fn ask<M, T>(&self, request: M) -> Result<T, Failure>
    where
        Self: Carries<M>,
        M: Message<Result = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        match self.recipient().send(request).await {
            Ok(answer) => answer,
            Err(_) => Err(RoutingError::Stopping.into()),
        }
    }
}
