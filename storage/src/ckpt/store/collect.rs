//! Reclaiming the space of what nothing needs any more.
//!
//! First the objects that snapshots need are marked. Packs without any are condemned; of those that are more than
//! half garbage, or damaged elsewhere, or many and small, what is needed goes into a new pack, and then they are
//! condemned too. A condemned pack is removed when nobody reads any more who may have looked up something in it. Each
//! condemnation is one transaction, which does not happen if anything published since the marking relies on the pack;
//! so it can be cut short anywhere.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

use super::Store;
use super::check::damage_of;
use super::reach::Reach;
use crate::ckpt::catalog::{Catalog, PACKS_AT_ONCE, PackRow, PackState};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{ObjectId, ObjectKind, ObjectSink, ObjectSource};
use crate::ckpt::pack::{Location, ObjectIndex, ObjectReader, PackId, PackWriter, read_index};
use crate::clock::WallTime;

/// How long trees stay in the trash.
pub(super) const TRASH: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Packs of these lengths, in bytes, are merged, each kind with its like, when there are [`MERGED`] of a kind: so
/// however many checkpoints there are, packs stay few, and an object is moved for that a few times at most.
const SMALL: [std::ops::Range<u64>; 3] = [0..32 << 10, 32 << 10..512 << 10, 512 << 10..4 << 20];
/// How many small packs become one.
const MERGED: usize = 16;

/// Where collection has got to.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The generation in which nothing was left to reclaim.
    clean_at: Option<u64>,
    /// What is left to do of the last marking.
    plan: Option<Plan>,
    /// The epoch in which a pack was condemned last.
    condemned_in: Option<u64>,
}

/// What a marking found.
#[derive(Debug)]
struct Plan {
    /// The generation that was marked.
    generation: u64,
    /// What is needed in it.
    needed: Reach,
    /// Packs of which more than half is garbage, not yet rewritten.
    sparse: Vec<PackRow>,
    /// Packs that are rewritten each group by itself, not yet done: small ones, and what is sound of damaged ones.
    groups: Vec<Vec<PackRow>>,
}

impl Store {
    pub(super) fn collect_garbage(&self, budget: u64) -> Result<bool> {
        let mut progress = match self.collector.try_lock() {
            Ok(progress) => progress,
            Err(TryLockError::Poisoned(poisoned)) => {
                let mut progress = PoisonError::into_inner(poisoned);
                progress.plan = None;
                progress
            }
            // Another call is at it.
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        let mut left = budget;
        // Whatever gives space back goes first: on a full disk everything else needs it.
        self.remove_condemned(&progress, &mut left)?;
        let trash_ends = WallTime(self.clock.wall().0.saturating_sub(TRASH.as_nanos() as i64));
        self.catalog.purge_trash(trash_ends)?;
        if progress.plan.is_none() && progress.clean_at != Some(self.catalog.generation()) {
            let plan = self.mark(&mut progress).map_err(|error| match error {
                Error::Corrupt(damage) => Error::Corrupt(format!(
                    "{damage}; nothing can be reclaimed until the snapshots that a check names as damaged are \
                     mended or deleted; a safety snapshot goes seven days after the next rollback of its workspace"
                )),
                other => other,
            })?;
            progress.plan = Some(plan);
            self.remove_condemned(&progress, &mut left)?;
        }
        self.rewrite_sparse(&mut progress, &mut left)?;
        self.remove_condemned(&progress, &mut left)?;
        self.catalog.keep_spare();
        let more = progress.plan.is_some() || !self.catalog.packs(PackState::Condemned)?.is_empty();
        // Where nothing could be done, calling again at once would be no better.
        Ok(more && left < budget)
    }

    /// Finds what is needed, and condemns the packs in which nothing is.
    fn mark(&self, progress: &mut Progress) -> Result<Plan> {
        // Before the roots: of a pack that is published in between, nothing would seem to be needed.
        let packs = self.catalog.packs(PackState::Live)?;
        let (roots, generation) = self.catalog.roots()?;
        let mut needed = Reach::default();
        for root in roots {
            // A damaged snapshot hides what it needs, so nothing may go as long as it is there.
            needed.add(&*self.reader, root).map_err(as_damage)?;
        }
        needed.seal();
        let mut usage: HashMap<i64, Usage> = HashMap::new();
        self.catalog.for_each_object(|object| {
            let usage = usage.entry(object.pack).or_default();
            let len = u64::from(object.len) + 1;
            usage.total += len;
            if needed.contains(&object.id) {
                usage.needed += len;
            }
            Ok(())
        })?;
        let usage = |pack: &PackRow| usage.get(&pack.key).copied().unwrap_or_default();
        let is_dead = |pack: &PackRow| usage(pack).needed == 0;
        let (dead, rest): (Vec<_>, Vec<_>) = packs.into_iter().partition(is_dead);
        let (ruined, damaged): (Vec<_>, Vec<_>) =
            self.catalog.packs(PackState::Suspect)?.into_iter().partition(is_dead);
        let (sparse, dense): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|pack| usage(pack).needed < usage(pack).total / 2);
        // Damaged ones alone: what cannot be read of one keeps no other.
        let groups = small_groups(&dense).chain(damaged.into_iter().map(|pack| vec![pack])).collect();
        for some in [dead, ruined].concat().chunks(PACKS_AT_ONCE) {
            let condemned = self.catalog.condemn_unused(generation, some);
            self.condemned(progress, condemned)?;
        }
        Ok(Plan { generation, needed, sparse, groups })
    }

