//! Somebody writes all the time while snapshots are taken and given back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_protocol::ckpt::WorkspaceId;
use cofferdam_tests::dice::Dice;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::{effort, files};

use super::fixture::{Place, assert_sound, checkpoint, contents, id, init};
use super::random_changes::{Changes, bytes};
use crate::ckpt::model::*;
use crate::ckpt::{Backend, Store};
use crate::peer::Peer;

/// Where the writer works.
const BUSY: &str = "busy";
/// Where nobody does.
const QUIET: &str = "quiet";
/// Bytes of one record in a file that is written in place.
const RECORD: usize = 16;
/// A writer that makes more files than this goes on with what there is.
const MANY: usize = 150;

/// What a writer was told is done, by the number of the write.
#[derive(Debug, Default)]
struct Written {
    /// Where it went, and still should be somewhere: nothing the writer did later took its place.
    standing: BTreeMap<u64, PathBuf>,
    /// Numbers of the versions of files that are replaced whole.
    versions: BTreeSet<u64>,
    /// How many writes there were.
    count: u64,
}

/// Writes below a directory, as editors, logs and databases do.
struct Writer {
    busy: PathBuf,
    dice: Dice,
    written: Written,
    /// The last write to each record of each file that is written in place.
    records: BTreeMap<(PathBuf, u64), u64>,
    /// Files of its own that it may rename and delete.
    own: Vec<PathBuf>,
}

#[allow(clippy::disallowed_methods, reason = "what a program does to the tree")]
impl Writer {
    fn new(busy: &Path, seed: u64) -> Self {
        let dice = Dice::new(seed);
        Self {
            busy: busy.to_owned(),
            dice,
            written: Written::default(),
            records: BTreeMap::new(),
            own: Vec::new(),
        }
    }

    /// Does one thing. What fails, since a rollback has just taken the directory away, was not done.
    fn write(&mut self) {
        self.written.count += 1;
        let number = self.written.count;
        let _ = match self.dice.below(10) {
            0..3 => self.append(number),
            3..5 => self.write_in_place(number),
            5..7 => self.replace(number),
            7..9 => self.create(number),
            _ => self.rename_or_delete(number),
        };
    }

    fn directory(&mut self) -> PathBuf {
        let dir = *self.dice.pick(&["", "old", "new", "new/deep"]).unwrap();
        self.busy.join(dir)
    }

    fn append(&mut self, number: u64) -> std::io::Result<()> {
        let path = self.directory().join(format!("log{}", self.dice.below(3)));
        let mut file = File::options().append(true).open(&path)?;
        file.write_all(&record(number))?;
        self.written.standing.insert(number, path);
        Ok(())
    }

    fn write_in_place(&mut self, number: u64) -> std::io::Result<()> {
        let path = self.directory().join("table");
        let at = self.dice.below(200);
        let file = File::options().write(true).open(&path)?;
        file.write_all_at(&record(number), at * RECORD as u64)?;
        if let Some(before) = self.records.insert((path.clone(), at), number) {
            self.written.standing.remove(&before);
        }
        self.written.standing.insert(number, path);
        Ok(())
    }

    fn replace(&mut self, number: u64) -> std::io::Result<()> {
        let path = self.directory().join(format!("saved{}", self.dice.below(3)));
        let fresh = path.with_extension("saving");
        // Whether it comes to the rename or not, from now on it may be seen.
        self.written.versions.insert(number);
        std::fs::write(&fresh, version(number))?;
        let moved = rustix::fs::rename(&fresh, &path);
        if moved.is_ok() {
            self.written.standing.retain(|_, other| *other != path);
            self.written.standing.insert(number, path);
        }
        Ok(moved?)
    }

    fn create(&mut self, number: u64) -> std::io::Result<()> {
        if self.own.len() > MANY {
            return self.append(number);
        }
        let path = self.directory().join(format!("own{number}"));
        let mut file = File::create_new(&path)?;
        file.write_all(&record(number))?;
        self.own.push(path.clone());
        self.written.standing.insert(number, path);
        Ok(())
    }

