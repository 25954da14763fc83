//! A disk that fails at any one operation leaves either a whole pack or none.

use std::io;
use std::sync::Mutex;

use super::*;
use crate::disk::{FaultHook, Op};

/// Fails one operation and remembers all.
#[derive(Debug)]
struct FailAt {
    nth: usize,
    errno: rustix::io::Errno,
    seen: Mutex<Vec<Op>>,
}

impl FaultHook for FailAt {
    fn before(&self, op: Op) -> io::Result<()> {
        let mut seen = lock(&self.seen);
        seen.push(op);
        if seen.len() - 1 == self.nth { Err(self.errno.into()) } else { Ok(()) }
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

fn write_with_fault(nth: usize, errno: rustix::io::Errno) -> (tempfile::TempDir, Result<Written>, Vec<Op>) {
    let dir = tempfile::tempdir().unwrap();
    let hook = Arc::new(FailAt { nth, errno, seen: Mutex::default() });
    let store = Store::in_dir(&dir, Disk::with_faults(hook.clone()));
    let writer = store.writer(pack(1));
    let result = assorted()
        .iter()
        .try_for_each(|(kind, bytes)| writer.put(*kind, bytes).map(|_| ()))
        .and_then(|()| writer.finish());
    let seen = lock(&hook.seen).clone();
    (dir, result, seen)
}

#[test]
fn a_pack_costs_one_fsync_of_its_file_and_one_of_its_directory() {
    let (_dir, result, seen) = write_with_fault(usize::MAX, rustix::io::Errno::IO);
    result.unwrap();
    assert_eq!(seen.iter().filter(|op| **op == Op::Create).count(), 1);
    assert_eq!(seen[seen.len() - 2..], [Op::Fsync, Op::Fsync]);
    assert!(seen[1..seen.len() - 2].iter().all(|op| *op == Op::Write), "{seen:?}");
}

#[test]
fn a_failure_of_any_operation_is_reported_and_leaves_no_file() {
    let (_, _, all) = write_with_fault(usize::MAX, rustix::io::Errno::IO);
    assert!(all.len() > 8);
    for (nth, op) in all.iter().enumerate() {
        for errno in [rustix::io::Errno::IO, rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT] {
            let (dir, result, _) = write_with_fault(nth, errno);
            let error = result.unwrap_err();
            let is_full = matches!(error, Error::NoSpace { .. });
            assert_eq!(is_full, errno != rustix::io::Errno::IO, "operation {nth}: {error}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "operation {nth} ({op:?})");
        }
    }
}

#[test]
fn after_a_failure_every_later_put_and_the_end_fail_the_same_way() {
    let dir = tempfile::tempdir().unwrap();
    let hook = FailAt { nth: 2, errno: rustix::io::Errno::NOSPC, seen: Mutex::default() };
    let store = Store::in_dir(&dir, Disk::with_faults(Arc::new(hook)));
    let writer = store.writer(pack(1));
    assert!(matches!(writer.put(ObjectKind::Data, &noise(1, 300_000)), Err(Error::NoSpace { .. })));
    assert!(matches!(writer.put(ObjectKind::Data, &noise(1, 300_000)), Err(Error::NoSpace { .. })));
    assert!(matches!(writer.put(ObjectKind::Data, b"small"), Err(Error::NoSpace { .. })));
    assert!(matches!(writer.finish(), Err(Error::NoSpace { .. })));
    assert_eq!(store.storage.list().unwrap(), []);
}

#[test]
fn a_pack_that_cannot_be_removed_either_is_left_unfinished_and_the_next_one_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    // Create, header, then the removal by dropping.
    let hook = FailAt { nth: 3, errno: rustix::io::Errno::IO, seen: Mutex::default() };
    let store = Store::in_dir(&dir, Disk::with_faults(Arc::new(hook)));
    let writer = store.writer(pack(1));
    writer.put(ObjectKind::Data, &noise(1, 300_000)).unwrap();
    drop(writer);
    assert_eq!(store.storage.list().unwrap(), [pack(1)]);
    assert!(matches!(read_index(&*store.storage, &pack(1)), Err(Error::Corrupt(_))));
    assert_eq!(store.store(pack(2), &assorted()).pack.unwrap().objects.len(), assorted().len());
    store.storage.remove(&pack(1)).unwrap();
    assert_eq!(store.storage.list().unwrap(), [pack(2)]);
}

#[test]
fn a_name_that_is_taken_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    store.store(pack(1), &assorted());
    let writer = store.writer(pack(1));
    writer.put(ObjectKind::Data, b"other").unwrap();
    assert!(writer.finish().is_err());
    assert!(verify(&*store.storage, &pack(1)).unwrap().damage.is_empty());
}
