//! Every kind of damage to the store's files: it is found, it costs exactly the snapshots that need what is damaged, and
//! the next checkpoint mends what the live tree still has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_tests::dice::Dice;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::{effort, files};

use super::fixture::{Place, assert_sound, collect_all, contents, id, init, named, noise, put_back, shown};
use crate::ckpt::error::Error;
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store, StoreOptions};
use crate::disk::Disk;
use crate::peer::Peer;

const NAMES: [&str; 3] = ["one", "two", "three"];

/// Three snapshots in three packs, and their trees. The live tree is that of the last one.
struct Stock {
    place: Place,
    ws: WorkspaceId,
    trees: BTreeMap<&'static str, Tree>,
    /// The files of the sound store.
    sound: BTreeMap<PathBuf, Vec<u8>>,
}

impl Stock {
    fn new() -> Self {
        let place = Place::with_files();
        let store = place.open();
        // Everything has been at rest for long, so the stat cache believes it.
        place.clock.set_ahead(Duration::from_secs(60));
        let ws = init(&store, place.ws()).unwrap();
        let mut trees = BTreeMap::new();
        for (n, name) in NAMES.into_iter().enumerate() {
            place.write(&[
                ("only here", &noise(n as u64, 3000)),
                ("dir/deep/only here", &noise(10 + n as u64, 200)),
                (&format!("dir/from {n} on"), &noise(20 + n as u64, 5000)),
            ]);
            store.checkpoint(&Peer::own(), &ws, &named(name)).unwrap();
            trees.insert(name, Tree::read(&place.ws()));
        }
        drop(store);
        let sound = contents(&place.path("state/ckpt"));
        Self { place, ws, trees, sound }
    }

    fn open(&self) -> Result<Store, Error> {
        let options = StoreOptions { clock: self.place.clock.clone(), ..self.place.options(Disk::default()) };
        Store::open(options).map(|(store, _)| store)
    }

    /// Puts the sound store back.
    fn restore(&self) {
        put_back(&self.place.path("state/ckpt"), &self.sound);
    }

    fn packs(&self) -> Vec<(&PathBuf, &Vec<u8>)> {
        let packs = self.sound.iter().filter(|(path, _)| path.extension().is_some_and(|name| name == "pack"));
        packs.collect()
    }

    /// Which snapshots are marked; the others come back exactly, and these are refused before anything is touched.
    fn exactly_the_marked_ones_are_lost(&self, store: &Store, what: &str) -> Vec<String> {
        let mut lost = Vec::new();
        for (name, snapshot) in shown(store) {
            let before = Tree::read(&self.place.ws());
            let done = store.rollback(&Peer::own(), &self.ws, &id(&name));
            let after = Tree::read(&self.place.ws());
            match (snapshot.missing, done) {
                (false, Ok(_)) => self.trees[&*name].assert_same(&after, what),
                (true, Err(Error::SnapshotMissing(named))) => {
                    assert_eq!(named, id(&name));
                    before.assert_same(&after, what);
                    before.assert_same_inodes(&after, before.paths(), what);
                    lost.push(name);
                }
                (missing, done) => panic!("{what}: {name} is marked {missing} and gives {done:?}"),
            }
        }
        lost
    }
}

/// Something that happens to a pack, the first one or another. Places are in thousandths of its length.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip {
        pack: usize,
        place: usize,
        bit: u64,
    },
    /// At so many bytes from its end.
    FlipNearEnd {
        pack: usize,
        back: usize,
    },
    Cut {
        pack: usize,
        place: usize,
    },
    Zero {
        pack: usize,
        from: usize,
        to: usize,
    },
    Delete {
        pack: usize,
    },
    /// With the next one.
    Swap {
        pack: usize,
    },
}

impl Harm {
    /// Some of every kind to every pack.
    fn some(dice: &mut Dice, flips: u64) -> Vec<Self> {
        let mut some = Vec::new();
        for pack in 0..NAMES.len() {
            for _ in 0..flips {
                some.push(Self::Flip { pack, place: dice.below(1000) as usize, bit: dice.below(8) });
            }
            // The index is there, and what says where the index is.
            some.extend([1, 20, 100].map(|back| Self::FlipNearEnd { pack, back }));
            some.extend([0, 300, 999].map(|place| Self::Cut { pack, place }));
            some.extend([(0, 1000), (500, 600), (0, 5)].map(|(from, to)| Self::Zero { pack, from, to }));
            some.extend([Self::Delete { pack }, Self::Swap { pack }]);
        }
        some
    }