    fn rename_or_delete(&mut self, number: u64) -> std::io::Result<()> {
        if self.own.is_empty() {
            return Ok(());
        }
        let at = self.dice.below(self.own.len() as u64) as usize;
        let path = self.own[at].clone();
        if self.dice.percent(30) {
            rustix::fs::unlink(&path)?;
            self.own.remove(at);
            self.written.standing.retain(|_, other| *other != path);
            return Ok(());
        }
        let to = path.with_file_name(format!("moved{number}"));
        rustix::fs::rename(&path, &to)?;
        for other in self.written.standing.values_mut().filter(|other| **other == path) {
            other.clone_from(&to);
        }
        self.own[at] = to;
        Ok(())
    }
}

/// A line that is found again wherever it is.
fn record(number: u64) -> Vec<u8> {
    format!("w{number:014}\n").into_bytes()
}

/// What a file is replaced by.
fn version(number: u64) -> Vec<u8> {
    let mut content = bytes(number, 3000);
    content.retain(|byte| !b"w\n".contains(byte));
    [record(number), content, b"\n".to_vec()].concat()
}

/// The numbers of all writes that are found below a directory.
fn found_below(dir: &Path) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for content in contents(dir).into_values() {
        for line in content.windows(RECORD).filter(|line| line[0] == b'w' && line[RECORD - 1] == b'\n') {
            found.extend(std::str::from_utf8(&line[1..RECORD - 1]).ok().and_then(|n| n.parse::<u64>().ok()));
        }
    }
    found
}

/// Does something while the writer writes; returns when both are done, and what was standing when it began.
fn meanwhile<T>(writer: &mut Writer, work: impl FnOnce() -> T) -> (T, BTreeMap<u64, PathBuf>) {
    for _ in 0..writer.dice.below(60) {
        writer.write();
    }
    let before = writer.written.standing.clone();
    let is_done = AtomicBool::new(false);
    let (begun, has_begun) = std::sync::mpsc::channel();
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            begun.send(()).unwrap();
            while !is_done.load(Ordering::Relaxed) {
                writer.write();
            }
        });
        has_begun.recv().unwrap();
        // Also when it panics: otherwise nobody would tell the writer.
        let done = catch_unwind(AssertUnwindSafe(work));
        is_done.store(true, Ordering::Relaxed);
        done
    });
    (done.unwrap_or_else(|panic| resume_unwind(panic)), before)
}

struct Scene {
    place: Place,
    store: Store,
    ws: WorkspaceId,
    dice: Dice,
    writer: Writer,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let place = Place::new();
        let store = place.open();
        let ws = init(&store, place.ws()).unwrap();
        let busy = place.ws().join(BUSY);
        for dir in ["", "old"] {
            for file in ["log0", "log1", "log2", "saved0", "saved1", "saved2", "table"] {
                files::write(busy.join(dir).join(file), format!("the first {file}\n"));
            }
        }
        files::mkdir(place.ws().join(QUIET));
        let writer = Writer::new(&busy, !seed);
        let mut scene = Self { place, store, ws, dice: Dice::new(seed), writer };
        scene.change(25);
        scene
    }

    /// Changes what the writer does not touch.
    fn change(&mut self, times: u64) {
        let root = self.place.ws().join(QUIET);
        for _ in 0..times {
            Changes { dice: &mut self.dice, root: &root, fixed: &[], others: &[] }.change();
        }
    }

    /// Everything but what the writer touches.
    fn quiet(&self) -> Tree {
        Tree::read_without(&self.place.ws(), &[BUSY])
    }

    fn busy(&self) -> PathBuf {
        self.place.ws().join(BUSY)
    }
}

fn each_seed(usual: u64, run: impl Fn(u64)) {
    for seed in effort::seeds(usual) {
        let done = catch_unwind(AssertUnwindSafe(|| run(seed)));
        assert!(done.is_ok(), "COFFERDAM_TEST_SEED={seed} fails");
    }
}

