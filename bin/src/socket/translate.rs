//! From a request to a message and from its answer to a response.

use cofferdam_actors::Carries;
use cofferdam_actors::ckpt::*;
use cofferdam_protocol::ckpt::{WsCkptRequest, WsCkptResponse};
use cofferdam_storage::ckpt::Warning;
use cofferdam_storage::peer::Peer;

use super::connection::{Answer, Service};

impl Service for Ckpt {
    async fn answer(&self, peer: &Peer, request: WsCkptRequest) -> Answer {
        let peer = peer.clone();
        match request {
            WsCkptRequest::Init { workspace } => {
                let done = self.ask(InitWorkspace { peer, workspace }).await;
                reply(done, |id| WsCkptResponse::InitOk { ws_id: id.to_string() })
            }
            WsCkptRequest::Checkpoint { workspace, id, message, metadata, pin } => {
                let request = CreateCheckpoint { peer, workspace, id, message, metadata, pin };
                let done = self.ask(request.clone()).await;
                repeatable(self, request, done, |outcome| match outcome {
                    CheckpointOutcome::Created(id) => {
                        WsCkptResponse::CheckpointOk { snapshot_id: id.to_string() }
                    }
                    CheckpointOutcome::Skipped { reason } => WsCkptResponse::CheckpointSkipped { reason },
                })
            }
            WsCkptRequest::Rollback { workspace, to } => {
                let done = self.ask(Rollback { peer, workspace, to, exact: false }).await;
                if let Ok(done) = &done {
                    log_warnings(done);
                }
                reply(done, |done| WsCkptResponse::RollbackOk {
                    from: done.workspace.to_string(),
                    to: done.to.to_string(),
                })
            }
            WsCkptRequest::Delete { workspace, snapshot, force } => {
                let request = DeleteSnapshot { peer, workspace, snapshot, exact: false, force };
                let done = self.ask(request.clone()).await;
                repeatable(self, request, done, |id| WsCkptResponse::DeleteOk { target: id.to_string() })
            }
            WsCkptRequest::List { workspace, format: _ } => {
                let done = self.ask(ListSnapshots { peer, workspace }).await;
                reply(done, |list| WsCkptResponse::ListOk { snapshots: list.entries() })
            }
            WsCkptRequest::Diff { workspace, from, to } => {
                let done = self.ask(DiffSnapshots { peer, workspace, from, to }).await;
                reply(done, |changes| WsCkptResponse::DiffOk { changes })
            }
            WsCkptRequest::Status { workspace } => {
                let done = self.ask(WorkspaceStatus { peer, workspace }).await;
                reply(done, |report| WsCkptResponse::StatusOk { report })
            }
            WsCkptRequest::Cleanup { workspace, keep } => {
                let done = self.ask(Cleanup { peer, workspace, keep }).await;
                reply(done, |removed| WsCkptResponse::CleanupOk {
                    removed: removed.iter().map(ToString::to_string).collect(),
                })
            }
            WsCkptRequest::Config => {
                reply(self.ask(GetConfig { peer }).await, |config| WsCkptResponse::ConfigOk { config })
            }
            WsCkptRequest::ReloadConfig => {
                reply(self.ask(ReloadConfig { peer }).await, |()| WsCkptResponse::ReloadConfigOk)
            }
            WsCkptRequest::Recover { workspace } => {
                let request = RecoverWorkspace { peer, workspace };
                let done = self.ask(request.clone()).await;
                repeatable(self, request, done, |workspace| WsCkptResponse::RecoverOk { workspace })
            }
            WsCkptRequest::HealthAdvisory => {
                reply(self.ask(HealthAdvisory { peer }).await, |advisory| WsCkptResponse::HealthAdvisoryOk {
                    over_limit_workspace_count: advisory.over_limit_workspaces,
                    fs_total_bytes: advisory.usage.total,
                    fs_used_bytes: advisory.usage.used,
                })
            }
        }
    }
}

/// The wire has no place for them.
fn log_warnings(done: &RollbackDone) {
    const SHOWN: usize = 20;
    let warnings = &done.outcome.warnings;
    for Warning { path, kind } in warnings.iter().take(SHOWN) {
        tracing::warn!(workspace = %done.workspace, %path, ?kind, "not as it should be after a rollback");
    }
    if warnings.len() > SHOWN {
        let more = warnings.len() - SHOWN;
        tracing::warn!(workspace = %done.workspace, more, "not as it should be after a rollback");
    }
}

fn reply<T>(done: Result<T, Failure>, shape: impl FnOnce(T) -> WsCkptResponse) -> Answer {
    Answer::of(match done {
        Ok(value) => shape(value),
        Err(Failure { code, message }) => WsCkptResponse::Error { code, message },
    })
}

/// The answer to a request whose success makes the identical request fail: the actors are told if it gets lost, so that
/// asking again gives it again.
fn repeatable<M: Repeatable>(
    ckpt: &Ckpt,
    request: M,
    done: Result<M::Answer, Failure>,
    shape: impl FnOnce(M::Answer) -> WsCkptResponse,
) -> Answer
where
    Ckpt: Carries<Undelivered<M>>,
{
    let Ok(answer) = &done else { return reply(done, shape) };
    let lost = Undelivered { request, answer: answer.clone() };
    let memory = ckpt.recipient().clone();
    let undelivered = move || {
        if memory.try_send(lost).is_err() {
            tracing::warn!("an answer got lost and the daemon is too busy to remember it");
        }
    };
    Answer { undelivered: Some(Box::new(undelivered)), ..reply(done, shape) }
}