    fn happen(self, stock: &Stock) {
        let mut packs = stock.packs();
        // The names say nothing about which is which.
        packs.sort_by_key(|(_, content)| content.len());
        let change = |pack: usize, change: &dyn Fn(&mut Vec<u8>)| {
            let (path, content) = packs[pack];
            let mut content = content.clone();
            change(&mut content);
            files::write(path, content);
        };
        let at = |content: &[u8], place: usize| content.len() * place / 1000;
        match self {
            Self::Flip { pack, place, bit } => change(pack, &|content| {
                let at = at(content, place);
                content[at] ^= 1 << bit;
            }),
            Self::FlipNearEnd { pack, back } => change(pack, &|content| {
                let at = content.len() - back;
                content[at] ^= 1;
            }),
            Self::Cut { pack, place } => change(pack, &|content| content.truncate(at(content, place))),
            Self::Zero { pack, from, to } => change(pack, &|content| {
                let range = at(content, from)..at(content, to);
                content[range].fill(0);
            }),
            Self::Delete { pack } => files::remove(packs[pack].0),
            Self::Swap { pack } => {
                let (one, other) = (packs[pack], packs[(pack + 1) % packs.len()]);
                files::write(one.0, other.1);
                files::write(other.0, one.1);
            }
        }
    }
}

#[test]
fn whatever_happens_to_a_pack_is_found_and_costs_exactly_what_needs_it() {
    for seed in effort::seeds(1) {
        let stock = Stock::new();
        for harm in Harm::some(&mut Dice::new(seed), 10) {
            let what = format!("seed {seed}, {harm:?}");
            stock.restore();
            harm.happen(&stock);
            let store = stock.open().unwrap();
            let report = store.check(true).unwrap();
            assert!(!report.damage.is_empty(), "{what}");
            let lost = stock.exactly_the_marked_ones_are_lost(&store, &what);
            for name in NAMES {
                let is_named = |line: &String| line.starts_with(&format!("snapshot '{name}' of "));
                let is_lost = lost.iter().any(|lost| lost == name);
                assert_eq!(report.damage.iter().any(is_named), is_lost, "{what}: {report:?}");
            }
        }
    }
}

#[test]
fn the_next_checkpoint_mends_whatever_the_live_tree_still_has() {
    for seed in effort::seeds(1) {
        for harm in Harm::some(&mut Dice::new(!seed), 3) {
            let what = format!("seed {seed}, {harm:?}");
            let stock = Stock::new();
            harm.happen(&stock);
            let store = stock.open().unwrap();
            store.check(true).unwrap();
            let newest = shown(&store).pop().unwrap().1;
            // What it last found is in the stat cache, and nothing has changed since.
            let new = NewSnapshot { skip_unchanged: true, ..named("mending") };
            match store.checkpoint(&Peer::own(), &stock.ws, &new).unwrap() {
                Checkpointed::Unchanged(same) => assert!(!newest.missing && same == newest.id, "{what}"),
                Checkpointed::Created(_) => assert!(newest.missing, "{what}"),
                Checkpointed::EmptyWorkspace => panic!("{what}"),
            }
            store.check(true).unwrap();
            let marks: BTreeMap<String, bool> =
                shown(&store).into_iter().map(|(name, snapshot)| (name, snapshot.missing)).collect();
            assert!(!marks["three"], "{what}: the live tree has all of it");
            let lost: Vec<_> = marks.iter().filter(|(_, lost)| **lost).map(|(name, _)| id(name)).collect();
            if marks.contains_key("mending") {
                store.delete(&Peer::own(), &stock.ws, &[id("mending")], Removal::Unlink).unwrap();
            }
            stock.exactly_the_marked_ones_are_lost(&store, &what);
            // Without what is lost, and without what cannot be undone any more, nothing damaged is left.
            store.delete(&Peer::own(), &stock.ws, &lost, Removal::Unlink).unwrap();
            stock.place.clock.advance(Duration::from_secs(8 * 24 * 60 * 60));
            collect_all(&store);
            assert_sound(&store, NAMES.len() as u64 - lost.len() as u64);
            assert!(stock.exactly_the_marked_ones_are_lost(&store, &what).is_empty());
        }
    }
}

