//! Damage is found, and never handed out as data.

use super::*;

/// A pack with raw and compressed blocks of both groups, small enough to damage every byte of it.
fn small() -> Vec<(ObjectKind, Vec<u8>)> {
    vec![
        (ObjectKind::Data, text(1, 300)),
        (ObjectKind::Data, b"x".to_vec()),
        (ObjectKind::Node, noise(1, 50)),
        (ObjectKind::Manifest, noise(2, 20)),
    ]
}

fn is_damage(found: &Result<PackCheck>) -> bool {
    match found {
        Ok(check) => !check.damage.is_empty(),
        Err(error) => matches!(error, Error::Corrupt(_) | Error::NewerFormat { .. }),
    }
}

#[test]
fn every_changed_byte_is_found_and_no_read_gives_wrong_bytes() {
    let packs = MemoryPacks::default();
    let objects = small();
    let store = Store::of(packs.clone());
    store.store(pack(1), &objects);
    let sound = packs.bytes(&pack(1));
    assert!(sound.len() < 700, "{}", sound.len());
    let mut lost = 0;
    for at in 0..sound.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = sound.clone();
            bytes[at] ^= flip;
            packs.set(pack(1), &bytes);
            let found = verify(&packs, &pack(1));
            assert!(is_damage(&found), "byte {at} ^ {flip:#x}: {found:?}");
            store.reader.forget(&pack(1));
            for (kind, bytes) in &objects {
                match store.reader.get(*kind, &ObjectId::of(*kind, bytes)) {
                    Ok(read) => assert_eq!(&*read, bytes),
                    Err(Error::Corrupt(_) | Error::NewerFormat { .. }) => lost += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
    assert!(lost > 0);
}

#[test]
fn a_pack_cut_at_any_length_is_damaged_and_its_index_is_not_believed() {
    let packs = MemoryPacks::default();
    let objects = small();
    let store = Store::of(packs.clone());
    store.store(pack(1), &objects);
    let sound = packs.bytes(&pack(1));
    for len in 0..sound.len() {
        packs.set(pack(1), &sound[..len]);
        assert!(is_damage(&verify(&packs, &pack(1))), "{len} bytes");
        assert!(matches!(read_index(&packs, &pack(1)), Err(Error::Corrupt(_))), "{len} bytes");
        store.reader.forget(&pack(1));
        for (kind, bytes) in &objects {
            match store.reader.get(*kind, &ObjectId::of(*kind, bytes)) {
                Ok(read) => assert_eq!(&*read, bytes),
                Err(error) => assert!(matches!(error, Error::Corrupt(_)), "{error}"),
            }
        }
    }
    packs.set(pack(1), &[&sound[..], b"more"].concat());
    assert!(is_damage(&verify(&packs, &pack(1))));
}

#[test]
fn random_bytes_with_a_pack_s_header_never_panic() {
    let packs = MemoryPacks::default();
    for seed in 0..200 {
        let body = noise(seed, (seed % 150) as usize);
        packs.set(pack(1), &[&layout::header(&pack(1))[..], &body].concat());
        assert!(is_damage(&verify(&packs, &pack(1))));
    }
}

#[test]
fn a_pack_under_another_s_name_is_damage() {
    let packs = MemoryPacks::default();
    Store::of(packs.clone()).store(pack(1), &small());
    packs.set(pack(2), &packs.bytes(&pack(1)));
    assert!(matches!(read_index(&packs, &pack(2)), Err(Error::Corrupt(_))));
}

#[test]
fn a_pack_of_a_newer_format_says_so() {
    let packs = MemoryPacks::default();
    Store::of(packs.clone()).store(pack(1), &small());
    let mut bytes = packs.bytes(&pack(1));
    bytes[8] += 1;
    packs.set(pack(1), &bytes);
    let known = crate::ckpt::format::FORMAT_VERSION;
    let error = read_index(&packs, &pack(1)).unwrap_err();
    assert!(matches!(error, Error::NewerFormat { found, .. } if found == known + 1), "{error}");
}

#[test]
fn damage_in_one_block_leaves_the_others_readable_and_is_one_line() {
    let packs = MemoryPacks::default();
    let objects = small();
    let store = Store::of(packs.clone());
    let written = store.store(pack(1), &objects).pack.unwrap();
    let mut bytes = packs.bytes(&pack(1));
    let hit = written.objects[0].block;
    bytes[hit as usize + layout::BLOCK_HEADER_LEN] ^= 1;
    packs.set(pack(1), &bytes);
    let check = verify(&packs, &pack(1)).unwrap();
    let [line] = check.damage.as_slice() else { panic!("{check:?}") };
    let what = "does not match its checksum (2 objects are in it)";
    assert_eq!(*line, format!("pack {}: the block at {hit} {what}", pack(1)));
    for object in &written.objects {
        assert_eq!(store.reader.get(object.kind, &object.id).is_err(), object.block == hit);
    }
}

#[test]
fn an_index_that_lies_about_where_an_object_is_cannot_make_it_another_one() {
    let packs = MemoryPacks::default();
    let store = Store::of(packs);
    let mut written = store.store(pack(1), &small()).pack.unwrap();
    for object in &mut written.objects {
        object.len = object.len.wrapping_sub(1);
    }
    written.objects[0].offset = u32::MAX;
    store.index.publish(&written);
    for object in &written.objects {
        assert!(matches!(store.reader.get(object.kind, &object.id), Err(Error::Corrupt(_))));
    }
}
