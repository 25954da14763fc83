//! Is everything there that the catalog says, and is it what it says?

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Store;
use super::places::{packs_dir, pin_packs, store_dir};
use crate::ckpt::catalog::{Catalog, CatalogCopy, KnownTree, ObjectRow, PackRow, PackState, SnapshotRow};
use crate::ckpt::error::{Context, Error, Result};
use crate::ckpt::format::{ObjectId, ObjectKind, ObjectSource, references};
use crate::ckpt::model::CheckReport;
use crate::ckpt::pack::{DirPacks, ObjectIndex, ObjectReader, PackId, PackStorage, read_index, verify};
use crate::clock::RandomIds;
use crate::disk::Disk;

/// Verifies the store in a state directory, whether a daemon has it open or not, and changes nothing in it. While it
/// runs, no pack is removed.
pub fn check_state_dir(state_dir: &Path, read_data: bool) -> Result<CheckReport> {
    let disk = Disk::default();
    let _pinned = pin_packs(state_dir)?;
    let dir = packs_dir(state_dir);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(&dir, flags, Mode::empty()).context(|| dir.display().to_string())?;
    let packs: Arc<dyn PackStorage> = Arc::new(DirPacks::new(disk.clone(), dir));
    let present = packs.list()?;
    let copy = CatalogCopy::take(&disk, &store_dir(state_dir), &RandomIds)?;
    let reader = ObjectReader::new(packs.clone(), copy.catalog().clone());
    Ok(Check::new(copy.catalog(), &*packs, &reader).run(present, read_data)?.report)
}

impl Store {
    /// Verifies this store, and marks the snapshots that are damaged, or sound again, as such.
    pub(super) fn check_store(&self, read_data: bool) -> Result<CheckReport> {
        let present = self.packs.list()?;
        self.check_with(present, read_data)
    }

    /// The same; `present`: the packs there were before.
    pub(super) fn check_with(&self, present: Vec<PackId>, read_data: bool) -> Result<CheckReport> {
        let _reading = self.readers.begin();
        let found = Check::new(&self.catalog, &*self.packs, &*self.reader).run(present, read_data)?;
        let marked = |missing| move |tree: &&KnownTree| tree.missing == missing;
        let broken: Vec<i64> = found.damaged.iter().filter(marked(false)).map(|tree| tree.key).collect();
        self.catalog.set_missing(&broken, true)?;
        if read_data {
            let mended: Vec<i64> = found.sound.iter().filter(marked(true)).map(|tree| tree.key).collect();
            self.catalog.set_missing(&mended, false)?;
        }
        self.suspect(&found.suspect)?;
        Ok(found.report)
    }

    /// Reads all of a snapshot. If any of it is damaged, marks it as missing.
    pub(super) fn quarantine(&self, row: &SnapshotRow) -> Result<bool> {
        let mut damaged: HashSet<Option<PackId>> = HashSet::new();
        let mut seen = HashSet::new();
        let mut todo = vec![(ObjectKind::Manifest, row.manifest)];
        while let Some((kind, id)) = todo.pop() {
            if !seen.insert(id) {
                continue;
            }
            let looked = self.reader.get(kind, &id);
            let looked = looked
                .and_then(|_| references(&*self.reader, kind, &id, &mut |kind, id| todo.push((kind, id))));
            match looked {
                Err(Error::Corrupt(_)) => {
                    damaged.insert(self.catalog.find(&id)?.map(|at| at.pack));
                }
                other => other?,
            }
        }
        if damaged.is_empty() {
            return Ok(false);
        }
        self.catalog.set_missing(&[row.key], true)?;
        let live = self.catalog.packs(PackState::Live)?;
        let suspect: Vec<_> = live.into_iter().filter(|pack| damaged.contains(&Some(pack.id))).collect();
        self.suspect(&suspect)?;
        Ok(true)
    }

    /// What is in these packs is stored again when it is read again, which mends the snapshots that need it.
    pub(super) fn suspect(&self, packs: &[PackRow]) -> Result<()> {
        if packs.is_empty() {
            return Ok(());
        }
        self.catalog.suspect(packs)
    }
}

