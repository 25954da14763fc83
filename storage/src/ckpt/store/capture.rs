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
            let mut cache = StatCache::open(&self.disk, &file, held.row.last_capture.as_ref())?;
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
                if held.row.last_capture == Some(captured.id) {
                    cache.commit(&captured.id);
                }
                return Ok(captured);
            };
            self.step("checkpoint.captured")?;
            if !self.publish(pack, writer, held.row.key, &target, &captured)? {
                continue;
            }
            self.step("checkpoint.published")?;
            cache.commit(&captured.id);
            return Ok(captured);
        }
        Err(Error::Busy)
    }

    /// Makes a captured tree and its pack durable. False if it has to be captured anew.
    fn publish(
        &self,
        pack: PackId,
        writer: PackWriter,
        workspace: i64,
        target: &Target,
        captured: &Captured,
    ) -> Result<bool> {
        let written = writer.finish()?;
        self.step("checkpoint.pack-synced")?;
        self.publish_written(pack, &written, workspace, target, &captured.id)
    }

    /// Publishes what a writer has finished. False, and its pack is gone, if it relies on a condemned one.
    pub(super) fn publish_written(
        &self,
        pack: PackId,
        written: &Written,
        workspace: i64,
        target: &Target,
        manifest: &ObjectId,
    ) -> Result<bool> {
        let published = self.catalog.publish(workspace, target, manifest, written, &*self.ids);
        match (&published, &written.pack) {
            (_, None) => self.give_back(pack),
            (Ok(Publication::Published(_)), Some(_)) => {}
            // Certainly not published, so the space can be had back at once. After any other error it may have been:
            // the next start knows.
            (Ok(Publication::Stale) | Err(Error::NoSpace { .. } | Error::SnapshotExists(_)), Some(_)) => {
                self.reader.forget(&pack);
                if let Err(error) = self.packs.remove(&pack) {
                    tracing::warn!(%error, %pack, "a pack that was not published stays until the next start");
                }
            }
            (Err(_), Some(_)) => {}
        }
        Ok(published? != Publication::Stale)
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
        let last = held.row.last_capture;
        self.capture_live(peer, held, |captured| Ok((last != Some(captured.id)).then_some(Target::Capture)))
    }
}
