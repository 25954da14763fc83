//! The host: what is shown of everything, who is live, who listens.

use actix::prelude::{Actor, Context, Handler, MessageResult};
use cofferdam_protocol::host::*;

use super::Parts;
use super::failure::HostRefusal;
use super::messages::{Ask, GetStatus, Subscribe};
use crate::session::Sessions;

/// The actor.
pub(super) struct HostActor {
    parts: Parts,
    sessions: Sessions,
}

impl HostActor {
    pub(super) fn new(parts: Parts, sessions: Sessions) -> Self {
        Self { parts, sessions }
    }
}

impl Actor for HostActor {
    type Context = Context<Self>;
}

macro_rules! stub {
    ($($m:ident)+) => {$(
        impl Handler<Ask<$m>> for HostActor {
            type Result = Result<<$m as HostMethod>::Answer, super::HostFailure>;
            fn handle(&mut self, _: Ask<$m>, _: &mut Context<Self>) -> Self::Result {
                Err(HostRefusal::Unavailable.into())
            }
        }
    )+};
}
stub!(GetState SetConfig StartTask OpenTask ResumeTask CancelTask Cleanup BulkCleanup ListFiles ReadSandboxFile);
stub!(PreviewReturn ReturnToMain ExportEntries ListExports UndoExport GetDiagnostics RestartCore GetLegacyTask);
stub!(FollowUp GetTranscript);

impl Handler<GetStatus> for HostActor {
    type Result = MessageResult<GetStatus>;
    fn handle(&mut self, _: GetStatus, _: &mut Context<Self>) -> Self::Result {
        unimplemented!()
    }
}

impl Handler<Subscribe> for HostActor {
    type Result = ();
    fn handle(&mut self, _: Subscribe, _: &mut Context<Self>) {}
}
