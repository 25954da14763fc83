//! Tests of the format: what the bytes are, and that trees do what they promise.

mod codec;
mod golden;
mod trees;

use proptest::prelude::*;

use super::*;
use crate::path::Name;

pub(super) fn name(text: impl AsRef<[u8]>) -> Name {
    Name::new(text.as_ref()).unwrap()
}

/// A small file whose bytes are its version's.
pub(super) fn file(name_text: impl AsRef<[u8]>, version: u64) -> Entry {
    let mtime = Timestamp { secs: 1_700_000_000 + version as i64, nanos: 0 };
    let meta = Meta { mode: 0o644, uid: 1000, gid: 1000, mtime, xattrs: Box::default() };
    let content = Content::Whole(ObjectId::of(ObjectKind::Data, &version.to_le_bytes()));
    Entry { name: name(name_text), meta, kind: EntryKind::File { size: 8, content } }
}

pub(super) fn directory(name_text: impl AsRef<[u8]>, node: ObjectId) -> Entry {
    Entry {
        name: name(name_text),
        meta: Meta { mode: 0o755, ..Meta::default() },
        kind: EntryKind::Directory(Some(node)),
    }
}

pub(super) fn write(sink: &dyn ObjectSink, entries: &[Entry]) -> ObjectId {
    let mut writer = NodeWriter::new(sink);
    for entry in entries {
        writer.push(entry).unwrap();
    }
    writer.finish().unwrap()
}

pub(super) fn any_id() -> impl Strategy<Value = ObjectId> {
    any::<[u8; 32]>().prop_map(ObjectId)
}

pub(super) fn any_name() -> impl Strategy<Value = Name> {
    let byte = any::<u8>().prop_map(|b| if matches!(b, 0 | b'/') { b'x' } else { b });
    prop_oneof![
        proptest::collection::vec(byte, 1..12),
        "[a-c]{1,3}".prop_map(String::into_bytes),
        Just(vec![0xff; Name::MAX]),
    ]
    .prop_filter_map("dots", |bytes| Name::new(bytes).ok())
}

pub(super) fn any_meta() -> impl Strategy<Value = Meta> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
    let xattrs = proptest::collection::btree_map(proptest::collection::vec(any::<u8>(), 1..9), bytes(), 0..3);
    (0..=0o7777u32, any::<u32>(), any::<u32>(), any::<i64>(), 0..1_000_000_000u32, xattrs).prop_map(
        |(mode, uid, gid, secs, nanos, xattrs)| {
            let xattrs = xattrs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            Meta { mode, uid, gid, mtime: Timestamp { secs, nanos }, xattrs }
        },
    )
}

pub(super) fn any_entry() -> impl Strategy<Value = Entry> {
    let file = |size, content| EntryKind::File { size, content };
    let kind = prop_oneof![
        Just(file(0, Content::Empty)),
        (1u64.., any_id()).prop_map(move |(size, id)| file(size, Content::Whole(id))),
        (1u64.., any_id()).prop_map(move |(size, id)| file(size, Content::Extents(id))),
        any::<u64>().prop_map(move |size| file(size, Content::Unread)),
        proptest::option::of(any_id()).prop_map(EntryKind::Directory),
        proptest::collection::vec(1u8.., 1..20).prop_map(|target| EntryKind::Symlink(target.into())),
        Just(EntryKind::Fifo),
        Just(EntryKind::Socket),
        any::<(u32, u32)>().prop_map(|(major, minor)| EntryKind::CharDevice(major, minor)),
        any::<(u32, u32)>().prop_map(|(major, minor)| EntryKind::BlockDevice(major, minor)),
        Just(EntryKind::MountPoint),
    ];
    (any_name(), any_meta(), kind).prop_map(|(name, meta, kind)| {
        let meta = if kind == EntryKind::MountPoint { Meta::default() } else { meta };
        Entry { name, meta, kind }
    })
}
