//! What is written together, what is synced for it, and files that are hashed beside their copying.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam_tests::project::noise;
use rustix::io::Errno;

use super::*;
use crate::disk::testing::{Faults, Recorder};
use crate::disk::{FaultHook, Op};

/// More than fit into a batch.
const MANY: usize = 1010;

fn many(lab: &Lab) {
    for n in 0..MANY {
        lab.task(&[(&format!("out/{n:04}"), "text")]);
    }
}

#[test]
fn many_files_are_written_in_batches_and_their_progress_is_told() {
    let mut lab = Lab::new();
    many(&lab);
    let mut told = Vec::new();
    let plan = plan(&Disk::default(), lab.request(&["out"])).unwrap();
    let record =
        plan.carry_out(&Disk::default(), &mut lab.store, &mut |done, of| told.push((done, of))).unwrap();
    assert_eq!(record.items.len(), MANY);
    assert!(record.items.iter().all(|item| item.status == Status::Ok));
    assert_eq!(lab.store.record, Some(record));
    assert_eq!(told, (0..=MANY).map(|done| (done, MANY)).collect::<Vec<_>>());
    lab.undo();
    assert_eq!(files::names(lab.at("target")), [""; 0]);
}

#[test]
fn no_more_directories_are_held_open_at_once_than_any_program_may_open() {
    let mut lab = Lab::new();
    for n in 0..MANY {
        lab.task(&[(&format!("out/{n:04}/x"), "text")]);
    }
    let batches = Arc::new(Batches::default());
    let request = lab.request(&["out"]);
    let record = lab.run_on(&Disk::with_faults(batches.clone()), request).unwrap();
    assert!(record.items.iter().all(|item| item.status == Status::Ok));
    assert_eq!(batches.0.load(Ordering::Relaxed), 5, "250 of {MANY} at a time");
}

/// Counts batches.
#[derive(Debug, Default)]
struct Batches(AtomicU64);

impl FaultHook for Batches {
    fn before(&self, _: Op) -> io::Result<()> {
        Ok(())
    }

    fn step(&self, name: &str) -> io::Result<()> {
        self.0.fetch_add(u64::from(name == "export.done"), Ordering::Relaxed);
        Ok(())
    }
}

/// Counts the rows that are written.
struct Rows(Store, usize);

impl ExportLog for Rows {
    fn save(&mut self, changes: Vec<Change>) -> Result<()> {
        for change in &changes {
            if let Change::PutExportItems { items, .. } = change {
                self.1 += items.len();
            }
        }
        self.0.save(changes)
    }
}

#[test]
fn what_is_intended_costs_no_row_and_each_file_that_is_done_one() {
    let lab = Lab::new();
    many(&lab);
    let mut rows = Rows(Store::default(), 0);
    let plan = plan(&Disk::default(), lab.request(&["out"])).unwrap();
    plan.carry_out(&Disk::default(), &mut rows, &mut |_, _| {}).unwrap();
    assert_eq!(rows.1, MANY);
}

/// Everything fails from the Nth step on, as for a process that dies there.
#[derive(Debug)]
struct DiesAtStep(u64, AtomicU64);

impl FaultHook for DiesAtStep {
    fn before(&self, _: Op) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) > self.0 { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.before(Op::Commit)
    }
}

#[test]
fn whichever_batch_the_process_dies_in_what_was_done_is_known_and_can_be_undone() {
    let mut exported = Vec::new();
    for step in 0.. {
        let mut lab = Lab::new();
        many(&lab);
        let disk = Disk::with_faults(Arc::new(DiesAtStep(step, 0.into())));
        let request = lab.request(&["out"]);
        if lab.run_on(&disk, request).is_ok() {
            assert!(step > 10, "{step} steps");
            break;
        }
        lab.reconcile();
        let record = lab.store.record.clone().unwrap();
        let done = record.items.iter().filter(|item| item.status == Status::Ok);
        let mut names: Vec<_> = done.map(|item| item.dst.rsplit('/').next().unwrap().to_owned()).collect();
        names.sort();
        let out = lab.at("target/out");
        assert_eq!(if out.exists() { files::names(out) } else { Vec::new() }, names, "{step}");
        exported.push(names.len());
        if !names.is_empty() {
            assert!(lab.undo().conflicts.is_empty(), "{step}");
            assert_eq!(files::names(lab.at("target")), [""; 0], "{step}");
        }
    }
    exported.dedup();
    assert_eq!(exported, [0, 1000, MANY]);
}

fn times(seen: &[Op], op: Op) -> usize {
    seen.iter().filter(|seen| **seen == op).count()
}

#[test]
fn few_files_are_synced_one_by_one_and_many_with_the_whole_filesystem() {
    let table = [
        // The files and the two directories before the renames, and the directories after them.
        (1, false, (3 + 2, 0)),
        (13, false, (15 + 2, 0)),
        (17, false, (2, 1)),
        // A backup may be a copy. Its directories are three more.
        (1, true, (5, 1)),
    ];
    for (count, are_in_the_way, expected) in table {
        let mut lab = Lab::new();
        for n in 0..count {
            lab.task(&[(&format!("out/{n}"), "new")]);
            if are_in_the_way {
                lab.target(&[(&format!("out/{n}"), "old")]);
            }
        }
        let (recorder, disk) = Recorder::disk();
        let request = lab.request(&["out"]);
        lab.run_on(&disk, request).unwrap();
        let seen = recorder.take();
        let found = (times(&seen, Op::Fsync), times(&seen, Op::Syncfs));
        assert_eq!(found, expected, "{count} files, in the way: {are_in_the_way}");
    }
}

/// Larger than what is hashed beside its copying, by less than a chunk, and than what waits to be hashed.
const LARGE: usize = (9 << 20) + 12345;

#[test]
fn a_large_file_is_copied_whole_with_the_hash_of_what_was_written() {
    let bytes = noise(LARGE);
    for bytes in [&bytes[..], &bytes[..8 << 20]] {
        let mut lab = Lab::new();
        files::write(lab.at("root/task/x"), bytes);
        let (recorder, disk) = Recorder::disk();
        let request = lab.request(&["x"]);
        let record = lab.run_on(&disk, request).unwrap();
        assert_eq!(record.status, ExportStatus::Completed);
        assert_eq!(record.items[0].hash, blake3::hash(bytes).to_hex().to_string());
        assert!(files::read(lab.at("target/x")) == bytes);
        assert_eq!(times(&recorder.take(), Op::Writeback), 1, "the disk begins before the end");
    }
}

#[test]
fn whichever_operation_fails_while_a_large_file_is_copied_nothing_is_left_of_it() {
    let bytes = noise(LARGE);
    for nth in 0.. {
        let mut lab = Lab::new();
        files::write(lab.at("root/task/x"), &bytes);
        let hook = Faults::new(nth, Errno::NOSPC, false);
        let request = lab.request(&["x"]);
        if lab.run_on(&Disk::with_faults(hook.clone()), request).is_err() {
            lab.reconcile();
        }
        let is_done = lab.store.record.as_ref().is_some_and(|record| record.items[0].status == Status::Ok);
        let names = files::names(lab.at("target"));
        assert_eq!(names, if is_done { vec!["x"] } else { vec![] }, "{nth}");
        if is_done {
            assert!(files::read(lab.at("target/x")) == bytes, "{nth}");
        }
        if !hook.happened() {
            assert!(nth > 40, "{nth} operations");
            break;
        }
    }
}