/// One run.
struct Check<'a> {
    catalog: &'a Catalog,
    packs: &'a dyn PackStorage,
    source: &'a dyn ObjectSource,
    /// Every object the catalog knows, by id.
    rows: Vec<ObjectRow>,
    /// How many of them each pack has.
    known: HashMap<i64, usize>,
    /// Objects that were looked at, with what is wrong with them or below them.
    seen: HashMap<ObjectId, Option<Arc<str>>>,
    /// Packs whose objects are read before they are trusted.
    doubtful: HashSet<i64>,
}

/// What a run found.
struct Found {
    report: CheckReport,
    damaged: Vec<KnownTree>,
    sound: Vec<KnownTree>,
    /// Live packs with damage.
    suspect: Vec<PackRow>,
}

impl<'a> Check<'a> {
    fn new(catalog: &'a Catalog, packs: &'a dyn PackStorage, source: &'a dyn ObjectSource) -> Self {
        let (rows, known) = (Vec::new(), HashMap::new());
        Self { catalog, packs, source, rows, known, seen: HashMap::new(), doubtful: HashSet::new() }
    }

    /// `present`: the packs there were before the catalog was looked at.
    fn run(mut self, present: Vec<PackId>, read_data: bool) -> Result<Found> {
        let mut report = CheckReport { damage: self.strangers(present)?, ..CheckReport::default() };
        if read_data {
            report.damage.extend(self.catalog.damage()?.iter().map(|damage| format!("catalog: {damage}")));
        }
        // Trees first, then the packs: what is published meanwhile is not looked at, and what was there stays.
        let trees = self.catalog.every_tree()?;
        let live = self.catalog.packs(PackState::Live)?;
        let suspect = self.catalog.packs(PackState::Suspect)?;
        let (rows, known) = (&mut self.rows, &mut self.known);
        self.catalog.for_each_object(|row| {
            *known.entry(row.pack).or_default() += 1;
            rows.push(row);
            Ok(())
        })?;
        let mut found = Vec::new();
        for pack in live.iter().chain(&suspect) {
            let damage = self.check_pack(pack, read_data, &mut report)?;
            if !damage.is_empty() {
                self.doubtful.insert(pack.key);
                found.extend(live.iter().find(|live| live.key == pack.key).copied());
                report.damage.extend(damage);
            }
        }
        let (mut damaged, mut sound) = (Vec::new(), Vec::new());
        for tree in trees {
            report.snapshots += u64::from(tree.shown);
            match self.damage_below(ObjectKind::Manifest, tree.manifest)? {
                Some(damage) => {
                    report.damage.push(format!("{}: {damage}", tree.name));
                    damaged.push(tree);
                }
                None => sound.push(tree),
            }
        }
        Ok(Found { report, damaged, sound, suspect: found })
    }

    /// Packs that the catalog does not know: it is not the one they were written with, or has lost something. A pack is
    /// in the catalog before there is a file, and until there is none: so what counts was there before the catalog was
    /// read and is there still.
    fn strangers(&self, present: Vec<PackId>) -> Result<Vec<String>> {
        let mut known: HashSet<PackId> = self.catalog.pending_packs()?.into_iter().collect();
        known.extend(self.catalog.all_packs()?.iter().map(|pack| pack.id));
        let mut strangers: Vec<PackId> = present.into_iter().filter(|pack| !known.contains(pack)).collect();
        if !strangers.is_empty() {
            let still: HashSet<PackId> = self.packs.list()?.into_iter().collect();
            strangers.retain(|pack| still.contains(pack));
        }
        Ok(strangers.iter().map(|pack| format!("pack {pack}: it is not in the catalog")).collect())
    }

    /// Compares a pack with the catalog; with `read_data` reads all of it.
    fn check_pack(&self, pack: &PackRow, read_data: bool, report: &mut CheckReport) -> Result<Vec<String>> {
        let mut damage = Vec::new();
        let described = |what: &str| format!("pack {}: {what}", pack.id);
        let size = match self.packs.open(&pack.id) {
            Ok(file) => file.size().context(|| described("its size"))?,
            Err(error) => return Ok(vec![damage_of(error)?]),
        };
        if size != pack.bytes {
            damage.push(described(&format!("it has {size} bytes, the catalog says {}", pack.bytes)));
        }
        if read_data {
            match verify(self.packs, &pack.id) {
                Ok(verified) => {
                    report.bytes_read += verified.bytes;
                    damage.extend(verified.damage);
                }
                Err(error) => damage.push(damage_of(error)?),
            }
        }
        match read_index(self.packs, &pack.id) {
            Ok(objects) => {
                report.objects += objects.len() as u64;
                let here = objects.iter().filter(|object| {
                    self.row(&object.id).is_some_and(|row| {
                        row.pack == pack.key
                            && (row.block, row.offset, row.len) == (object.block, object.offset, object.len)
                    })
                });
                let (here, known) = (here.count(), self.known.get(&pack.key).copied().unwrap_or(0));
                if here != known {
                    damage.push(described(&format!(
                        "{} objects are not where the catalog says",
                        known.abs_diff(here)
                    )));
                }
                if objects.len() as u64 != pack.objects {
                    let (found, said) = (objects.len(), pack.objects);
                    damage.push(described(&format!("it has {found} objects, the catalog says {said}")));
                }
            }
            // Verifying has said so already.
            Err(_) if !damage.is_empty() => {}
            Err(error) => damage.push(damage_of(error)?),
        }
        Ok(damage)
    }