    /// Moves what is needed out of sparse packs and groups and condemns them, as far as the budget goes.
    fn rewrite_sparse(&self, progress: &mut Progress, left: &mut u64) -> Result<()> {
        let Some(mut plan) = progress.plan.take() else { return Ok(()) };
        while !plan.sparse.is_empty() || !plan.groups.is_empty() {
            if *left == 0 {
                progress.plan = Some(plan);
                return Ok(());
            }
            let mut victims = Vec::new();
            while let Some(pack) = plan.sparse.pop_if(|_| *left > 0) {
                *left = left.saturating_sub(pack.bytes);
                victims.push(pack);
            }
            if victims.is_empty() {
                victims.extend(plan.groups.pop().into_iter().flatten());
                *left = left.saturating_sub(victims.iter().map(|pack| pack.bytes).sum());
            }
            match self.rewrite(progress, &plan, &victims) {
                Err(Error::Corrupt(damage)) => tracing::warn!(damage, "damaged packs are left as they are"),
                other => other?,
            }
        }
        // Whatever was published meanwhile is looked at the next time.
        progress.clean_at = Some(plan.generation);
        Ok(())
    }

    /// Moves what is needed out of these packs into a new one, and condemns them.
    fn rewrite(&self, progress: &mut Progress, plan: &Plan, victims: &[PackRow]) -> Result<()> {
        let index = Arc::new(Without {
            catalog: self.catalog.clone(),
            victims: victims.iter().map(|pack| pack.id).collect(),
        });
        let reader = Arc::new(ObjectReader::new(self.packs.clone(), index));
        let id = self.catalog.reserve_pack(&*self.ids)?;
        let writer = PackWriter::new(reader.clone(), id);
        if let Err(error) = self.copy_needed(plan, victims, &reader, &writer) {
            self.abandon(id, writer);
            return Err(error);
        }
        let written = self.finish(id, writer)?;
        let condemned = self.catalog.condemn(plan.generation, victims, written.pack.as_ref());
        if matches!(condemned, Ok(false)) || (condemned.is_ok() && written.pack.is_none()) {
            self.discard(id);
        }
        self.condemned(progress, condemned)?;
        self.step("collect.rewritten")
    }

