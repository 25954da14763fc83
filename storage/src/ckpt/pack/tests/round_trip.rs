//! What is put comes back, before and after the pack is durable, from any thread.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::peer::Peer;

#[test]
fn everything_put_is_read_back_before_and_after_the_pack_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    let objects = assorted();
    let writer = store.writer(pack(1));
    for (kind, bytes) in &objects {
        let id = writer.put(*kind, bytes).unwrap();
        assert_eq!(id, ObjectId::of(*kind, bytes));
        assert!(writer.has(&id).unwrap());
        assert_eq!(&*writer.get(*kind, &id).unwrap(), bytes);
    }
    for (kind, bytes) in &objects {
        assert_eq!(&*writer.get(*kind, &ObjectId::of(*kind, bytes)).unwrap(), bytes);
    }
    let written = writer.finish().unwrap().pack.unwrap();
    assert_eq!(written.bytes, dir.path().join(format!("{}.pack", pack(1))).metadata().unwrap().len());
    assert_eq!(written.raw_bytes, objects.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    assert_eq!(written.objects.len(), objects.len());
    assert!(written.bytes < written.raw_bytes);
    store.index.publish(&written);

    // A reader that has nothing in memory.
    let fresh = ObjectReader::new(store.storage.clone(), store.index.clone());
    for (kind, bytes) in &objects {
        assert_eq!(&*fresh.get(*kind, &ObjectId::of(*kind, bytes)).unwrap(), bytes);
    }
    assert_eq!(read_index(&*store.storage, &pack(1)).unwrap(), written.objects);
    let check = verify(&*store.storage, &pack(1)).unwrap();
    assert_eq!(check, PackCheck { objects: objects.len() as u64, bytes: written.bytes, damage: Vec::new() });
}

#[test]
fn an_object_is_stored_once_in_a_pack_and_not_again_in_the_next() {
    let store = Store::of(MemoryPacks::default());
    let (one, two) = ((ObjectKind::Data, b"one".to_vec()), (ObjectKind::Data, b"two".to_vec()));
    let first = store.store(pack(1), &[one.clone(), one.clone()]);
    assert_eq!(first.pack.unwrap().objects.len(), 1);
    assert!(first.reused.is_empty());

    let second = store.store(pack(2), &[one.clone(), two]);
    assert_eq!(second.pack.unwrap().objects.len(), 1);
    assert_eq!(second.reused, BTreeSet::from([pack(1)]));

    // Equal bytes of another kind are another object.
    let third = store.store(pack(3), &[(ObjectKind::Node, one.1)]);
    assert!(third.pack.is_some());
}

#[test]
fn a_writer_that_got_nothing_new_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    assert_eq!(store.store(pack(1), &[]), Written::default());
    let known = [(ObjectKind::Data, b"known".to_vec())];
    store.store(pack(2), &known);
    let again = store.store(pack(3), &known);
    assert_eq!(again, Written { pack: None, reused: BTreeSet::from([pack(2)]) });
    assert_eq!(store.storage.list().unwrap(), [pack(2)]);
}

#[test]
fn dropping_an_unfinished_writer_removes_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    let writer = store.writer(pack(1));
    let bytes = noise(1, 300_000);
    let id = writer.put(ObjectKind::Data, &bytes).unwrap();
    assert_eq!(store.storage.list().unwrap(), [pack(1)]);
    assert_eq!(&*writer.get(ObjectKind::Data, &id).unwrap(), bytes);
    drop(writer);
    assert_eq!(store.storage.list().unwrap(), []);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn nodes_lie_apart_from_content() {
    let store = Store::of(MemoryPacks::default());
    let objects: Vec<_> = (0..20)
        .flat_map(|n| [(ObjectKind::Data, noise(n, 1000)), (ObjectKind::Node, noise(n, 1000))])
        .collect();
    let written = store.store(pack(1), &objects).pack.unwrap();
    let blocks = |kind| -> BTreeSet<u64> {
        written.objects.iter().filter(|object| object.kind == kind).map(|object| object.block).collect()
    };
    assert_eq!((blocks(ObjectKind::Data).len(), blocks(ObjectKind::Node).len()), (1, 1));
    assert_ne!(blocks(ObjectKind::Data), blocks(ObjectKind::Node));
}

