//! Pack files and the objects in them.

use std::collections::{BTreeSet, HashSet};

use diesel::prelude::*;

use super::schema::{objects, packs, snapshots, workspaces};
use super::snapshots::NewRow;
use super::{Attempt, Catalog, NotCommitted, damaged, object_id, pack_id};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::format::ObjectId;
use crate::ckpt::pack::{Location, NewPack, ObjectIndex, PackId, Written};
use crate::clock::IdGen;

const PENDING: &str = "pending";
const LIVE: &str = "live";
const SUSPECT: &str = "suspect";
const CONDEMNED: &str = "condemned";

/// Names kept ready for packs to come: as many as operations are likely to write at the same time.
const POOL: usize = 4;

/// Rows per statement; SQLite takes 32 766 values.
const BATCH: usize = 400;

/// Packs that one transaction condemns or forgets, so that nothing else waits long; they are values of a statement.
pub(crate) const PACKS_AT_ONCE: usize = 1000;

/// Objects whose rows take more than a trifle of the log.
const MANY: usize = 1000;

/// A pack that holds objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackRow {
    /// What other tables call it.
    pub(crate) key: i64,
    /// Its name.
    pub(crate) id: PackId,
    /// The length of its file.
    pub(crate) bytes: u64,
    /// How many objects it was made with.
    pub(crate) objects: u64,
}

/// Which packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackState {
    /// They hold objects.
    Live,
    /// They hold objects, some of them damaged. What comes again is stored again, elsewhere.
    Suspect,
    /// No snapshot needs them.
    Condemned,
}

/// What a publication is for.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A snapshot, with the tree that was captured for it.
    Snapshot(NewRow),
    /// The stat cache alone.
    Capture,
    /// A snapshot, with a tree that was put together: the stat cache is not of it.
    Composed(NewRow),
    /// Another tree for a snapshot.
    Rewrite {
        /// The snapshot.
        snapshot: i64,
    },
}

/// What a publication came to.
#[derive(Debug)]
pub(crate) enum Publication {
    /// It is durable.
    Published,
    /// Nothing was done: what it relies on has been condemned meanwhile. Capturing anew finds that out.
    Stale,
    /// Nothing was done, and nothing will be found done after a restart.
    Refused(Error),
}

/// A row of the table of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectRow {
    /// The object.
    pub(crate) id: ObjectId,
    /// The key of its pack.
    pub(crate) pack: i64,
    /// Where its block begins in the pack's file.
    pub(crate) block: u64,
    /// Where it begins in the decompressed block.
    pub(crate) offset: u32,
    /// Its bytes.
    pub(crate) len: u32,
}

impl Catalog {
    /// The names that no finished pack has: files of these names are leftovers. To be asked before any is used.
    pub(crate) fn load_pool(&self) -> Result<Vec<PackId>> {
        let pending = self.pending_packs()?;
        *self.pool() = pending.clone();
        Ok(pending)
    }

    /// The names of packs that are not finished or not begun.
    pub(crate) fn pending_packs(&self) -> Result<Vec<PackId>> {
        self.read(|database| {
            let ids: Vec<Vec<u8>> =
                packs::table.filter(packs::state.eq(PENDING)).select(packs::id).load(database)?;
            ids.iter().map(|id| pack_id(id)).collect()
        })
    }

    /// Puts fresh names into the pool until it is full.
    pub(crate) fn fill_pool(&self, ids: &dyn IdGen) -> Result<()> {
        let missing = POOL.saturating_sub(self.pool().len());
        if missing == 0 {
            return Ok(());
        }
        let fresh = (0..missing).map(|_| fresh_id(ids)).collect::<Result<Vec<_>>>()?;
        self.write(|database| fresh.iter().try_for_each(|id| insert_pending(database, id)))?;
        self.pool().extend(fresh);
        Ok(())
    }

    /// A name for a pack to come, which the database knows to be one.
    pub(crate) fn reserve_pack(&self, ids: &dyn IdGen) -> Result<PackId> {
        loop {
            // The lock is not held while the pool is filled.
            let reserved = self.pool().pop();
            match reserved {
                Some(id) => return Ok(id),
                None => self.fill_pool(ids)?,
            }
        }
    }

    /// Gives a name back of which there is no file.
    pub(crate) fn release_pack(&self, id: PackId) {
        self.pool().push(id);
    }

