//! The bytes and ids of fixed examples. The format is frozen: a store written today is read for ever, so none of
//! these may change. What is new gets a new kind, tag or version.

use super::testing::MemoryObjects;
use super::*;
use crate::ckpt::model::{Warning, WarningKind};
use crate::path::RelPath;

#[track_caller]
fn check(kind: ObjectKind, bytes: &[u8], expected_hex: &str, expected_id: &str) {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = ObjectId::of(kind, bytes).to_string();
    assert_eq!((hex.as_str(), id.as_str()), (expected_hex, expected_id));
}

fn meta() -> Meta {
    let xattrs = Box::new([(b"user.a"[..].into(), b"\x00\xff"[..].into())]);
    Meta { mode: 0o4755, uid: 1000, gid: 65534, mtime: Timestamp { secs: -2, nanos: 999_999_999 }, xattrs }
}

#[test]
fn data() {
    check(
        ObjectKind::Data,
        b"cofferdam",
        "636f6666657264616d",
        "58316a2cdccd001434f35cf163972c3c6a0d8852edb1432aebfd58a78d2a426a",
    );
}

#[test]
fn extents() {
    let extents = Extents(vec![
        Extent::Data(65_536, ObjectId([1; 32])),
        Extent::Hole(1 << 40),
        Extent::Data(1, ObjectId([2; 32])),
    ]);
    check(
        ObjectKind::Extents,
        &extents.encode(),
        "03018080040101010101010101010101010101010101010101010101010101010101010101008080808080200101\
         0202020202020202020202020202020202020202020202020202020202020202",
        "b13961ccccf51723f531a8a494d43f60702dabe6f934e1a8e7ff699a4cef923a",
    );
}

#[test]
fn a_leaf_with_an_entry_of_each_kind() {
    let id = ObjectId([3; 32]);
    let kinds = [
        EntryKind::File { size: 0, content: Content::Empty },
        EntryKind::File { size: 300, content: Content::Whole(id) },
        EntryKind::File { size: 1 << 33, content: Content::Extents(id) },
        EntryKind::File { size: 5, content: Content::Unread },
        EntryKind::Directory(Some(id)),
        EntryKind::Directory(None),
        EntryKind::Symlink(b"../target"[..].into()),
        EntryKind::Fifo,
        EntryKind::Socket,
        EntryKind::CharDevice(1, 3),
        EntryKind::BlockDevice(259, 1_048_575),
        EntryKind::MountPoint,
    ];
    let objects = MemoryObjects::new();
    let mut writer = NodeWriter::new(&objects);
    for (kind, letter) in kinds.into_iter().zip(b'a'..) {
        // The first one has everything a Meta can have.
        let meta = match kind {
            EntryKind::File { content: Content::Empty, .. } => meta(),
            _ => Meta::default(),
        };
        writer.push(&Entry { name: name([letter, 0xff]), meta, kind }).unwrap();
    }
    let leaf = writer.finish().unwrap();
    check(
        ObjectKind::Node,
        &objects.get(ObjectKind::Node, &leaf).unwrap(),
        "000261ff00ed13e807feff0303ff93ebdc030106757365722e610200ff0262ff01ac020303030303030303030303\
         0303030303030303030303030303030303030303030000000000000263ff02808080802003030303030303030303\
         030303030303030303030303030303030303030303030000000000000264ff03050000000000000265ff04030303\
         03030303030303030303030303030303030303030303030303030303030000000000000266ff0500000000000002\
         67ff06092e2e2f7461726765740000000000000268ff070000000000000269ff08000000000000026aff09010300\
         0000000000026bff0a8302ffff3f000000000000026cff0b",
        "644711c64c2d7b31ffc7c9b3b7ddf7eff23c7b051283a400fbe1568447488065",
    );
}

#[test]
fn where_a_big_directory_is_split() {
    let objects = MemoryObjects::new();
    let entries: Vec<Entry> = (0..1500).map(|n| file(format!("{n:05}"), n % 3)).collect();
    let root = write(&objects, &entries);
    check(
        ObjectKind::Node,
        &objects.get(ObjectKind::Node, &root).unwrap(),
        "01053030303537b677bb91bab0f7b54ed13651fb9530bee0bd01e0d6426a96576a8bb86dbb6c073a053030373933\
         79b3ce7c9f39a9edaa64dea12bf992d92bc4c0a9afdb4f38566fdc4e62e3459ae00505303039343216e7ca203a73\
         f541957c942293a94683bc017cc48712c162ada3cbc6b81ed2cf950105303131363325d88bda107d5ab78710f279\
         5321cf190c7362a299ad6bc7322078613e09c9dddd0105303134393966633242d660c9989e637cb0a33790edaad6\
         854116d1247f769cda4bd48882f1d002",
        "c08e17975b09108250baf8f4e3d20fc61d85778a67fd28027cbb4e4eb2286b52",
    );
}

#[test]
fn hard_links() {
    let path = |text: &str| RelPath::new(text.as_bytes()).unwrap();
    let links =
        HardLinks { groups: vec![vec![path("a"), path("d/b")], vec![path("c"), path("e"), path("f")]] };
    check(
        ObjectKind::HardLinks,
        &links.encode(),
        "0202016103642f6203016301650166",
        "10624db5d056e2df25375ea05954075485a0f4ec98b71da02c0080c5f08b1dc4",
    );
}

#[test]
fn manifest() {
    let path = |text: &str| RelPath::new(text.as_bytes()).unwrap();
    let kinds = [
        WarningKind::Unreadable,
        WarningKind::ChangedWhileRead,
        WarningKind::MountPoint,
        WarningKind::LateWrite,
        WarningKind::OwnerNotRestored,
    ];
    let warnings = kinds.into_iter().zip(["a", "b", "c", "d", "e/f"]);
    let manifest = Manifest {
        root_meta: meta(),
        root: ObjectId([4; 32]),
        hard_links: Some(ObjectId([5; 32])),
        entries: 1_000_000,
        bytes: u64::MAX,
        warnings: warnings.map(|(kind, at)| Warning { path: path(at), kind }).collect(),
    };
    check(
        ObjectKind::Manifest,
        &manifest.encode(),
        "01ed13e807feff0303ff93ebdc030106757365722e610200ff040404040404040404040404040404040404040404\
         0404040404040404040404010505050505050505050505050505050505050505050505050505050505050505c084\
         3dffffffffffffffffff01050001610101620201630301640403652f66",
        "cac9287fb630f267abd185fcc0d1a901d217b8cd81aa93bc84a3509f0e8bc0a7",
    );

    let plain = Manifest { root_meta: Meta::default(), hard_links: None, warnings: Vec::new(), ..manifest };
    check(
        ObjectKind::Manifest,
        &plain.encode(),
        "01000000000000040404040404040404040404040404040404040404040404040404040404040400c0843dffffff\
         ffffffffffff0100",
        "91a35b0db614cf63094ee26ccd3b22af0b04860a4053e6d8e6b053ed8efe3c8b",
    );
}
