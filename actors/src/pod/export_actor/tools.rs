//! What each of this actor's works needs: the owner of tasks and database, and a thread that may wait.

use actix::prelude::Message;
use cofferdam_protocol::pod::{LogLevel, TaskId};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::pod::export::{self, ExportLog};
use cofferdam_storage::pod::{Change, Error, KeptExport};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::Owner;
use crate::mailbox::Carries;
use crate::pod::failure::{Failure, Refusal};
use crate::pod::messages::{Diagnose, FindExport, ReleaseFiles, SaveChanges};

#[derive(Clone)]
pub(super) struct Tools {
    pub(super) disk: Disk,
    pub(super) owner: Owner,
}

impl Tools {
    /// Asks the owner of tasks and database.
    pub(super) async fn ask<M>(&self, message: M) -> Result<M::Result, Failure>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        Owner: Carries<M>,
    {
        self.owner.recipient().send(message).await.map_err(|_| Refusal::Stopping.into())
    }

    /// Makes changes durable.
    pub(super) async fn save(&self, changes: Vec<Change>) -> Result<(), Failure> {
        self.ask(SaveChanges(changes)).await?
    }

    /// One export with all of its files, if there is one of that id.
    pub(super) async fn find(&self, id: &str) -> Result<Option<KeptExport>, Failure> {
        self.ask(FindExport { export: id.to_owned() }).await?
    }

    /// Nobody works on the task's files any more.
    pub(super) async fn release(&self, task: TaskId) {
        // An owner that is gone holds nothing.
        let _ = self.ask(ReleaseFiles { task }).await;
    }

    /// Something that a person should know.
    pub(super) fn diagnose(&self, level: LogLevel, message: String) {
        // Without an owner there is nobody to tell.
        self.owner.recipient().do_send(Diagnose { level, message });
    }

    /// Works on the disk, with a log that keeps what happens durable.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Disk, &mut Log) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let (disk, mut log) = (self.disk.clone(), Log { owner: self.owner.clone(), refused: None });
        let work = spawn_blocking(move || {
            let done = work(&disk, &mut log);
            // Why nothing could be saved says more than that it could not.
            done.map_err(|error| log.refused.unwrap_or_else(|| Refusal::from(error).into()))
        });
        // Only a panic or a runtime that shuts down keeps a blocking task from ending.
        work.await.unwrap_or_else(|_| Err(Refusal::Panicked.into()))
    }

    /// Brings a record of which something is not known, though nobody works on it any more, in line with the disk.
    pub(super) async fn mend(&self, kept: KeptExport) -> Result<KeptExport, Failure> {
        if export::is_settled(&kept) {
            return Ok(kept);
        }
        let kept = self.on_disk(move |disk, _| Ok(export::reconcile(disk, kept))).await?;
        let KeptExport { record, notes } = &kept;
        let items = record.items.iter().cloned().enumerate().collect();
        let settle = Change::SettleExport {
            export: record.id.clone(),
            status: record.status,
            undone_at: record.undone_at,
        };
        let notes = Change::PutExportNotes { export: record.id.clone(), notes: notes.clone() };
        self.save(vec![Change::PutExportItems { export: record.id.clone(), items }, notes, settle]).await?;
        Ok(kept)
    }
}

/// Hands changes to the owner of the database, and waits on the thread that has them until they are durable.
pub(super) struct Log {
    owner: Owner,
    /// Why changes could not be saved.
    refused: Option<Failure>,
}

impl ExportLog for Log {
    fn save(&mut self, changes: Vec<Change>) -> Result<(), Error> {
        let message = self.owner.recipient().send(SaveChanges(changes));
        let saved = match Handle::current().block_on(message) {
            Ok(saved) => saved,
            Err(_) => Err(Refusal::Stopping.into()),
        };
        saved.map_err(|failure| {
            let error = Error::Database(failure.message.clone());
            self.refused = Some(failure);
            error
        })
    }
}