    /// Makes a captured tree part of the store: its pack, its objects, its snapshot, all in one transaction. `base` is
    /// the capture whose objects the tree may have without having put them. After an error it may be published all the
    /// same: only the next start knows.
    pub(crate) fn publish(
        &self,
        workspace: i64,
        target: &Target,
        base: Option<&ObjectId>,
        manifest: &ObjectId,
        written: &Written,
        ids: &dyn IdGen,
    ) -> Result<Publication> {
        let spare = written.pack.is_some().then(|| fresh_id(ids)).transpose()?;
        if written.pack.as_ref().is_some_and(|pack| pack.objects.len() > MANY) {
            // If there is no space for so many rows, there has to be enough to give up.
            self.empty_log()?;
        }
        let published = self.publishing(|database, relied_on| {
            relied_on.extend(&written.reused);
            if !is_current(database, workspace, base, &written.reused)? {
                return Ok(Publication::Stale);
            }
            if let Some(pack) = &written.pack {
                relied_on.extend(insert_pack(database, pack)?);
            }
            if let Some(id) = &spare {
                insert_pending(database, id)?;
            }
            if matches!(target, Target::Snapshot(_) | Target::Capture) {
                diesel::update(workspaces::table.find(workspace))
                    .set(workspaces::last_capture.eq(&manifest.0[..]))
                    .execute(database)?;
            }
            match target {
                Target::Snapshot(row) | Target::Composed(row) => {
                    diesel::insert_into(snapshots::table).values(row).execute(database)?;
                }
                Target::Capture => {}
                Target::Rewrite { snapshot } => {
                    let rewritten = diesel::update(snapshots::table.find(snapshot))
                        .set(snapshots::manifest.eq(&manifest.0[..]))
                        .execute(database)?;
                    if rewritten == 0 {
                        // Whoever asks must not believe that it is kept.
                        return Err(Error::Catalog("the snapshot to put it into is gone".to_owned()).into());
                    }
                }
            }
            Ok(Publication::Published)
        });
        match published {
            Ok(Publication::Published) => {
                self.pool().extend(spare);
                Ok(Publication::Published)
            }
            Ok(other) => Ok(other),
            Err(NotCommitted { error, is_certain: true }) => Ok(Publication::Refused(error)),
            Err(NotCommitted { error, .. }) => Err(error),
        }
    }

    /// Packs in that state, oldest first.
    pub(crate) fn packs(&self, state: PackState) -> Result<Vec<PackRow>> {
        let state = match state {
            PackState::Live => LIVE,
            PackState::Suspect => SUSPECT,
            PackState::Condemned => CONDEMNED,
        };
        self.read(|database| {
            let rows: Vec<(i64, Vec<u8>, i64, i64)> = packs::table
                .filter(packs::state.eq(state))
                .order(packs::key)
                .select((packs::key, packs::id, packs::bytes, packs::objects))
                .load(database)?;
            let row = |(key, id, bytes, objects): (i64, Vec<u8>, i64, i64)| {
                Ok(PackRow { key, id: pack_id(&id)?, bytes: unsigned(bytes)?, objects: unsigned(objects)? })
            };
            rows.into_iter().map(row).collect()
        })
    }

    /// Packs in any state but pending.
    pub(crate) fn all_packs(&self) -> Result<Vec<PackRow>> {
        let mut all = Vec::new();
        for state in [PackState::Live, PackState::Suspect, PackState::Condemned] {
            all.extend(self.packs(state)?);
        }
        Ok(all)
    }

    /// The rows of all objects in order of their ids, some thousand at a time, so that nothing else waits long.
    pub(crate) fn for_each_object(&self, mut each: impl FnMut(ObjectRow) -> Result<()>) -> Result<()> {
        const PAGE: i64 = 8192;
        let mut after: Vec<u8> = Vec::new();
        loop {
            let page = self.read(|database| {
                let rows: Vec<(Vec<u8>, i64, i64, i64, i64)> = objects::table
                    .filter(objects::id.gt(&after))
                    .order(objects::id)
                    .limit(PAGE)
                    .load(database)?;
                let row = |(id, pack, block, start, length): &(Vec<u8>, _, _, _, _)| {
                    let (block, offset, len) = (unsigned(*block)?, narrow(*start)?, narrow(*length)?);
                    Ok(ObjectRow { id: object_id(id)?, pack: *pack, block, offset, len })
                };
                rows.iter().map(row).collect::<Attempt<Vec<_>>>()
            })?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id.0.to_vec();
            page.into_iter().try_for_each(&mut each)?;
        }
    }

