//! `export.create`.

use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use cofferdam_protocol::pod::{ExportCreate, ExportCreated, ExportRecord, LogLevel};
use cofferdam_storage::clock::Clock;
use cofferdam_storage::pod::{Change, KeptExport, discard_backups, export};

use super::Progress;
use super::tools::Tools;
use crate::pod::failure::Failure;
use crate::pod::messages::{AdmitExport, AdmittedExport, FindSurplusExports};

/// How often the host is told how far it is.
const PACE: Duration = Duration::from_millis(250);

/// Exports, and removes the records that are too many then.
pub(super) async fn create(
    tools: Tools,
    clock: Arc<dyn Clock>,
    progress: Recipient<Progress>,
    id: String,
    request: ExportCreate,
) -> Result<ExportCreated, Failure> {
    let remember = request.remember;
    let admitted = tools.ask(AdmitExport { id: id.clone(), request }).await??;
    let (held, remember_for) = (admitted.held.clone(), admitted.remember_for.clone());
    let done = carry_out(&tools, clock, progress, &id, admitted).await;
    tools.release(held).await;
    let export = done?;
    prune(&tools, &id).await;
    let message = match remember {
        true => remember_target(&tools, remember_for, &export).await,
        false => None,
    };
    Ok(ExportCreated { export, message })
}

/// Keeps the target for the next time. Says why not, if so: that is no reason for an export to fail.
async fn remember_target(tools: &Tools, session: Option<String>, export: &ExportRecord) -> Option<String> {
    let why_not = match session {
        None => "allowRememberChoice is off".to_owned(),
        Some(session) if session.is_empty() => "the task has no main session".to_owned(),
        Some(session) => {
            let (target_dir, at) = (export.target_dir.clone(), export.at);
            let saved = tools.save(vec![Change::RememberTarget { session, target_dir, at }]);
            saved.await.err()?.to_string()
        }
    };
    Some(format!("the target is not remembered: {why_not}"))
}

async fn carry_out(
    tools: &Tools,
    clock: Arc<dyn Clock>,
    progress: Recipient<Progress>,
    id: &str,
    AdmittedExport { request, wants_progress, locked, .. }: AdmittedExport,
) -> Result<ExportRecord, Failure> {
    let (export, task) = (request.id.clone(), request.task.clone());
    let plan = tools.on_disk(|disk, _| export::plan(disk, request)).await?;
    let mut told = None;
    let mut tell = move |done, total| {
        let now = clock.monotonic();
        if wants_progress && told.is_none_or(|told| now.saturating_sub(told) >= PACE) {
            told = Some(now);
            // What is lost here is told by the next one.
            progress.do_send(Progress { export: export.clone(), task: task.clone(), done, total });
        }
    };
    let done = tools
        .on_disk(move |disk, log| {
            let _locked = locked;
            plan.carry_out(disk, log, &mut tell)
        })
        .await;
    if done.is_err() {
        make_true(tools, id).await;
    }
    done
}

/// After a failure nobody can say what was done but the disk.
async fn make_true(tools: &Tools, id: &str) {
    let mended = async {
        match tools.find(id).await? {
            Some(kept) => tools.mend(kept).await.map(drop),
            None => Ok(()),
        }
    };
    if let Err(failure) = mended.await {
        let message = format!("export {id} has ended, but its record says that it runs: {failure}");
        tools.diagnose(LogLevel::Error, message);
    }
}

/// Removes the oldest records above the cap, with their backups.
async fn prune(tools: &Tools, newest: &str) {
    let pruned = async {
        for id in tools.ask(FindSurplusExports { besides: newest.to_owned() }).await?? {
            if let Some(kept) = tools.find(&id).await? {
                delete(tools, kept).await?;
            }
        }
        Ok::<_, Failure>(())
    };
    if let Err(failure) = pruned.await {
        tools.diagnose(LogLevel::Warn, format!("old export records could not be removed: {failure}"));
    }
}

/// Removes a record with its backups.
pub(super) async fn delete(tools: &Tools, kept: KeptExport) -> Result<(), Failure> {
    let id = kept.record.id.clone();
    let left = tools.on_disk(move |disk, _| Ok(discard_backups(disk, &kept))).await?;
    tools.save(vec![Change::DeleteExport(id)]).await?;
    if let Some(left) = left {
        tools.diagnose(LogLevel::Warn, left);
    }
    Ok(())
}
