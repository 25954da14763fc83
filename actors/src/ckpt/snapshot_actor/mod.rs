//! The registry of workspaces: routes every request, and answers from memory what memory knows.

use actix::prelude::*;
use cofferdam_protocol::ckpt::WsCkptErrorCode;
use cofferdam_storage::ckpt::Error;

use super::messages::*;
use super::{Ckpt, Failure, Parts};

struct SnapshotActor;

impl Actor for SnapshotActor {
    type Context = Context<Self>;
}

pub(super) async fn start(_parts: Parts) -> Result<Ckpt, Error> {
    Ok(Ckpt::from(SnapshotActor.start()))
}

macro_rules! unanswered {
    ($($message:ty)+) => {$(
        impl Handler<$message> for SnapshotActor {
            type Result = <$message as Message>::Result;
            fn handle(&mut self, _: $message, _: &mut Context<Self>) -> Self::Result {
                Err(Failure { code: WsCkptErrorCode::InternalError, message: "not answered yet".to_owned() })
            }
        }
    )+};
}
unanswered!(InitWorkspace Rollback UndoRollback DeleteSnapshot Cleanup RecoverWorkspace);
unanswered!(CreateCheckpoint ListSnapshots DiffSnapshots WorkspaceStatus GetConfig ReloadConfig);
unanswered!(HealthAdvisory SnapshotWarnings CheckStore StoreSize);

impl<M: Repeatable> Handler<Undelivered<M>> for SnapshotActor {
    type Result = ();
    fn handle(&mut self, _: Undelivered<M>, _: &mut Context<Self>) {}
}