    /// The objects that are in a pack, in the order in which they lie there.
    pub(crate) fn objects_in(&self, pack: &PackRow) -> Result<Vec<ObjectId>> {
        self.read(|database| {
            let ids: Vec<Vec<u8>> = objects::table
                .filter(objects::pack.eq(pack.key))
                .order((objects::block, objects::start))
                .select(objects::id)
                .load(database)?;
            ids.iter().map(|id| object_id(id)).collect()
        })
    }

    /// Has nothing new rely on what is in these packs, if they are live. Every stat cache may refer to it, so none is
    /// used any more.
    pub(crate) fn suspect(&self, packs: &[PackRow]) -> Result<()> {
        self.write_roots(|database| {
            for pack in packs {
                diesel::update(packs::table.find(pack.key))
                    .filter(packs::state.eq(LIVE))
                    .set(packs::state.eq(SUSPECT))
                    .execute(database)?;
            }
            diesel::update(workspaces::table)
                .set(workspaces::last_capture.eq(None::<Vec<u8>>))
                .execute(database)?;
            Ok(())
        })
    }

    /// How many objects there are.
    pub(crate) fn count_objects(&self) -> Result<u64> {
        self.read(|database| unsigned(objects::table.count().get_result(database)?))
    }

    /// Condemns packs, having taken over what was still needed of them into `moved`. False, and nothing is done,
    /// if anything published after `generation` relies on one of them.
    pub(crate) fn condemn(
        &self,
        generation: u64,
        condemned: &[PackRow],
        moved: Option<&NewPack>,
    ) -> Result<bool> {
        self.with_spare(|| {
            let mut open = self.open_connection();
            if condemned.iter().any(|pack| open.is_reused(&pack.id, generation)) {
                return Ok(false);
            }
            self.commit(&mut open, |database| {
                set_condemned(database, condemned)?;
                // Now that they are, its objects are not taken for being elsewhere.
                if let Some(pack) = moved {
                    insert_pack(database, pack)?;
                }
                Ok(())
            })?;
            Ok(true)
        })
    }

    /// Condemns those of these packs on which nothing relies that was published after `generation`. False if there
    /// are none.
    pub(crate) fn condemn_unused(&self, generation: u64, packs: &[PackRow]) -> Result<bool> {
        self.with_spare(|| {
            let mut open = self.open_connection();
            let unused: Vec<PackRow> =
                packs.iter().filter(|pack| !open.is_reused(&pack.id, generation)).copied().collect();
            if unused.is_empty() {
                return Ok(false);
            }
            self.commit(&mut open, |database| set_condemned(database, &unused))?;
            Ok(true)
        })
    }

    /// Forgets condemned packs whose files are gone, with the objects that were nowhere else. At most
    /// [`PACKS_AT_ONCE`] of them.
    pub(crate) fn forget_packs(&self, gone: &[PackRow]) -> Result<()> {
        let keys: Vec<i64> = gone.iter().map(|pack| pack.key).collect();
        self.with_spare(|| {
            self.write(|database| {
                diesel::delete(objects::table.filter(objects::pack.eq_any(&keys))).execute(database)?;
                diesel::delete(packs::table.filter(packs::key.eq_any(&keys))).execute(database)?;
                Ok(())
            })
        })?;
        self.open_connection().forget_reuse(&gone.iter().map(|pack| pack.id).collect());
        Ok(())
    }

    fn locate(&self, id: &ObjectId, reusable: bool) -> Result<Option<Location>> {
        let found = self.read(|database| {
            let row: Option<(Vec<u8>, String, i64, i64, i64)> = objects::table
                .inner_join(packs::table)
                .filter(objects::id.eq(&id.0[..]))
                .select((packs::id, packs::state, objects::block, objects::start, objects::length))
                .get_result(database)
                .optional()?;
            let Some((pack, state, block, start, length)) = row else { return Ok(None) };
            let (pack, block) = (pack_id(&pack)?, unsigned(block)?);
            let location = Location { pack, block, offset: narrow(start)?, len: narrow(length)? };
            Ok(Some((location, state)))
        })?;
        Ok(found.filter(|(_, state)| !reusable || state == LIVE).map(|(location, _)| location))
    }
}

