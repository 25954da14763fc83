//! Removing conversations.

use std::io;
use std::sync::Arc;

use cofferdam_protocol::session::SessionId;

use super::dir::{Dir, file_name, irregular};
use super::lock::Lock;
use super::{Error, SessionStore};
use crate::disk::Disk;

/// What became of each id.
#[derive(Debug, Default)]
pub struct Cleared {
    /// Removed, in the order asked for.
    pub deleted: Vec<SessionId>,
    /// Not removed, in the order asked for; the id as it was given.
    pub skipped: Vec<(String, Error)>,
}

impl SessionStore {
    /// Removes each id for itself, in order; durable when this returns. What a file holds, and whether it may be read,
    /// does not matter.
    pub fn clear(&self, ids: &[String], protected: &[SessionId]) -> Cleared {
        let mut changed = Vec::new();
        let outcomes: Vec<_> =
            ids.iter().map(|id| (id, self.clear_one(id, protected, &mut changed))).collect();
        // Once for all of them.
        let synced = changed
            .iter()
            .try_for_each(|dir: &Arc<Dir>| self.parts.disk.fsync(&**dir).map_err(|error| (dir, error)));
        let mut cleared = Cleared::default();
        for (asked, outcome) in outcomes {
            match (outcome, &synced) {
                (Ok(id), Ok(())) => cleared.deleted.push(id),
                // After a power loss it may be there again.
                (Ok(id), Err((dir, error))) => {
                    cleared
                        .skipped
                        .push((asked.clone(), Error::io("remove", dir.path_of(&id), again(error))));
                }
                (Err(error), _) => cleared.skipped.push((asked.clone(), error)),
            }
        }
        cleared
    }

    /// Removes one, in the workspace's own directory not yet durably: that directory is added to `changed`.
    fn clear_one(
        &self,
        id: &str,
        protected: &[SessionId],
        changed: &mut Vec<Arc<Dir>>,
    ) -> Result<SessionId, Error> {
        let id = SessionId::new(id)?;
        if protected.contains(&id) {
            return Err(Error::ActiveSession(id));
        }
        let disk = &self.parts.disk;
        let (own, flat) = (self.scope.for_reading()?, self.legacy.dir()?);
        let has_file = |dir: &Option<Arc<Dir>>| dir.as_ref().map_or(Ok(false), |dir| has_file(dir, &id));
        let (in_own, in_flat) = (has_file(&own)?, has_file(&flat)?);
        if !in_own && !in_flat {
            return Err(Error::NotFound(id));
        }
        let lock = own.as_ref().map(|own| Lock::take(disk, own, &id)).transpose()?;

        // The older copy goes first, durably: if it were left alone it would be the conversation again.
        let mut removed = false;
        if let Some(flat) = flat.filter(|_| in_flat) {
            let _old = lock_old(&flat, &id)?;
            removed = remove(disk, &flat, &id)?;
            if removed {
                disk.fsync(&*flat).map_err(|error| Error::io("remove", flat.path_of(&id), error))?;
            }
        }
        if let (Some(own), Some(lock)) = (own, lock) {
            removed |= remove(disk, &own, &id)?;
            // The session is gone; a lock that is left is only an empty file.
            let _ = lock.remove(disk);
            if !changed.iter().any(|dir| Arc::ptr_eq(dir, &own)) {
                changed.push(own);
            }
        }
        // Somebody else may have removed it just before the lock was taken.
        if removed { Ok(id) } else { Err(Error::NotFound(id)) }
    }
}

/// Whether a directory has a file of that session. What is no file is left where it is: it is not ours.
fn has_file(dir: &Dir, id: &SessionId) -> Result<bool, Error> {
    let Some(found) = dir.stat(id)? else { return Ok(false) };
    match irregular(&found) {
        None => Ok(true),
        Some(what) => Err(Error::Corrupt { id: id.clone(), detail: what.to_owned() }),
    }
}

/// The lock of an older copy. One that may not be read is nobody's who would lock it.
fn lock_old(flat: &Arc<Dir>, id: &SessionId) -> Result<Option<Lock>, Error> {
    match Lock::of_file(flat, id) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        held => held,
    }
}

/// Removes a session's file, if it is there.
fn remove(disk: &Disk, dir: &Dir, id: &SessionId) -> Result<bool, Error> {
    match disk.unlink(dir, file_name(id)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("remove", dir.path_of(id), error)),
    }
}

/// The same error for one more session.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}
