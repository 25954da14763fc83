//! Writing one conversation.

use std::os::fd::AsFd;

use cofferdam_protocol::session::{Compaction, Envelope, SCHEMA_VERSION, SessionId};

use super::dir::file_name;
use super::load::Origin;
use super::lock::{FILE_MODE, Lock};
use super::{Error, SessionStore, redact, sweep};
use crate::durable::Staged;

impl SessionStore {
    /// Makes a conversation durable, without secrets: under the session's lock, and only over the generation that the
    /// caller knows. A conversation from the flat directory is moved.
    ///
    /// Whatever goes wrong, at any instant there is a whole conversation, the old one or the new. As soon as it is the
    /// new one the envelope is what was written, also if an error is returned because that may not be durable, or
    /// because the old file could not be removed; the next call makes up for it.
    ///
    /// A conversation that was never written has generation 0 and the time of update 0. One with another generation, or
    /// that was read, and is not there any more, was removed by somebody: a conflict.
    pub fn persist(&self, envelope: &mut Envelope) -> Result<(), Error> {
        let id = SessionId::new(envelope.session_id.as_str())?;
        let next = self.next(&id, envelope)?;
        let bytes = next.write().map_err(|error| corrupt(&id, error.to_string()))?;

        let disk = &self.parts.disk;
        let (dir, made) = self.scope.for_writing(disk)?;
        self.sweep(&dir);
        let _lock = Lock::take(disk, &dir, &id)?;
        let flat = self.legacy.dir()?;
        let old = flat.as_ref().map(|flat| Lock::of_file(flat, &id)).transpose()?.flatten();
        self.check_succession(&id, envelope, made)?;

        let path = dir.path_of(&id);
        let temporary = format!(".{id}.{}.tmp", self.parts.ids.fresh());
        Staged::write(disk, dir.as_fd(), temporary.as_bytes(), &bytes, FILE_MODE)
            .map_err(|error| Error::io("write", dir.path().join(&temporary), error))?
            .rename(file_name(&id).as_bytes())
            .map_err(|error| Error::io("replace", &path, error))?;
        *envelope = next;
        disk.fsync(&*dir).map_err(|error| Error::io("sync", &path, error))?;

        if let (Some(flat), Some(old)) = (flat, old)
            // What does not read as a conversation is not the one that was moved.
            && self.read_in(&flat, Origin::Legacy, &id)?.is_some_and(|old| old.envelope.is_ok())
        {
            old.remove(disk)?;
            disk.fsync(&*flat).map_err(|error| Error::io("remove", flat.path_of(&id), error))?;
        }
        Ok(())
    }

    /// The envelope as it is to be written.
    fn next(&self, id: &SessionId, envelope: &Envelope) -> Result<Envelope, Error> {
        if envelope.schema_version != SCHEMA_VERSION {
            return Err(Error::IncompatibleVersion { id: id.clone(), version: envelope.schema_version });
        }
        if envelope.workspace_scope != self.workspace {
            return Err(Error::ScopeMismatch {
                id: id.clone(),
                stored: envelope.workspace_scope.clone(),
                requested: self.workspace.clone(),
            });
        }
        let mut next = envelope.clone();
        let generation = envelope.generation.checked_add(1);
        next.generation = generation.ok_or_else(|| corrupt(id, "generation is exhausted"))?;
        next.updated_at_ms = self.now_ms();
        redact::envelope(&mut next);
        if let Some(compaction) = &mut next.compaction {
            // What it stands for is what is read back: the messages without secrets.
            let summarized = usize::try_from(compaction.compacted_through)
                .ok()
                .and_then(|through| next.messages.get(..through))
                .filter(|messages| !messages.is_empty())
                .ok_or_else(|| corrupt(id, "the compaction stands for messages that are not there"))?;
            compaction.source_digest = Compaction::digest(summarized);
            next.compaction_revision = next.compaction_revision.max(compaction.revision);
        }
        Ok(next)
    }

    /// Whether what is stored is what the envelope was read from. To be asked under the lock. `made`: the directory was
    /// not there, so nothing was removed from it.
    fn check_succession(&self, id: &SessionId, envelope: &Envelope, made: bool) -> Result<(), Error> {
        let follows = match self.read(id)? {
            Some(reading) => {
                let stored = reading.envelope.map_err(|defect| self.error(id, defect))?;
                stored.generation == envelope.generation
                    && stored.compaction_revision <= envelope.compaction_revision
                    // An array has no generation; it was not written to since it was read.
                    && (stored.generation > 0 || stored.created_at_ms == envelope.created_at_ms)
            }
            None if envelope.generation > 0 => made,
            None => envelope.updated_at_ms == 0,
        };
        if follows { Ok(()) } else { Err(Error::Conflict(id.clone())) }
    }

    /// Removes what writers that died left behind; once.
    fn sweep(&self, dir: &super::dir::Dir) {
        if !self.swept.swap(true, std::sync::atomic::Ordering::Relaxed) {
            sweep::sweep(&self.parts.disk, dir, self.now_ms());
        }
    }

    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.parts.clock.wall().0 / 1_000_000).unwrap_or(0)
    }
}

fn corrupt(id: &SessionId, detail: impl Into<String>) -> Error {
    Error::Corrupt { id: id.clone(), detail: detail.into() }
}
