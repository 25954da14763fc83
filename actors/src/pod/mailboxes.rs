//! What an adapter holds: the mailboxes for the contract's methods.

use actix::prelude::SendError;
use cofferdam_protocol::pod::*;

use super::call::{Call, Reply};
use super::failure::{Failure, Refusal};
use crate::mailbox::{Carries, mailboxes};

mailboxes! {
    /// The way to the pod's actors: a mailbox for each method.
    pub struct Pod of Queue {
        initialize: Call<Initialize>,
        health: Call<Health>,
        diagnostics: Call<DiagnosticsGet>,
        config_get: Call<ConfigGet>,
        config_validate: Call<ConfigValidate>,
        config_set: Call<ConfigSet>,
        list: Call<TaskList>,
        get: Call<TaskGet>,
        reserve: Call<TaskReserve>,
        reattach: Call<TaskReattach>,
        mark_starting: Call<TaskMarkStarting>,
        mark_running: Call<TaskMarkRunning>,
        turn_started: Call<TaskTurnStarted>,
        turn_ended: Call<TaskTurnEnded>,
        set_last_text: Call<TaskSetLastText>,
        set_sandbox_check: Call<TaskSetSandboxCheck>,
        set_available_tools: Call<TaskSetAvailableTools>,
        set_error: Call<TaskSetError>,
        cancel: Call<TaskCancel>,
        heartbeat: Call<TaskHeartbeat>,
        cleanup_files: Call<TaskCleanupFiles>,
        delete: Call<TaskDelete>,
        by_session: Call<TaskBySession>,
        legacy_log: Call<TaskLegacyLog>,
        bulk_cleanup: Call<TaskBulkCleanup>,
        prepare: Call<SandboxPrepare>,
        files: Call<FilesList>,
        stat: Call<FilesStat>,
        read: Call<FilesRead>,
        exports: Call<ExportList>,
    } and Exports {
        create_export: Call<ExportCreate>,
        undo_export: Call<ExportUndo>,
        delete_export: Call<ExportDeleteRecord>,
        shutdown: Call<Shutdown>,
    }
}

impl Pod {
    /// Hands a request over; the reply is used in any case. More requests than the mailbox holds are refused, so an
    /// adapter bounds what it has in flight.
    pub fn call<M: Method>(&self, request: M, reply: Reply<M::Result>)
    where
        Self: Carries<Call<M>>,
    {
        // An actor that is gone takes the reply along, which answers then.
        if let Err(SendError::Full(call)) = self.offer(Call { request, reply }) {
            call.reply.send(Err(Refusal::Overloaded.into()));
        }
    }

    /// Sends a request and waits for its answer.
    pub async fn ask<M: Method>(&self, request: M) -> Result<M::Result, Failure>
    where
        Self: Carries<Call<M>>,
    {
        let (reply, answer) = Reply::channel();
        self.call(request, reply);
        answer.await.unwrap_or_else(|_| Err(Refusal::Stopping.into()))
    }
}
