//! What an adapter holds: the mailboxes of the host.

use actix::prelude::SendError;
use cofferdam_protocol::host::*;

use super::failure::{HostFailure, HostRefusal};
use super::messages::{Ask, EndAgents, GetStatus, Subscribe};
use crate::mailbox::{Carries, mailboxes};

mailboxes! {
    /// The way to the host: a mailbox for each method.
    pub struct Host {
        get_state: Ask<GetState>,
        set_config: Ask<SetConfig>,
        start_task: Ask<StartTask>,
        open_task: Ask<OpenTask>,
        resume_task: Ask<ResumeTask>,
        cancel_task: Ask<CancelTask>,
        cleanup: Ask<Cleanup>,
        bulk_cleanup: Ask<BulkCleanup>,
        list_files: Ask<ListFiles>,
        read_file: Ask<ReadSandboxFile>,
        preview_return: Ask<PreviewReturn>,
        return_to_main: Ask<ReturnToMain>,
        export_entries: Ask<ExportEntries>,
        list_exports: Ask<ListExports>,
        undo_export: Ask<UndoExport>,
        get_diagnostics: Ask<GetDiagnostics>,
        restart_core: Ask<RestartCore>,
        get_legacy_task: Ask<GetLegacyTask>,
        follow_up: Ask<FollowUp>,
        get_transcript: Ask<GetTranscript>,
        list_turns: Ask<ListTurns>,
        rewind_task: Ask<RewindTask>,
        undo_rewind: Ask<UndoRewind>,
        get_status: GetStatus,
        subscribe: Subscribe,
        end_agents: EndAgents,
    }
}

impl Host {
    /// Sends a method and waits for its answer.
    pub async fn ask<M: HostMethod>(&self, method: M) -> Result<M::Answer, HostFailure>
    where
        Self: Carries<Ask<M>>,
    {
        match self.recipient().send(Ask(method)).await {
            Ok(answer) => answer,
            Err(_) => Err(HostRefusal::Unavailable.into()),
        }
    }

    /// What anybody on this machine may know; nothing if the host is stopping.
    pub async fn status(&self) -> Option<Status> {
        Carries::<GetStatus>::recipient(self).send(GetStatus).await.ok()
    }

    /// Ends all agents, and keeps what was heard of them, in 10 s at most. Nothing is started after that.
    pub(crate) async fn end_agents(&self) {
        // One that is gone has taken them along.
        let _ = Carries::<EndAgents>::recipient(self).send(EndAgents).await;
    }

    /// Listens to events; `false` if the host is stopping or busy.
    pub fn subscribe(&self, subscribe: Subscribe) -> bool {
        match self.offer(subscribe) {
            Ok(()) => true,
            Err(SendError::Full(_) | SendError::Closed(_)) => false,
        }
    }
}
