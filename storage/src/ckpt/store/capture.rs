//! Capturing a live tree and making it part of the store.

use cofferdam_protocol::ckpt::WorkspaceId;

use super::Store;
use super::held::Held;
use crate::ckpt::catalog::{Publication, Target};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::ObjectId;
use crate::ckpt::pack::{PackId, PackWriter, Written};
use crate::ckpt::scan::{BootId, Capture, Captured, StatCache, capture};
use crate::peer::Peer;

/// How often a capture is published anew whose packs were condemned under it. Collection condemns only what nothing
/// has relied on since it looked, so a second time is rare already.
const ATTEMPTS: usize = 4;

impl Store {
    /// Captures the live tree, asks `target` what it is for, and publishes it as that; `None` from `target` drops it.
    /// As [`Target::Capture`] it is published only if it is not the last capture already.
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
            let mut cache = StatCache::open(&self.disk, &file, base.as_ref(), BootId::current());
            let pack = self.catalog.reserve_pack(&*self.ids)?;
            let writer = PackWriter::new(self.reader.clone(), pack);
            let work =
                Capture { root: &held.root, peer, sink: &writer, clock: &*self.clock, ignore: &held.ignore };
            let asked = capture(&work, &mut cache).and_then(|captured| Ok((target(&captured)?, captured)));
            let (target, captured) = match asked {
                Ok(asked) => asked,
                Err(error) => {
                    self.abandon(pack, writer);
                    return Err(error);
                }
            };
            let is_last = base == Some(captured.id);
            let target = target.filter(|target| !(is_last && matches!(target, Target::Capture)));
            let Some(target) = target else {
                self.abandon(pack, writer);
                if is_last {
                    cache.commit(&captured.id);
                }
                return Ok(captured);
            };
            self.step("checkpoint.captured")?;
            let written = self.finish(pack, writer)?;
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
            (_, None) => self.catalog.release_pack(pack),
            (Publication::Published, Some(_)) => {}
            (Publication::Stale | Publication::Refused(_), Some(_)) => self.discard(pack),
        }
        match published {
            Publication::Published => Ok(true),
            Publication::Stale => Ok(false),
            Publication::Refused(error) => Err(error),
        }
    }

    /// Makes a pack durable. After an error nothing is left of it.
    pub(super) fn finish(&self, pack: PackId, writer: PackWriter) -> Result<Written> {
        writer.finish().inspect_err(|_| self.discard(pack))
    }

    /// Gives up a pack that is not finished.
    pub(super) fn abandon(&self, pack: PackId, writer: PackWriter) {
        drop(writer);
        self.discard(pack);
    }

    /// Removes what there is of a pack that is not published, and gives its name back. If that cannot be done now, the
    /// next start does it; until then nothing else gets the name.
    pub(super) fn discard(&self, pack: PackId) {
        self.reader.forget(&pack);
        match self.packs.remove(&pack) {
            Ok(()) => self.catalog.release_pack(pack),
            Err(error) => {
                tracing::warn!(%error, %pack, "a pack that was not published stays until the next start");
            }
        }
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
        self.capture_live(peer, held, |_| Ok(Some(Target::Capture)))
    }
}
