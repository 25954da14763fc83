//! `export.undo`, `export.deleteRecord`.

use cofferdam_protocol::pod::{Done, ExportUndone};
use cofferdam_storage::pod::{KeptExport, export};

use super::create;
use super::tools::Tools;
use crate::pod::failure::{Failure, Refusal};
use crate::pod::messages::{AdmitUndo, AdmittedUndo};

/// Undoes what can be undone.
pub(super) async fn undo(tools: Tools, id: String, at: i64) -> Result<ExportUndone, Failure> {
    let AdmittedUndo { export: kept, verify, held, locked } = tools.ask(AdmitUndo { export: id }).await??;
    let undone = async {
        let KeptExport { record, notes } = tools.mend(kept).await?;
        let undo = tools.on_disk(move |disk, log| {
            let _locked = locked;
            export::undo(disk, record, &notes, verify, at, log)
        });
        undo.await
    }
    .await;
    if let Some(task) = held {
        tools.release(task).await;
    }
    undone
}

/// Removes a record and its backups, unless newer work would go with them.
pub(super) async fn delete(tools: Tools, id: String) -> Result<Done, Failure> {
    let kept = tools.find(&id).await?.ok_or(Refusal::ExportNotFound(id))?;
    let kept = tools.mend(kept).await?;
    let looked_at = kept.clone();
    tools.on_disk(move |_, _| export::check_discard(&looked_at)).await?;
    create::delete(&tools, kept).await?;
    Ok(Done { ok: true })
}
