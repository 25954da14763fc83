//! Taking a snapshot.

use cofferdam_protocol::ckpt::WorkspaceId;

use super::{Store, metadata};
use crate::ckpt::catalog::{NewRow, Target};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::model::{Checkpointed, NewSnapshot, Snapshot};
use crate::peer::Peer;

impl Store {
    pub(super) fn take_checkpoint(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        new: &NewSnapshot,
    ) -> Result<Checkpointed> {
        let metadata = metadata::normalize(new.metadata.as_deref())?;
        let held = self.hold(peer, workspace)?;
        let workspace = held.row.key;
        // Before the tree is read for nothing; publishing asks again.
        if self.catalog.snapshot(workspace, &new.id)?.is_some() {
            return Err(Error::SnapshotExists(new.id.clone()));
        }
        let newest = match new.skip_unchanged {
            true => self.catalog.newest(workspace)?.filter(|newest| !newest.snapshot.missing),
            false => None,
        };
        let mut skipped = None;
        let mut snapshot = Snapshot {
            id: new.id.clone(),
            message: new.message.as_deref().map(Into::into),
            metadata: metadata.map(Into::into),
            pinned: new.pin,
            created_at: self.clock.wall(),
            missing: false,
            warnings: 0,
        };
        self.capture_live(peer, &held, |captured| {
            skipped = match &newest {
                _ if captured.manifest.entries == 0 && !new.even_empty => Some(Checkpointed::EmptyWorkspace),
                Some(newest) if newest.manifest == captured.id => {
                    Some(Checkpointed::Unchanged(newest.snapshot.id.clone()))
                }
                _ => None,
            };
            snapshot.warnings = captured.manifest.warnings.len() as u64;
            Ok(match skipped {
                Some(Checkpointed::EmptyWorkspace) => None,
                // So that a cache that was lost is not missed again the next time.
                Some(_) => Some(Target::Capture),
                None => Some(Target::Snapshot(NewRow::user(workspace, &snapshot, &captured.id))),
            })
        })?;
        Ok(skipped.unwrap_or(Checkpointed::Created(snapshot)))
    }
}
