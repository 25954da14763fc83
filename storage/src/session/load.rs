//! Reading one conversation whole.

use cofferdam_protocol::session::{Defect, Envelope, SessionId, bounded, limits};

use super::dir::{Dir, modified_ms};
use super::{Error, SessionStore, redact};

/// What a session's entry turned out to be.
#[derive(Debug)]
pub(super) struct Reading {
    /// The entry's time.
    pub(super) modified_ms: u64,
    /// What is in it, as it is stored.
    pub(super) envelope: Result<Envelope, Defect>,
}

/// Whose directory an entry is in. It decides what its file may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This workspace's: an envelope, or an array of messages.
    Own,
    /// The flat one: an array.
    Legacy,
    /// Another workspace's: as in this one's, but whatever is in it is not this one's. An array does not say whose it is,
    /// and becomes an envelope of the workspace `""`.
    Foreign,
}

impl SessionStore {
    /// The conversation, to be resumed or shown: without secrets. From the flat directory if the workspace's own has no
    /// file of that name.
    pub fn load(&self, id: &SessionId) -> Result<Envelope, Error> {
        let reading = self.read(id)?.ok_or_else(|| Error::NotFound(id.clone()))?;
        let mut envelope = reading.envelope.map_err(|defect| self.error(id, defect))?;
        redact::envelope(&mut envelope);
        Ok(envelope)
    }

    /// What there is under an id: in the workspace's own directory, or in the flat one if that has nothing of that name.
    pub(super) fn read(&self, id: &SessionId) -> Result<Option<Reading>, Error> {
        // Own a second time: it may have been moved there between the two looks.
        for origin in [Origin::Own, Origin::Legacy, Origin::Own] {
            let dir = match origin {
                Origin::Legacy => self.legacy.dir()?,
                _ => self.scope.for_reading()?,
            };
            let found = dir.map(|dir| self.read_in(&dir, origin, id)).transpose()?.flatten();
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// What there is under an id in one directory.
    pub(super) fn read_in(
        &self,
        dir: &Dir,
        origin: Origin,
        id: &SessionId,
    ) -> Result<Option<Reading>, Error> {
        let Some(entry) = dir.stat(id)? else { return Ok(None) };
        let read = dir
            .open_session(id)
            .and_then(|file| file.map(|file| Ok((file.modified_ms, file.read(id)?))).transpose());
        Ok(match read {
            Ok(None) => None,
            Ok(Some((modified_ms, bytes))) => {
                Some(Reading { modified_ms, envelope: self.parse(&bytes, origin, id, modified_ms) })
            }
            Err(Error::Corrupt { detail, .. }) => {
                Some(Reading { modified_ms: modified_ms(&entry), envelope: Err(Defect::Corrupt(detail)) })
            }
            Err(error) => return Err(error),
        })
    }

    fn parse(
        &self,
        bytes: &[u8],
        origin: Origin,
        id: &SessionId,
        modified_ms: u64,
    ) -> Result<Envelope, Defect> {
        match origin {
            Origin::Own => Envelope::read(bytes, id, &self.workspace, modified_ms),
            Origin::Legacy => Envelope::read_array(bytes, id, &self.workspace, modified_ms),
            Origin::Foreign => {
                let envelope = Envelope::read(bytes, id, "", modified_ms)?;
                Err(Defect::ScopeMismatch(Box::new(envelope)))
            }
        }
    }

    /// The error that a defect is to whoever needs the whole conversation.
    pub(super) fn error(&self, id: &SessionId, defect: Defect) -> Error {
        let id = id.clone();
        match defect {
            Defect::Corrupt(detail) => Error::Corrupt { id, detail },
            Defect::Incompatible(version) => Error::IncompatibleVersion { id, version },
            Defect::ScopeMismatch(envelope) => Error::ScopeMismatch {
                id,
                stored: bounded(&envelope.workspace_scope, limits::WORKSPACE),
                requested: self.workspace.clone(),
            },
        }
    }
}