#[test]
fn a_pack_that_is_gone_as_the_store_is_opened_is_mended_without_a_check() {
    let stock = Stock::new();
    for (path, _) in stock.packs() {
        files::remove(path);
    }
    let store = stock.open().unwrap();
    store.checkpoint(&Peer::own(), &stock.ws, &named("mending")).unwrap();
    store.check(true).unwrap();
    let lost: Vec<_> = shown(&store).into_iter().filter(|(_, snapshot)| snapshot.missing).collect();
    assert_eq!(lost.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["one", "two"]);
    files::remove(stock.place.ws().join("dir"));
    store.rollback(&Peer::own(), &stock.ws, &id("mending")).unwrap();
    stock.trees["three"].assert_same(&Tree::read(&stock.place.ws()), "mended");
}

#[test]
fn a_changed_byte_of_the_catalog_never_gives_a_wrong_tree() {
    for seed in effort::seeds(1) {
        let mut dice = Dice::new(seed);
        let stock = Stock::new();
        let (path, content) = stock.sound.iter().find(|(path, _)| path.ends_with("catalog.sqlite3")).unwrap();
        let mut found = 0;
        let mut live: Vec<u64> = (0..content.len() as u64).filter(|at| content[*at as usize] != 0).collect();
        // What is zero is unused for the most part.
        live.extend((0..content.len() as u64).step_by(997));
        for _ in 0..120 {
            let (at, bit) = (*dice.pick(&live).unwrap(), dice.below(8));
            let what = format!("seed {seed}, bit {bit} of byte {at} of the catalog flipped");
            stock.restore();
            let mut flipped = content.clone();
            flipped[at as usize] ^= 1 << bit;
            files::write(path, flipped);
            let Ok(store) = stock.open() else {
                found += 1;
                continue;
            };
            let report = store.check(true);
            found += u64::from(!matches!(&report, Ok(report) if report.damage.is_empty()));
            for name in NAMES {
                let before = Tree::read(&stock.place.ws());
                let done = store.rollback(&Peer::own(), &stock.ws, &id(name));
                let after = Tree::read(&stock.place.ws());
                match done {
                    Ok(_) => stock.trees[name].assert_same(&after, &what),
                    Err(_) => {
                        // What cannot be taken back either, for want of a catalog, stays pending, with its directory.
                        let is_pending = |line: &String| {
                            line.starts_with(".cofferdam-") || line.starts_with("the root: mtime")
                        };
                        let differences = before.differences(&after);
                        assert!(differences.iter().all(is_pending), "{what}: {differences:?}");
                        for name in files::names(stock.place.ws()) {
                            if name.starts_with(".cofferdam-") {
                                files::remove(stock.place.ws().join(name));
                            }
                        }
                    }
                }
            }
        }
        assert!(found > 40, "only {found} were found");
    }
}

#[test]
fn a_damaged_tree_that_undo_gives_back_keeps_nothing_from_being_reclaimed_once_a_rollback_has_replaced_it() {
    let place = Place::with_files();
    let store = place.open();
    let ws = init(&store, place.ws()).unwrap();
    store.checkpoint(&Peer::own(), &ws, &named("one")).unwrap();
    let known = place.pack_files();
    place.write(&[("new", "in the tree before the rollback alone")]);
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    drop(store);
    place.pack_files().into_iter().filter(|pack| !known.contains(pack)).for_each(files::remove);
    let store = place.open();
    let said = store.collect(u64::MAX).unwrap_err().to_string();
    assert!(said.contains("seven days after the next rollback"), "{said}");
    assert!(matches!(store.undo(&Peer::own(), &ws), Err(Error::Corrupt(_))));
    place.write(&[("new", "again")]);
    store.rollback(&Peer::own(), &ws, &id("one")).unwrap();
    assert!(store.collect(u64::MAX).is_err(), "it is in the trash");
    place.clock.advance(Duration::from_secs(8 * 24 * 60 * 60));
    collect_all(&store);
    assert_sound(&store, 1);
}