impl ObjectIndex for Catalog {
    fn find(&self, id: &ObjectId) -> Result<Option<Location>> {
        self.locate(id, false)
    }

    fn find_reusable(&self, id: &ObjectId) -> Result<Option<Location>> {
        self.locate(id, true)
    }
}

/// A pack that was pending becomes live, and its objects are found in it from now on, but for those that a live pack
/// has already. Returns these packs: who publishes relies on them.
///
/// So the row of an object in a live pack never changes, and whoever found it there need only make sure, as they
/// publish, that the pack still is live.
fn insert_pack(database: &mut SqliteConnection, pack: &NewPack) -> Attempt<BTreeSet<PackId>> {
    let pending = packs::table.filter(packs::id.eq(&pack.id.0[..]).and(packs::state.eq(PENDING)));
    let key: i64 = pending.select(packs::key).get_result(database)?;
    let mut elsewhere = BTreeSet::new();
    // Sorted, so that the tree of the table is filled from left to right.
    let mut sorted: Vec<_> = pack.objects.iter().collect();
    sorted.sort_unstable_by_key(|object| object.id);
    for batch in sorted.chunks(BATCH) {
        let known: Vec<(Vec<u8>, Vec<u8>)> = objects::table
            .inner_join(packs::table)
            .filter(objects::id.eq_any(batch.iter().map(|object| &object.id.0[..])))
            .filter(packs::state.eq(LIVE))
            .select((objects::id, packs::id))
            .load(database)?;
        let mut known_ids = HashSet::new();
        for (id, pack) in &known {
            known_ids.insert(object_id(id)?);
            elsewhere.insert(pack_id(pack)?);
        }
        let rows: Vec<_> = batch
            .iter()
            .filter(|object| !known_ids.contains(&object.id))
            .map(|object| {
                (
                    objects::id.eq(&object.id.0[..]),
                    objects::pack.eq(key),
                    objects::block.eq(signed(object.block)),
                    objects::start.eq(i64::from(object.offset)),
                    objects::length.eq(i64::from(object.len)),
                )
            })
            .collect();
        diesel::replace_into(objects::table).values(rows).execute(database)?;
    }
    diesel::update(packs::table.find(key))
        .set((
            packs::state.eq(LIVE),
            packs::bytes.eq(signed(pack.bytes)),
            packs::objects.eq(signed(pack.objects.len() as u64)),
        ))
        .execute(database)?;
    Ok(elsewhere)
}

fn set_condemned(database: &mut SqliteConnection, packs: &[PackRow]) -> Attempt<()> {
    for pack in packs {
        diesel::update(packs::table.find(pack.key)).set(packs::state.eq(CONDEMNED)).execute(database)?;
    }
    Ok(())
}

fn insert_pending(database: &mut SqliteConnection, id: &PackId) -> Attempt<()> {
    diesel::insert_into(packs::table)
        .values((packs::id.eq(&id.0[..]), packs::state.eq(PENDING), packs::bytes.eq(0), packs::objects.eq(0)))
        .execute(database)?;
    Ok(())
}

/// Whether everything a publication relies on is still protected from collection.
fn is_current(
    database: &mut SqliteConnection,
    workspace: i64,
    base: Option<&ObjectId>,
    reused: &BTreeSet<PackId>,
) -> Attempt<bool> {
    if let Some(base) = base {
        let current: Option<Vec<u8>> =
            workspaces::table.find(workspace).select(workspaces::last_capture).get_result(database)?;
        if current.as_deref() != Some(&base.0[..]) {
            return Ok(false);
        }
    }
    for pack in reused {
        let live = packs::table.filter(packs::id.eq(&pack.0[..]).and(packs::state.eq(LIVE)));
        if !diesel::select(diesel::dsl::exists(live)).get_result::<bool>(database)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fresh_id(ids: &dyn IdGen) -> Result<PackId> {
    let text = ids.fresh();
    PackId::from_hex(&text).ok_or_else(|| Error::Catalog(format!("'{text}' cannot name a pack")))
}

fn signed(number: u64) -> i64 {
    // No file has so many bytes.
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn narrow(number: i64) -> Attempt<u32> {
    u32::try_from(number).map_err(|_| damaged("where an object is"))
}

fn unsigned(number: i64) -> Attempt<u64> {
    u64::try_from(number).map_err(|_| damaged("a number"))
}
