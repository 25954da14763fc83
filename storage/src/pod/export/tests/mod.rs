//! Tests of exports.

mod away;
mod batches;
mod conflicts;
mod discarding;
mod faults;
mod hostile;
mod left;
mod random;
mod refusals;
mod undoing;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cofferdam_protocol::pod::{
    ConflictMode, ExportItem, ExportItemStatus as Status, ExportMode, ExportRecord, ExportStatus,
    ExportUndone,
};
use cofferdam_tests::files;

use super::{ExportLog, ExportRequest, check_discard, discard, is_settled, plan, reconcile, undo};
use crate::disk::Disk;
use crate::pod::error::{Error, Result};
use crate::pod::model::{Change, KeptExport};
use crate::pod::place::TaskPlace;

/// A task's directory and a target, and what the database holds of one export.
struct Lab {
    dir: tempfile::TempDir,
    store: Store,
}

/// As the database keeps records.
#[derive(Clone, Default)]
struct Store {
    record: Option<ExportRecord>,
    notes: String,
    /// Where commits fail as the disk does.
    disk: Disk,
}

impl ExportLog for Store {
    fn save(&mut self, changes: Vec<Change>) -> Result<()> {
        self.disk.before_commit().map_err(|error| Error::Database(error.to_string()))?;
        for change in changes {
            match change {
                Change::PutExport(record) => self.record = Some(*record),
                Change::PutExportItems { items, .. } => {
                    let record = self.record.as_mut().unwrap();
                    items.into_iter().for_each(|(at, item)| record.items[at] = item);
                }
                Change::PutExportNotes { notes, .. } => self.notes = notes,
                Change::SettleExport { status, undone_at, .. } => {
                    let record = self.record.as_mut().unwrap();
                    (record.status, record.undone_at) = (status, undone_at);
                }
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    }
}

impl Lab {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self::within(dir.unwrap())
    }

    fn within(dir: tempfile::TempDir) -> Self {
        files::mkdir(dir.path().join("root/task"));
        files::mkdir(dir.path().join("target"));
        Self { dir, store: Store::default() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Files of the task.
    fn task(&self, paths: &[(&str, &str)]) {
        paths.iter().for_each(|(path, text)| files::write(self.at("root/task").join(path), text));
    }

    /// Files of the target.
    fn target(&self, paths: &[(&str, &str)]) {
        paths.iter().for_each(|(path, text)| files::write(self.at("target").join(path), text));
    }

    fn request(&self, entries: &[&str]) -> ExportRequest {
        ExportRequest {
            id: "exp-1".to_owned(),
            task: "task".to_owned(),
            label: "label".to_owned(),
            at: 1,
            place: Some(TaskPlace { root: Some(self.at("root")), dir: self.at("root/task") }),
            current_root: None,
            own_files: vec![self.at("data/pod.db"), self.at("data/core.log")],
            own_dirs: vec![self.at("state")],
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            target_dir: self.at("target"),
            mode: ExportMode::Copy,
            conflict: ConflictMode::Overwrite,
        }
    }

    fn run_on(&mut self, disk: &Disk, request: ExportRequest) -> Result<ExportRecord> {
        self.store = Store { disk: disk.clone(), ..Store::default() };
        let plan = plan(disk, request)?;
        plan.carry_out(disk, &mut self.store, &mut |_, _| {})
    }

    #[track_caller]
    fn run(&mut self, request: ExportRequest) -> ExportRecord {
        let record = self.run_on(&Disk::default(), request).unwrap();
        assert_eq!(self.store.record.as_ref(), Some(&record), "what is answered is what is kept");
        record
    }

    #[track_caller]
    fn copy(&mut self, entries: &[&str], conflict: ConflictMode) -> ExportRecord {
        let request = ExportRequest { conflict, ..self.request(entries) };
        self.run(request)
    }

    fn undo_on(&mut self, disk: &Disk, verify: bool) -> Result<ExportUndone> {
        self.store.disk = disk.clone();
        let Store { record, notes, .. } = self.store.clone();
        undo(disk, record.unwrap(), &notes, verify, 2, &mut self.store)
    }

    #[track_caller]
    fn undo(&mut self) -> ExportUndone {
        let undone = self.undo_on(&Disk::default(), true).unwrap();
        assert_eq!(self.store.record.as_ref(), Some(&undone.export), "what is answered is what is kept");
        undone
    }

    /// What the database holds of the export.
    fn kept(&self) -> KeptExport {
        let Store { record, notes, .. } = self.store.clone();
        KeptExport { record: record.unwrap(), notes }
    }

    /// What a new process does with an export that was running.
    fn reconcile(&mut self) {
        self.store.disk = Disk::default();
        if self.store.record.is_some() {
            let KeptExport { record, notes } = reconcile(&Disk::default(), self.kept());
            (self.store.record, self.store.notes) = (Some(record), notes);
        }
    }

    /// What a directory holds.
    fn tree(&self, dir: &str) -> Tree {
        let mut tree = Tree::new();
        read(&self.at(dir), "", &mut tree);
        tree
    }

    /// The content of each file of the target, by path.
    fn texts(&self) -> Vec<(String, String)> {
        let tree = self.tree("target");
        let text = |(path, node): (String, Node)| Some((path, String::from_utf8(node.content?).unwrap()));
        tree.into_iter().filter_map(text).collect()
    }
}

/// What is at each path.
type Tree = BTreeMap<String, Node>;

/// What a user can tell of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    mode: u32,
    mtime: (i64, i64),
    content: Option<Vec<u8>>,
}

fn read(at: &Path, path: &str, tree: &mut Tree) {
    let Ok(meta) = std::fs::symlink_metadata(at) else { return };
    let content = meta.is_file().then(|| files::read(at));
    tree.insert(
        path.to_owned(),
        Node { mode: meta.mode(), mtime: (meta.mtime(), meta.mtime_nsec()), content },
    );
    if meta.is_dir() {
        for name in files::names(at) {
            read(&at.join(&name), &format!("{path}/{name}"), tree);
        }
    }
}

fn pairs(texts: &[(&str, &str)]) -> Vec<(String, String)> {
    texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn statuses(record: &ExportRecord) -> Vec<Status> {
    record.items.iter().map(|item| item.status).collect()
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[test]
fn a_copy_is_complete_hashed_and_keeps_modes_and_times() {
    let mut lab = Lab::new();
    lab.task(&[("out/x.txt", "x"), ("out/sub/y", "yy"), ("single", "")]);
    files::chmod(lab.at("root/task/out/x.txt"), 0o4751);
    files::set_mtime(lab.at("root/task/out/x.txt"), 1000, 42);
    let before = lab.tree("root");
    let record = lab.copy(&["out", "single"], ConflictMode::Overwrite);
    assert_eq!(record.status, ExportStatus::Completed);
    assert_eq!(lab.texts(), pairs(&[("/out/sub/y", "yy"), ("/out/x.txt", "x"), ("/single", "")]));
    let exported = &lab.tree("target")["/out/x.txt"];
    assert_eq!((exported.mode & 0o7777, exported.mtime), (0o751, (1000, 42)));
    assert_eq!(lab.tree("root"), before);
    let item = ExportItem {
        status: Status::Ok,
        src: lab.at("root/task/out/sub/y").to_str().unwrap().to_owned(),
        dst: lab.at("target/out/sub/y").to_str().unwrap().to_owned(),
        bytes: 2,
        hash: hash("yy"),
        existed: false,
        backup_path: String::new(),
        message: String::new(),
    };
    assert_eq!(record.items[0], item);
}

#[test]
fn a_move_takes_away_what_was_selected_and_no_more_than_that() {
    let mut lab = Lab::new();
    lab.task(&[("out/a/x", "x"), ("out/y", "y"), ("kept", "kept")]);
    files::mkdir(lab.at("root/task/out/empty"));
    let request = ExportRequest { mode: ExportMode::Move, ..lab.request(&["out"]) };
    let record = lab.run(request);
    assert_eq!(record.status, ExportStatus::Completed);
    assert_eq!(lab.texts(), pairs(&[("/out/a/x", "x"), ("/out/y", "y")]));
    assert_eq!(files::names(lab.at("root/task")), ["kept"]);
    let request = ExportRequest { mode: ExportMode::Move, ..lab.request(&["."]) };
    lab.run(request);
    assert_eq!(files::names(lab.at("root")), ["task"], "the task's directory stays");
    assert_eq!(files::names(lab.at("root/task")), [""; 0]);
}

#[test]
fn backups_go_and_exported_files_stay_when_a_record_is_discarded() {
    let mut lab = Lab::new();
    lab.task(&[("x", "new")]);
    lab.target(&[("x", "old"), (".isolation-pod-undo/exp-2/x", "another's")]);
    lab.copy(&["x"], ConflictMode::Overwrite);
    discard(&Disk::default(), &lab.kept()).unwrap();
    assert_eq!(lab.texts(), pairs(&[("/.isolation-pod-undo/exp-2/x", "another's"), ("/x", "new")]));
    discard(&Disk::default(), &lab.kept()).unwrap();
    files::remove(lab.at("target"));
    assert!(discard(&Disk::default(), &lab.kept()).is_err(), "backups may be on a drive that is away");

    let mut lab = Lab::new();
    lab.task(&[("x", "new")]);
    lab.target(&[("x", "old")]);
    lab.copy(&["x"], ConflictMode::Overwrite);
    files::mkdir(lab.at("elsewhere/exp-1"));
    files::remove(lab.at("target/.isolation-pod-undo"));
    files::symlink(lab.at("elsewhere"), lab.at("target/.isolation-pod-undo"));
    assert!(discard(&Disk::default(), &lab.kept()).is_err());
    assert_eq!(files::names(lab.at("elsewhere")), ["exp-1"], "a link is not followed");
}
