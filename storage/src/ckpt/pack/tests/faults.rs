//! A disk that fails at any one operation leaves either a whole pack or none.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

/// Packs of which this process may have a few files at a time, and whose first write may panic.
struct Poor {
    packs: MemoryPacks,
    open: Arc<AtomicUsize>,
    may_open: usize,
    panics: Arc<AtomicBool>,
}

impl Poor {
    fn new(may_open: usize, panics: bool) -> Self {
        let (open, panics) = (Arc::default(), Arc::new(AtomicBool::new(panics)));
        Self { packs: MemoryPacks::default(), open, may_open, panics }
    }
}

struct PoorFile<F> {
    file: F,
    open: Arc<AtomicUsize>,
    panics: Arc<AtomicBool>,
}

impl<F> Drop for PoorFile<F> {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Poor {
    fn opened<F>(&self, file: Result<F>) -> Result<PoorFile<F>> {
        if self.open.load(Ordering::Relaxed) == self.may_open {
            return Err(Error::io("open a pack", rustix::io::Errno::MFILE.into()));
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        Ok(PoorFile { file: file?, open: self.open.clone(), panics: self.panics.clone() })
    }
}

impl PackStorage for Poor {
    fn create(&self, id: &PackId) -> Result<Box<dyn NewPackFile>> {
        Ok(Box::new(self.opened(self.packs.create(id))?))
    }
    fn open(&self, id: &PackId) -> Result<Box<dyn PackFile>> {
        Ok(Box::new(self.opened(self.packs.open(id))?))
    }
    fn remove(&self, id: &PackId) -> Result<()> {
        self.packs.remove(id)
    }
    fn list(&self) -> Result<Vec<PackId>> {
        self.packs.list()
    }
}

impl NewPackFile for PoorFile<Box<dyn NewPackFile>> {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        assert!(!self.panics.swap(false, Ordering::Relaxed), "on purpose");
        self.file.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl PackFile for PoorFile<Box<dyn PackFile>> {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buffer, offset)
    }
}

#[test]
fn a_process_that_may_open_few_files_reads_many_packs() {
    let store = Store::of(Poor::new(3, false));
    let objects: Vec<_> = (1..20).map(|n| vec![(ObjectKind::Data, noise(n, 100))]).collect();
    for (n, objects) in (1..).zip(&objects) {
        store.store(pack(n), objects);
    }
    for (kind, bytes) in objects.iter().flatten() {
        assert_eq!(&*store.reader.get(*kind, &ObjectId::of(*kind, bytes)).unwrap(), bytes);
    }
}

#[test]
fn a_pack_of_which_a_thread_left_a_block_behind_is_not_finished() {
    let store = Store::of(Poor::new(3, true));
    let writer = store.writer(pack(1));
    let put = || writer.put(ObjectKind::Data, &noise(1, 300_000));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(put)).is_err());
    writer.put(ObjectKind::Data, &noise(2, 300_000)).unwrap();
    assert!(writer.finish().is_err());
    assert_eq!(store.storage.list().unwrap(), []);
}