#[test]
fn a_snapshot_taken_beside_a_writer_has_everything_at_rest_and_all_that_was_written_before() {
    each_seed(10, |seed| {
        let mut scene = Scene::new(seed);
        let mut taken = Vec::new();
        for n in 0..3 {
            scene.change(5);
            let (quiet, name) = (scene.quiet(), format!("s{n}"));
            let (store, ws) = (&scene.store, &scene.ws);
            let (made, before) = meanwhile(&mut scene.writer, || {
                store.checkpoint(&Peer::own(), ws, &super::fixture::named(&name)).unwrap()
            });
            assert!(matches!(made, Checkpointed::Created(_)));
            quiet.assert_same(&scene.quiet(), "a checkpoint changes nothing");
            for warning in scene.store.warnings(&Peer::own(), &scene.ws, &id(&name)).unwrap() {
                assert!(warning.path.as_bytes().starts_with(BUSY.as_bytes()), "{warning:?}");
            }
            let standing =
                before.into_iter().filter(|(n, path)| scene.writer.written.standing.get(n) == Some(path));
            taken.push((name, quiet, standing.collect::<BTreeMap<_, _>>()));
        }
        for (name, quiet, standing) in &taken {
            scene.store.rollback(&Peer::own(), &scene.ws, &id(name)).unwrap();
            quiet.assert_same(&scene.quiet(), "what was at rest");
            let found = found_below(&scene.busy());
            let lost: Vec<_> = standing.iter().filter(|(n, _)| !found.contains(n)).collect();
            assert!(lost.is_empty(), "{name}: {} of {} are not in it: {lost:?}", lost.len(), standing.len());
            for (path, content) in contents(&scene.busy()) {
                let name = path.file_name().unwrap().to_str().unwrap();
                if name.starts_with("saved") && !name.ends_with("saving") {
                    let is_whole = content == format!("the first {name}\n").into_bytes()
                        || scene.writer.written.versions.iter().any(|n| version(*n) == content);
                    assert!(is_whole, "{path:?} is none of the versions it had");
                }
            }
        }
        assert_sound(&scene.store, 3);
    });
}

#[test]
fn of_what_is_written_while_a_snapshot_is_given_back_nothing_is_lost_in_silence() {
    each_seed(16, |seed| {
        let mut scene = Scene::new(seed);
        checkpoint(&scene.store, &scene.ws, "base");
        let base = scene.quiet();
        scene.change(10);
        files::remove(scene.busy().join("old"));
        for file in ["log0", "log1", "log2", "saved0", "deep/log0", "deep/table"] {
            files::write(scene.busy().join("new").join(file), "new\n");
        }
        files::append(scene.busy().join("log0"), "before\n");
        let before = scene.quiet();
        let (store, ws) = (&scene.store, &scene.ws);
        let (done, _) =
            meanwhile(&mut scene.writer, || store.rollback(&Peer::own(), ws, &id("base")).unwrap());
        base.assert_same(&scene.quiet(), "given back");
        assert_eq!(scene.place.journals(), 0);
        let mut found = found_below(&scene.busy());
        scene.store.undo(&Peer::own(), &scene.ws).unwrap();
        before.assert_same(&scene.quiet(), "taken back");
        found.extend(found_below(&scene.busy()));
        let told = |path: &Path| {
            let path = path.strip_prefix(scene.place.ws()).unwrap();
            done.warnings.iter().any(|warning| path.starts_with(warning.path.as_path()))
        };
        let standing = &scene.writer.written.standing;
        let lost: Vec<_> = standing.iter().filter(|(n, path)| !found.contains(n) && !told(path)).collect();
        assert!(
            lost.is_empty(),
            "{} of {} are lost: {lost:?}\n{:?}",
            lost.len(),
            standing.len(),
            done.warnings
        );
        assert_sound(&scene.store, 1);
    });
}
