//! A pack of format 1, as this program wrote it when the format was frozen. It stays readable for ever: if this test
//! fails, the reader is wrong, not the fixture.

use super::*;
use crate::ckpt::format::{
    Content, Entry, EntryKind, Extent, Extents, HardLinks, Manifest, Meta, NodeWriter, Timestamp, Tree,
};
use crate::ckpt::model::{Warning, WarningKind};
use crate::path::{Name, RelPath};

const FIXTURE: PackId = PackId(*b"fixture format 1");

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn entry(name: &[u8], kind: EntryKind) -> Entry {
    let xattrs = Box::new([(b"user.note"[..].into(), b"\x00\x01"[..].into())]);
    let mtime = Timestamp { secs: 1_700_000_000, nanos: 123_456_789 };
    let meta = Meta { mode: 0o2750, uid: 1000, gid: 100, mtime, xattrs };
    Entry { name: Name::new(name).unwrap(), meta, kind }
}

fn directory(sink: &dyn ObjectSink, entries: impl IntoIterator<Item = Entry>) -> ObjectId {
    let mut writer = NodeWriter::new(sink);
    for entry in entries {
        writer.push(&entry).unwrap();
    }
    writer.finish().unwrap()
}

/// Stores the tree that is in the fixture and returns its manifest's id.
fn write(sink: &dyn ObjectSink) -> ObjectId {
    let data = |bytes: &[u8]| sink.put(ObjectKind::Data, bytes).unwrap();
    let file = |size, content| EntryKind::File { size, content };

    let extents = Extents(vec![
        Extent::Data(300_000, data(&text(1, 300_000))),
        Extent::Hole(1 << 30),
        Extent::Data(4, data(b"tail")),
    ]);
    let sparse = sink.put(ObjectKind::Extents, &extents.encode()).unwrap();
    let many = (0..600u64).map(|n| {
        let small = format!("content {}", n % 5);
        let content = Content::Whole(data(small.as_bytes()));
        entry(format!("file-{n:04}").as_bytes(), file(small.len() as u64, content))
    });
    let many = directory(sink, many);
    let root = directory(
        sink,
        [
            entry(b"a-link", EntryKind::Symlink(b"many/file-0001"[..].into())),
            entry(b"b-pipe", EntryKind::Fifo),
            entry(b"c-device", EntryKind::CharDevice(1, 3)),
            entry(b"d-empty", file(0, Content::Empty)),
            entry(b"e-sparse", file((1 << 30) + 300_004, Content::Extents(sparse))),
            entry(b"f-unread", file(7, Content::Unread)),
            entry(b"many", EntryKind::Directory(Some(many))),
            entry(b"\xff", file(12, Content::Whole(data(b"not UTF-8 \xff\n")))),
        ],
    );
    let links = HardLinks { groups: vec![vec![path("many/file-0001"), path("many/file-0006")]] };
    let manifest = Manifest {
        root_meta: entry(b"unused", EntryKind::Fifo).meta,
        root,
        hard_links: Some(sink.put(ObjectKind::HardLinks, &links.encode()).unwrap()),
        entries: 608,
        bytes: (1 << 30) + 305_423,
        warnings: vec![Warning { path: path("f-unread"), kind: WarningKind::Unreadable }],
    };
    sink.put(ObjectKind::Manifest, &manifest.encode()).unwrap()
}

/// The fixture's bytes; none but this module's history wrote them.
const BYTES: &[u8] = include_bytes!("../fixtures/format-1.pack");

#[test]
fn a_pack_of_format_1_is_whole_and_holds_what_it_held() {
    // What it held: the same tree, written today.
    let today = Store::of(MemoryPacks::default());
    let writer = today.writer(FIXTURE);
    let manifest = write(&writer);
    let expected = writer.finish().unwrap().pack.unwrap();

    let packs = MemoryPacks::default();
    packs.set(FIXTURE, BYTES);
    let check = verify(&packs, &FIXTURE).unwrap();
    assert_eq!(check.damage, [""; 0]);
    let objects = read_index(&packs, &FIXTURE).unwrap();
    let ids = |objects: &[PackedObject]| objects.iter().map(|object| object.id).collect::<BTreeSet<_>>();
    assert_eq!(ids(&objects), ids(&expected.objects));

    // A catalog filled from the pack alone finds the tree.
    let store = Store::of(packs);
    store.index.publish(&NewPack { id: FIXTURE, bytes: 0, raw_bytes: 0, objects });
    let manifest = Manifest::load(&*store.reader, &manifest).unwrap();
    assert_eq!(manifest.entries, 608);
    let tree = Tree::new(&*store.reader, manifest.root);
    let found = tree.lookup(&path("many/file-0599")).unwrap().unwrap();
    let EntryKind::File { content: Content::Whole(id), .. } = found.kind else { panic!("{found:?}") };
    assert_eq!(&*store.reader.get(ObjectKind::Data, &id).unwrap(), b"content 4");
    let sparse = tree.lookup(&path("e-sparse")).unwrap().unwrap();
    let EntryKind::File { size, content: Content::Extents(id) } = sparse.kind else { panic!("{sparse:?}") };
    assert_eq!(Extents::load(&*store.reader, &id).unwrap().size(), Some(size));
    let links = HardLinks::load(&*store.reader, &manifest.hard_links.unwrap()).unwrap();
    assert_eq!(links.groups[0], [path("many/file-0001"), path("many/file-0006")]);
}