#[test]
fn two_threads_fill_one_pack_and_read_each_others_objects() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    let writer = store.writer(pack(1));
    let objects = assorted();
    let reads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for start in [0, objects.len() / 2] {
            let (writer, objects, reads) = (&writer, &objects, &reads);
            scope.spawn(move || {
                for n in 0..objects.len() {
                    let (kind, bytes) = &objects[(start + n) % objects.len()];
                    writer.put(*kind, bytes).unwrap();
                    let (kind, bytes) = &objects[n];
                    let id = ObjectId::of(*kind, bytes);
                    if writer.has(&id).unwrap() {
                        assert_eq!(&*writer.get(*kind, &id).unwrap(), bytes);
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(reads.into_inner() >= objects.len());
    let written = writer.finish().unwrap().pack.unwrap();
    assert_eq!(written.objects.len(), objects.len());
    assert_eq!(verify(&*store.storage, &pack(1)).unwrap().damage, [""; 0]);
    assert_eq!(read_index(&*store.storage, &pack(1)).unwrap(), written.objects);
}

#[test]
fn an_object_asked_for_as_another_kind_is_damage() {
    let store = Store::of(MemoryPacks::default());
    let writer = store.writer(pack(1));
    let id = writer.put(ObjectKind::Data, b"x").unwrap();
    assert!(matches!(writer.get(ObjectKind::Node, &id), Err(Error::Corrupt(_))));
    store.index.publish(&writer.finish().unwrap().pack.unwrap());
    assert!(matches!(store.reader.get(ObjectKind::Node, &id), Err(Error::Corrupt(_))));
    assert!(matches!(store.reader.get(ObjectKind::Data, &ObjectId([0; 32])), Err(Error::Corrupt(_))));
}

#[test]
fn many_packs_are_read_with_few_of_them_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    let objects: Vec<_> = (0..100).map(|n| (ObjectKind::Data, noise(n, 10))).collect();
    for (n, object) in (0..).zip(&objects) {
        store.store(pack(n), std::slice::from_ref(object));
    }
    let open_packs = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap();
        links
            .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
            .filter(|path| path.starts_with(dir.path()) && path.extension().is_some())
            .count()
    };
    for _ in 0..2 {
        for (kind, bytes) in &objects {
            assert_eq!(&*store.reader.get(*kind, &ObjectId::of(*kind, bytes)).unwrap(), bytes);
        }
    }
    assert_eq!(open_packs(), 16);
    store.storage.list().unwrap().iter().for_each(|id| store.reader.forget(id));
    assert_eq!(open_packs(), 0);
}

#[test]
fn a_removed_pack_is_gone_for_the_reader_once_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    let id = ObjectId::of(ObjectKind::Data, b"x");
    store.store(pack(1), &[(ObjectKind::Data, b"x".to_vec())]);
    store.reader.get(ObjectKind::Data, &id).unwrap();
    store.storage.remove(&pack(1)).unwrap();
    store.storage.remove(&pack(1)).unwrap();
    store.reader.forget(&pack(1));
    assert!(matches!(store.reader.get(ObjectKind::Data, &id), Err(Error::Corrupt(_))));
}

#[test]
fn the_directory_lists_packs_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    store.store(pack(0xab), &[(ObjectKind::Data, b"x".to_vec())]);
    for other in
        ["x.pack", "00.pack", "ABABABABABABABABABABABABABABABAB.pack", "abababababababababababababababab"]
    {
        std::fs::write(dir.path().join(other), "").unwrap();
    }
    assert_eq!(store.storage.list().unwrap(), [pack(0xab)]);
}

#[test]
fn a_thread_with_a_peers_rights_writes_and_reads_packs_in_the_daemons_directory() {
    if !rustix::process::geteuid().is_root() {
        cofferdam_tests::skipped(format_args!("only root may take another user's rights"));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let store = Store::in_dir(&dir, Disk::default());
    let stranger = Peer { uid: 65534, gid: 65534, groups: Vec::new() };
    let _rights = stranger.enter().unwrap();
    assert!(std::fs::read_dir(dir.path()).is_err());
    let objects = assorted();
    store.store(pack(1), &objects);
    for (kind, bytes) in &objects {
        assert_eq!(&*store.reader.get(*kind, &ObjectId::of(*kind, bytes)).unwrap(), bytes);
    }
    store.writer(pack(2)).put(ObjectKind::Data, &noise(9, 300_000)).unwrap();
    assert_eq!(store.storage.list().unwrap(), [pack(1)]);
}

#[test]
fn a_pack_is_named_by_32_lower_case_hexadecimal_digits() {
    let id = PackId(*b"0123456789abcdef");
    assert_eq!(PackId::from_hex(&id.to_string()), Some(id));
    let text = "0f".repeat(16);
    assert_eq!(PackId::from_hex(&text).unwrap().to_string(), text);
    for bad in ["", "0f", &"0F".repeat(16), &"0f".repeat(17), &"0g".repeat(16), &text[1..]] {
        assert_eq!(PackId::from_hex(bad), None, "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_put_in_whatever_order_comes_back(
        puts in vec((1u8..6, 0u64..20, prop_oneof![0usize..200, 60_000usize..70_000, 250_000usize..270_000], any::<bool>()), 1..40),
    ) {
        let store = Store::of(MemoryPacks::default());
        let objects: Vec<_> = puts
            .into_iter()
            .map(|(kind, seed, len, compressible)| {
                let bytes = if compressible { text(seed, len) } else { noise(seed, len) };
                (ObjectKind::from_byte(kind).unwrap(), bytes)
            })
            .collect();
        let written = store.store(pack(1), &objects).pack.unwrap();
        for (kind, bytes) in &objects {
            let read = store.reader.get(*kind, &ObjectId::of(*kind, bytes)).unwrap();
            prop_assert_eq!(&*read, bytes.as_slice());
        }
        prop_assert_eq!(read_index(&*store.storage, &pack(1)).unwrap(), written.objects);
        prop_assert!(verify(&*store.storage, &pack(1)).unwrap().damage.is_empty());
    }
}
