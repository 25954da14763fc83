//! Capturing a live tree and making it part of the store.

use cofferdam_protocol::ckpt::WorkspaceId;

use super::Store;
use super::held::Held;
use crate::ckpt::catalog::{Publication, Target};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::ObjectId;
use crate::ckpt::pack::{PackId, PackWriter, Written};
use crate::ckpt::scan::{Capture, Captured, StatCache, capture};
use crate::peer::Peer;

/// How often a capture is published anew whose packs were condemned under it. Collection condemns only what nothing
/// has relied on since it looked, so a second time is rare already.
const ATTEMPTS: usize = 4;

impl Store {
    /// Captures the live tree, asks `target` what it is for, and publishes it as that; `None` from `target` drops it.
    pub(super) fn capture_live(
        &self,
        peer: &Peer,
        held: &Held<'_>,
        mut target: impl FnMut(&Captured) -> Result<Option<Target>>,
    ) -> Result<Captured> {
        let _reading = self.readers.begin();
        let file = self.places.cache(&held.row.workspace.id);
        for _ in 0..ATTEMPTS {
            let base = self.registered(&held.row.workspace.id)?.last_capture;
            let mut cache = StatCache::open(&self.disk, &file, base.as_ref())?;
            let pack = self.catalog.reserve_pack(&*self.ids)?;
            let writer = PackWriter::new(self.reader.clone(), pack);
            let work =
                Capture { root: &held.root, peer, sink: &writer, clock: &*self.clock, ignore: &held.ignore };
            let asked = capture(&work, &mut cache).and_then(|captured| Ok((target(&captured)?, captured)));
            // After an error the writer's file may be there still; then nothing else gets its name.
            let (target, captured) = asked?;
            let Some(target) = target else {
                drop(writer);
                self.give_back(pack);
                if base == Some(captured.id) {
                    cache.commit(&captured.id);
                }
                return Ok(captured);
            };
            self.step("checkpoint.captured")?;
            let written = writer.finish()?;
            self.step("checkpoint.pack-synced")?;
            if !self.publish(pack, &written, held.row.key, &target, base.as_ref(), &captured.id)? {
                continue;
            }
            self.step("checkpoint.published")?;
            cache.commit(&captured.id);
            return Ok(captured);
        }
        Err(Error::Busy)
    }

    /// Publishes what a writer has finished. False, and its pack is gone, if what it relies on is gone or going.
    pub(super) fn publish(
        &self,
        pack: PackId,
        written: &Written,
        workspace: i64,
        target: &Target,
        base: Option<&ObjectId>,
        manifest: &ObjectId,
    ) -> Result<bool> {
        // After an error the pack stays until the next start, which knows whether it is needed.
        let published = self.catalog.publish(workspace, target, base, manifest, written, &*self.ids)?;
        match (&published, &written.pack) {
            (_, None) => self.give_back(pack),
            (Publication::Published, Some(_)) => {}
            (Publication::Stale | Publication::Refused(_), Some(_)) => {
                self.reader.forget(&pack);
                if let Err(error) = self.packs.remove(&pack) {
                    tracing::warn!(%error, %pack, "a pack that was not published stays until the next start");
                }
            }
        }
        match published {
            Publication::Published => Ok(true),
            Publication::Stale => Ok(false),
            Publication::Refused(error) => Err(error),
        }
    }

    /// Gives back the name of a pack of which there is no file.
    pub(super) fn give_back(&self, pack: PackId) {
        self.reader.forget(&pack);
        self.catalog.release_pack(pack);
    }

    /// A named step of a multi-step change has been reached.
    pub(super) fn step(&self, name: &'static str) -> Result<()> {
        self.disk.step(name).context(|| name.to_owned())
    }

    pub(super) fn prime_workspace(&self, peer: &Peer, workspace: &WorkspaceId) -> Result<()> {
        let held = self.hold(peer, workspace)?;
        self.capture_for_cache(peer, &held).map(drop)
    }

    /// Captures the live tree, so that the next capture need not read it again.
    pub(super) fn capture_for_cache(&self, peer: &Peer, held: &Held<'_>) -> Result<Captured> {
        self.capture_live(peer, held, |captured| {
            let is_known = self.registered(&held.row.workspace.id)?.last_capture == Some(captured.id);
            Ok((!is_known).then_some(Target::Capture))
        })
    }
}