    fn row(&self, id: &ObjectId) -> Option<&ObjectRow> {
        // The rows came sorted.
        self.rows.binary_search_by(|row| row.id.cmp(id)).ok().map(|at| &self.rows[at])
    }

    /// Whether an object is in a pack that is as the catalog says.
    fn is_sound(&self, id: &ObjectId) -> bool {
        self.row(id).is_some_and(|row| !self.doubtful.contains(&row.pack))
    }

    /// What is wrong with an object or with anything it needs; the first thing found.
    fn damage_below(&mut self, kind: ObjectKind, id: ObjectId) -> Result<Option<Arc<str>>> {
        let mut open = vec![self.look_at(kind, id)?];
        loop {
            let Some(object) = open.last_mut() else { return Ok(None) };
            match object.needs.pop() {
                Some((kind, id)) => match self.seen.get(&id) {
                    Some(known) => object.damage = object.damage.take().or_else(|| known.clone()),
                    None => open.push(self.look_at(kind, id)?),
                },
                None => {
                    let Some(Looked { id, damage, .. }) = open.pop() else { return Ok(None) };
                    self.seen.insert(id, damage.clone());
                    match open.last_mut() {
                        Some(above) => above.damage = above.damage.take().or(damage),
                        None => return Ok(damage),
                    }
                }
            }
        }
    }

    /// Reads what an object refers to; a file's content only if its pack is in doubt.
    fn look_at(&self, kind: ObjectKind, id: ObjectId) -> Result<Looked> {
        let mut needs = Vec::new();
        let looked = match self.row(&id) {
            None => Err(Error::Corrupt(format!("object {id} is in no pack"))),
            Some(_) if !self.is_sound(&id) => self.source.get(kind, &id).map(drop),
            Some(_) => Ok(()),
        };
        let looked = looked.and_then(|()| {
            references(self.source, kind, &id, &mut |kind, id| {
                // Content in a sound pack is most of all there is, and needs no memory.
                if kind != ObjectKind::Data || !self.is_sound(&id) {
                    needs.push((kind, id));
                }
            })
        });
        match looked {
            Ok(()) => Ok(Looked { id, needs, damage: None }),
            Err(error) => Ok(Looked { id, needs, damage: Some(damage_of(error)?.into()) }),
        }
    }
}

/// What is wrong with something that could not be read; the error itself if it says nothing about what is stored.
pub(super) fn damage_of(error: Error) -> Result<String> {
    match error {
        Error::Corrupt(what) => Ok(what),
        Error::Io { ref source, .. } if is_shortage(source) => Err(error),
        // What cannot be read is lost too.
        Error::Io { .. } | Error::NewerFormat { .. } => Ok(error.to_string()),
        _ => Err(error),
    }
}

/// Whether this process or the machine had too little of something at that moment.
fn is_shortage(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// An object being looked at.
struct Looked {
    id: ObjectId,
    /// What it refers to and was not looked at yet.
    needs: Vec<(ObjectKind, ObjectId)>,
    damage: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_damage_unless_it_is_only_that_something_was_short() {
        let io = |errno: Errno| Error::io("open pack", errno.into());
        assert_eq!(damage_of(Error::Corrupt("gone".to_owned())).unwrap(), "gone");
        assert!(damage_of(io(Errno::IO)).is_ok());
        for short in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(matches!(damage_of(io(short)), Err(Error::Io { .. })));
        }
        assert!(matches!(damage_of(Error::Catalog("locked".to_owned())), Err(Error::Catalog(_))));
    }
}
