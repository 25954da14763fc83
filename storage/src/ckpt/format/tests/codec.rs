//! Encoding and decoding undo each other, and nothing else decodes.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::node::{Child, Node};
use super::testing::MemoryObjects;
use super::*;
use crate::ckpt::model::{Warning, WarningKind};
use crate::path::RelPath;

fn any_path() -> impl Strategy<Value = RelPath> {
    vec(any_name(), 1..4).prop_map(|names| names.iter().fold(RelPath::ROOT, |path, name| path.join(name)))
}

fn any_extents() -> impl Strategy<Value = Extents> {
    let len = || 1u64..1 << 50;
    let extent = prop_oneof![
        len().prop_map(Extent::Hole),
        (len(), any_id()).prop_map(|(len, id)| Extent::Data(len, id)),
    ];
    vec(extent, 0..20).prop_map(Extents)
}

fn any_manifest() -> impl Strategy<Value = Manifest> {
    let kind = prop_oneof![
        Just(WarningKind::Unreadable),
        Just(WarningKind::ChangedWhileRead),
        Just(WarningKind::MountPoint),
        Just(WarningKind::LateWrite),
        Just(WarningKind::OwnerNotRestored),
    ];
    let warnings = vec((any_path(), kind).prop_map(|(path, kind)| Warning { path, kind }), 0..5);
    (any_meta(), any_id(), proptest::option::of(any_id()), any::<(u64, u64)>(), warnings).prop_map(
        |(root_meta, root, hard_links, (entries, bytes), warnings)| Manifest {
            root_meta,
            root,
            hard_links,
            entries,
            bytes,
            warnings,
        },
    )
}

fn any_hard_links() -> impl Strategy<Value = HardLinks> {
    btree_set(any_path(), 0..12).prop_map(|paths| {
        let paths: Vec<RelPath> = paths.into_iter().collect();
        HardLinks { groups: paths.chunks(3).filter(|group| group.len() > 1).map(<[_]>::to_vec).collect() }
    })
}

/// Every value the encoding has, as `T` or as an error; none may panic or take more memory than its bytes allow.
fn decode_all(bytes: &[u8]) {
    let _ = Node::decode(bytes);
    let _ = Manifest::decode(bytes);
    let _ = HardLinks::decode(bytes);
    let _ = Extents::decode(bytes);
}

proptest! {
    #[test]
    fn integers_come_back_and_have_one_encoding_only(unsigned in any::<u64>(), signed in any::<i64>()) {
        let mut out = Encoder::new();
        out.uint(unsigned).int(signed);
        let mut input = Decoder::new("integers", out.as_slice());
        prop_assert_eq!(input.uint(), Ok(unsigned));
        prop_assert_eq!(input.int(), Ok(signed));
        prop_assert!(input.end().is_ok());
    }

    #[test]
    fn an_entry_comes_back_from_its_bytes(entry in any_entry()) {
        prop_assert!(entry.is_sound());
        let mut out = Encoder::new();
        entry.encode(&mut out);
        let mut input = Decoder::new("entry", out.as_slice());
        prop_assert_eq!(Entry::decode(&mut input), Ok(entry));
        prop_assert!(input.is_empty());
    }

    #[test]
    fn extents_come_back_from_their_bytes(extents in any_extents()) {
        prop_assert_eq!(Extents::decode(&extents.encode()), Ok(extents));
    }

    #[test]
    fn a_manifest_comes_back_from_its_bytes(manifest in any_manifest()) {
        prop_assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }

    #[test]
    fn hard_links_come_back_from_their_bytes(links in any_hard_links()) {
        prop_assert_eq!(HardLinks::decode(&links.encode()), Ok(links));
    }

    #[test]
    fn bytes_that_decode_are_the_only_bytes_of_what_they_decode_to(
        (mut bytes, at, to) in (any_manifest().prop_map(|m| m.encode()), any::<prop::sample::Index>(), any::<u8>())
    ) {
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(manifest) = Manifest::decode(&bytes) {
            prop_assert_eq!(manifest.encode(), bytes);
        }
    }

    #[test]
    fn bytes_cut_short_do_not_decode(manifest in any_manifest(), links in any_hard_links(), extents in any_extents()) {
        let (manifest, links, extents) = (manifest.encode(), links.encode(), extents.encode());
        for len in 0..manifest.len() {
            prop_assert!(Manifest::decode(&manifest[..len]).is_err());
        }
        for len in 0..links.len() {
            prop_assert!(HardLinks::decode(&links[..len]).is_err());
        }
        for len in 0..extents.len() {
            prop_assert!(Extents::decode(&extents[..len]).is_err());
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        decode_all(&bytes);
    }
}

#[test]
fn a_count_without_its_items_takes_no_memory() {
    for head in [&[0xff; 9][..], &[1, 0, 0, 0, 0, 0]] {
        let mut bytes = head.to_vec();
        bytes.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        decode_all(&bytes);
    }
}

#[test]
fn an_integer_with_needless_bytes_or_more_than_64_bits_is_malformed() {
    for bad in
        [&[0x80, 0][..], &[0xff; 10], &[0x80], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]]
    {
        assert!(Decoder::new("integer", bad).uint().is_err(), "{bad:x?}");
    }
    assert!(Decoder::new("integer", &[0xff, 0xff, 0xff, 0xff, 0x10]).uint32().is_err());
}