    /// Puts what is needed of these packs, and lies nowhere else, into another.
    fn copy_needed(
        &self,
        plan: &Plan,
        victims: &[PackRow],
        reader: &ObjectReader,
        writer: &PackWriter,
    ) -> Result<()> {
        for victim in victims {
            let copy = |kind: Option<ObjectKind>, id: &ObjectId| -> Result<()> {
                let is_here = || self.catalog.find(id).map(|at| at.is_some_and(|at| at.pack == victim.id));
                if plan.needed.contains(id) && is_here()? {
                    let (kind, bytes) = match kind {
                        Some(kind) => (kind, reader.get(kind, id).map_err(as_damage)?),
                        None => reader.get_any(id).map_err(as_damage)?,
                    };
                    writer.put(kind, &bytes)?;
                }
                Ok(())
            };
            match read_index(&*self.packs, &victim.id).map_err(as_damage) {
                Ok(index) => index.iter().try_for_each(|object| copy(Some(object.kind), &object.id))?,
                // The catalog knows as well what is where, but for the kinds.
                Err(Error::Corrupt(_)) => {
                    self.catalog.objects_in(victim)?.iter().try_for_each(|id| copy(None, id))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// If packs were condemned, they go when everybody is done who reads now. After an error they may be all the same.
    fn condemned(&self, progress: &mut Progress, condemned: Result<bool>) -> Result<()> {
        if matches!(condemned, Ok(false)) {
            return Ok(());
        }
        progress.condemned_in = Some(self.readers.advance());
        condemned?;
        self.step("collect.condemned")
    }

    /// Removes the files of condemned packs, unless somebody may still read them.
    fn remove_condemned(&self, progress: &Progress, left: &mut u64) -> Result<()> {
        let condemned = self.catalog.packs(PackState::Condemned)?;
        let in_use = progress.condemned_in.is_some_and(|epoch| !self.readers.are_past(epoch));
        if condemned.is_empty() || in_use {
            return Ok(());
        }
        let Some(_no_checks) = self.places.exclude_checks()? else { return Ok(()) };
        let mut gone = Vec::new();
        for pack in condemned.into_iter().take(PACKS_AT_ONCE) {
            if *left == 0 {
                break;
            }
            *left = left.saturating_sub(pack.bytes);
            self.reader.forget(&pack.id);
            self.packs.remove(&pack.id)?;
            gone.push(pack);
        }
        if gone.is_empty() {
            return Ok(());
        }
        // Before the catalog forgets them: a file that came back would belong to nobody.
        self.disk.fsync(self.places.packs()?).context(|| "removing packs".to_owned())?;
        self.step("collect.removed")?;
        self.catalog.forget_packs(&gone)
    }
}

/// What a disk cannot read is lost, like what is not as it was: it keeps nothing else from being reclaimed.
fn as_damage(error: Error) -> Error {
    damage_of(error).map_or_else(|shortage| shortage, Error::Corrupt)
}

/// Small packs, oldest first, in groups that are to become one pack each.
fn small_groups(packs: &[PackRow]) -> impl Iterator<Item = Vec<PackRow>> {
    SMALL.into_iter().flat_map(|kind| {
        let of_kind: Vec<PackRow> = packs.iter().filter(|pack| kind.contains(&pack.bytes)).copied().collect();
        of_kind.chunks_exact(MERGED).map(<[PackRow]>::to_vec).collect::<Vec<_>>()
    })
}

/// Bytes of a pack's objects, and one for each, so that empty ones count.
#[derive(Clone, Copy, Default)]
struct Usage {
    total: u64,
    needed: u64,
}

/// The catalog for a writer that moves objects out of some packs.
struct Without {
    catalog: Arc<Catalog>,
    victims: HashSet<PackId>,
}

impl ObjectIndex for Without {
    fn find(&self, id: &ObjectId) -> Result<Option<Location>> {
        self.catalog.find(id)
    }

    fn find_reusable(&self, id: &ObjectId) -> Result<Option<Location>> {
        let found = self.catalog.find_reusable(id)?;
        Ok(found.filter(|at| !self.victims.contains(&at.pack)))
    }
}
