//! Opening a store: the lock, the catalog, leftovers, and what was cut short.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::collect::Progress;
use super::locks::Locks;
use super::places::Places;
use super::readers::Readers;
use super::{Store, StoreOptions};
use crate::ckpt::catalog::{self, Catalog, PackState};
use crate::ckpt::error::{Error, Result};
use crate::ckpt::model::RecoveryReport;
use crate::ckpt::pack::{DirPacks, ObjectReader, PackId, PackStorage};

impl Store {
    /// Takes the state directory, finishes or takes back what a crash cut short, and removes what it left behind.
    /// `Locked` if another process has it. A full disk is no reason to fail: what cannot be written now is left for
    /// the next time.
    pub fn open(options: StoreOptions) -> Result<(Self, RecoveryReport)> {
        let StoreOptions { state_dir, disk, clock, ids } = options;
        let places = Places::open(&disk, &state_dir)?;
        let catalog = Arc::new(Catalog::open(&disk, places.store())?);
        let packs: Arc<dyn PackStorage> = Arc::new(DirPacks::new(disk.clone(), places.packs()?));
        let reader = Arc::new(ObjectReader::new(packs.clone(), catalog.clone()));
        let store = Self {
            disk,
            clock,
            ids,
            catalog,
            packs,
            reader,
            registering: Mutex::default(),
            locks: Locks::new(),
            readers: Readers::default(),
            collector: Mutex::new(Progress::default()),
            places,
        };
        let mut report = RecoveryReport::default();
        store.remove_leftovers(&mut report)?;
        store.recover_rollbacks(&mut report)?;
        Ok((store, report))
    }

    /// The directory it keeps everything in.
    pub fn state_dir(&self) -> &Path {
        self.places.state()
    }

    /// Gives back the space that the store keeps for removals on a full disk, so that something else without which
    /// nothing can be removed has it. False if there was none. Collection or the next start keeps some again.
    pub fn give_up_spare(&self) -> bool {
        self.catalog.give_up_spare()
    }

    /// Removes the files of packs that were never published. Their names are in the catalog as pending; a file the
    /// catalog does not know at all is not provably ours, and stays. And stat caches of workspaces that are forgotten.
    fn remove_leftovers(&self, report: &mut RecoveryReport) -> Result<()> {
        let present: BTreeSet<PackId> = self.packs.list()?.into_iter().collect();
        let pending = self.catalog.load_pool()?;
        for pack in pending.iter().filter(|pack| present.contains(pack)) {
            report.lines.push(match self.packs.remove(pack) {
                Ok(()) => format!("removed pack {pack}: it was cut short before it was published"),
                Err(error) => format!("pack {pack} was cut short and stays for now: {error}"),
            });
        }
        let mut known: HashSet<PackId> = pending.into_iter().collect();
        known.extend(self.catalog.all_packs()?.iter().map(|pack| pack.id));
        let strange = present.iter().filter(|pack| !known.contains(*pack)).count();
        if strange > 0 {
            report.lines.push(format!(
                "{strange} pack(s) are not in the catalog and stay where they are; if snapshots are missing, the \
                 catalog was lost: put {} back from a backup",
                self.places.store().join(catalog::FILE).display()
            ));
        }
        let workspaces = self.catalog.workspaces()?;
        self.places.remove_other_caches(&self.disk, workspaces.iter().map(|row| &row.workspace.id));
        self.catalog.keep_spare();
        let written = self.suspect_lost(&present, report).and_then(|()| self.catalog.fill_pool(&*self.ids));
        match written {
            Err(error @ (Error::NoSpace { .. } | Error::Io { .. })) => {
                report.lines.push(format!("nothing can be written now: {error}"));
                Ok(())
            }
            filled => filled,
        }
    }

    /// Nothing new relies on packs whose files are gone: otherwise the stat caches would go on saying of what was in
    /// them that it is stored.
    fn suspect_lost(&self, present: &BTreeSet<PackId>, report: &mut RecoveryReport) -> Result<()> {
        let mut lost = self.catalog.packs(PackState::Live)?;
        lost.retain(|pack| !present.contains(&pack.id));
        report.lines.extend(
            lost.iter().map(|pack| format!("pack {} is gone; a check says which snapshots need it", pack.id)),
        );
        self.suspect(&lost)
    }
}