#[test]
fn entries_that_contradict_themselves_neither_encode_into_a_node_nor_decode() {
    let id = ObjectId([7; 32]);
    let sound = file("a", 1);
    let kind = |size, content| Entry { kind: EntryKind::File { size, content }, ..sound.clone() };
    let meta = |meta| Entry { meta, ..sound.clone() };
    let xattrs = |names: &[&str]| Meta {
        xattrs: names.iter().map(|name| (name.as_bytes().into(), Box::default())).collect(),
        ..Meta::default()
    };
    let bad = [
        kind(0, Content::Whole(id)),
        kind(0, Content::Extents(id)),
        kind(1, Content::Empty),
        meta(Meta { mode: 0o10000, ..Meta::default() }),
        meta(Meta { mtime: Timestamp { secs: 0, nanos: 1_000_000_000 }, ..Meta::default() }),
        meta(xattrs(&["b", "a"])),
        meta(xattrs(&["a", "a"])),
        meta(xattrs(&[""])),
    ];
    for entry in bad {
        assert!(NodeWriter::new(&MemoryObjects::new()).push(&entry).is_err(), "{entry:?}");
        // The one that has no encoding of its own is the file that is empty and has a size.
        if !matches!(entry.kind, EntryKind::File { size: 1, content: Content::Empty }) {
            let mut out = Encoder::new();
            entry.encode(&mut out);
            assert!(Entry::decode(&mut Decoder::new("entry", out.as_slice())).is_err(), "{entry:?}");
        }
    }
}

#[test]
fn nodes_with_names_out_of_order_bad_names_or_no_children_are_malformed() {
    let leaf = |names: &[&str]| {
        let mut out = Encoder::new();
        out.byte(0);
        names.iter().for_each(|name| file(name, 1).encode(&mut out));
        Node::decode(out.as_slice())
    };
    assert!(leaf(&["a", "b"]).is_ok());
    assert!(leaf(&["b", "a"]).is_err());
    assert!(leaf(&["a", "a"]).is_err());

    let inner = |level, names: &[&str], entries| {
        let mut out = Encoder::new();
        out.byte(level);
        for text in names {
            Child { last: name(text), id: ObjectId([1; 32]), entries }.encode(&mut out);
        }
        Node::decode(out.as_slice())
    };
    assert!(inner(1, &["a", "b"], 1).is_ok());
    assert!(inner(1, &["b", "a"], 1).is_err());
    assert!(inner(1, &["a", "a"], 1).is_err());
    assert!(inner(1, &["a"], 0).is_err());
    assert!(inner(1, &[], 1).is_err());
    assert!(inner(17, &["a"], 1).is_err());
    // Names no directory can have.
    for bad in ["", ".", "..", "a/b"] {
        let mut out = Encoder::new();
        out.byte(0).bytes(bad.as_bytes()).byte(7);
        Meta::default().encode(&mut out);
        assert!(Node::decode(out.as_slice()).is_err(), "{bad:?}");
    }
    assert!(Node::decode(&[]).is_err());
}

#[test]
fn hard_link_tables_out_of_order_and_groups_of_one_are_malformed() {
    let table = |groups: &[&[&str]]| {
        let mut out = Encoder::new();
        out.uint(groups.len() as u64);
        for group in groups {
            out.uint(group.len() as u64);
            for path in *group {
                out.bytes(path.as_bytes());
            }
        }
        HardLinks::decode(out.as_slice())
    };
    assert!(table(&[&["a", "c"], &["b", "d"]]).is_ok());
    for bad in [
        &[&["a"][..]][..],
        &[&[]],
        &[&["b", "a"]],
        &[&["a", "a"]],
        &[&["b", "d"], &["a", "c"]],
        &[&["", "a"]],
    ] {
        assert!(table(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn extents_that_are_empty_or_longer_than_any_file_are_malformed() {
    let of = |lens: &[u64]| {
        let mut out = Encoder::new();
        out.uint(lens.len() as u64);
        for len in lens {
            out.byte(0).uint(*len);
        }
        Extents::decode(out.as_slice())
    };
    assert_eq!(of(&[1, 2]).unwrap().size(), Some(3));
    assert!(of(&[0]).is_err());
    assert!(of(&[u64::MAX, 1]).is_err());
}

#[test]
fn an_object_that_is_not_what_its_kind_says_is_damage() {
    let objects = MemoryObjects::new();
    let id = objects.put(ObjectKind::Manifest, b"\xff").unwrap();
    let error = Manifest::load(&objects, &id).unwrap_err().to_string();
    assert!(error.contains(&id.to_string()) && error.contains("malformed manifest"), "{error}");
}
