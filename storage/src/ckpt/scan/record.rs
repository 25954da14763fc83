//! What the stat cache remembers of one directory.
//!
//! A record is the directory's entries in order, each with the key of the file it was read from, and behind them the
//! directory's node. Whoever compares a live directory with its record decodes nothing but names and keys.

use crate::ckpt::FileKind;
use crate::ckpt::format::{Decoder, Encoder, Entry, Malformed, ObjectId, Timestamp};
use crate::clock::WallTime;
use crate::fs::Stat;

/// One entry of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    /// The name.
    pub(super) name: &'a [u8],
    /// The [`key`] of the file when it was read.
    pub(super) key: &'a [u8],
    /// Whether an equal key proves that the entry is what a reading would give again.
    pub(super) clean: bool,
    /// The encoded [`Entry`].
    pub(super) entry: &'a [u8],
}

impl<'a> Item<'a> {
    /// Appends the item to a record.
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.bytes(self.key).byte(self.clean.into()).bytes(self.entry);
    }

    /// The entry itself.
    pub(super) fn decode_entry(&self) -> Result<Entry, Malformed> {
        let mut input = Decoder::new("cached entry", self.entry);
        let entry = Entry::decode(&mut input)?;
        input.end()?;
        Ok(entry)
    }

    fn decode(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let key = input.bytes()?;
        let clean = match input.byte()? {
            0 => false,
            1 => true,
            _ => return Err(input.malformed()),
        };
        let entry = input.bytes()?;
        // An encoded entry begins with its name.
        let name = Decoder::new("cached entry", entry).bytes()?;
        Ok(Self { name, key, clean, entry })
    }
}

/// The items of a record in order. Ends at the first one that is malformed, which `damaged` then tells.
#[derive(Debug)]
pub(super) struct Items<'a> {
    input: Decoder<'a>,
    damaged: bool,
}

impl<'a> Items<'a> {
    /// Reads the items that [`Item::encode`] wrote.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { input: Decoder::new("stat cache record", bytes), damaged: false }
    }

    /// Whether the end was not the end.
    pub(super) fn damaged(&self) -> bool {
        self.damaged
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.damaged || self.input.is_empty() {
            return None;
        }
        let item = Item::decode(&mut self.input);
        self.damaged = item.is_err();
        item.ok()
    }
}

/// The items with names before `name`, and the rest.
pub(super) fn split_at_name<'a>(items: &'a [u8], name: &[u8]) -> (&'a [u8], &'a [u8]) {
    let mut all = Items::new(items);
    loop {
        let left = all.input.rest().len();
        match all.next() {
            Some(item) if item.name < name => {}
            _ => return items.split_at(items.len() - left),
        }
    }
}

/// The items behind the first one, if that has this name.
pub(super) fn without_name<'a>(items: &'a [u8], name: &[u8]) -> &'a [u8] {
    let mut all = Items::new(items);
    match all.next() {
        Some(item) if item.name == name => all.input.rest(),
        _ => items,
    }
}

/// Puts a record together from its items, one after the other, and the directory's node.
pub(super) fn seal(mut items: Vec<u8>, node: &ObjectId) -> Vec<u8> {
    items.extend_from_slice(&node.0);
    items
}

/// A record's items and the directory's node.
pub(super) fn open(record: &[u8]) -> Option<(&[u8], ObjectId)> {
    let (items, node) = record.split_last_chunk()?;
    Some((items, ObjectId(*node)))
}

/// Appends what tells one state of a file from every other: two files, or one file at two times, with equal keys hold
/// the same, provided [`Settled`] held when they were read. No device number: it changes over remounts.
pub(super) fn key(stat: &Stat, out: &mut Encoder) {
    out.byte(match stat.kind {
        // What shows there belongs to the mount.
        FileKind::MountPoint => return,
        FileKind::File => 1,
        FileKind::Directory => 2,
        FileKind::Symlink => 3,
        FileKind::Fifo => 4,
        FileKind::Socket => 5,
        FileKind::CharDevice => 6,
        FileKind::BlockDevice => 7,
    });
    out.uint(stat.mode.into()).uint(stat.uid.into()).uint(stat.gid.into()).uint(stat.ino);
    // A directory's size is how its filesystem stores it.
    if stat.kind != FileKind::Directory {
        out.uint(stat.size);
    }
    for time in [stat.mtime, stat.ctime] {
        out.int(time.secs).uint(time.nanos.into());
    }
}

/// The key by itself.
pub(super) fn key_of(stat: &Stat) -> Vec<u8> {
    let mut out = Encoder::new();
    key(stat, &mut out);
    out.finish()
}

/// When a file's times prove that it did not change since it was read: a change in the same tick of the kernel's clock
/// as the reading would leave them as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    margin: i128,
}

const FINE: i128 = 20_000_000;
const COARSE: i128 = 2_000_000_000;

impl Settled {
    /// The rule for a filesystem with or without fine timestamps.
    pub(super) fn new(fine_timestamps: bool) -> Self {
        Self { margin: if fine_timestamps { FINE } else { COARSE } }
    }

    /// Whether a file with these times, read from `start` on, was at rest.
    pub(super) fn holds(self, stat: &Stat, start: WallTime) -> bool {
        // Whole seconds: an inode too small for more, on a filesystem that otherwise has them.
        let margin = if stat.ctime.nanos == 0 { COARSE } else { self.margin };
        [stat.mtime, stat.ctime].into_iter().all(|time| nanos(time) + margin <= start.0.into())
    }
}

fn nanos(time: Timestamp) -> i128 {
    i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stat_at(mtime: (i64, u32), ctime: (i64, u32)) -> Stat {
        let dir = std::fs::File::open("/").unwrap();
        let mut stat = crate::fs::stat_fd(&dir).unwrap();
        stat.kind = FileKind::File;
        stat.mtime = Timestamp { secs: mtime.0, nanos: mtime.1 };
        stat.ctime = Timestamp { secs: ctime.0, nanos: ctime.1 };
        stat
    }

    #[test]
    fn a_file_changed_less_than_the_margin_before_its_reading_is_not_settled() {
        let fine = Settled::new(true);
        let start = WallTime(100_000_000_000);
        assert!(fine.holds(&stat_at((99, 980_000_000), (99, 980_000_000)), start));
        assert!(!fine.holds(&stat_at((99, 980_000_001), (50, 1)), start));
        assert!(!fine.holds(&stat_at((50, 1), (99, 980_000_001)), start));
        let coarse = Settled::new(false);
        assert!(coarse.holds(&stat_at((98, 0), (98, 0)), start));
        assert!(!coarse.holds(&stat_at((98, 1), (98, 1)), start));
    }

    #[test]
    fn whole_seconds_are_not_trusted_to_be_fine() {
        let start = WallTime(100_500_000_000);
        assert!(!Settled::new(true).holds(&stat_at((10, 5), (100, 0)), start));
        assert!(Settled::new(true).holds(&stat_at((10, 5), (98, 0)), start));
    }

    #[test]
    fn every_part_of_a_key_tells_files_apart() {
        let base = stat_at((5, 6), (7, 8));
        let changes: [fn(&mut Stat); 9] = [
            |s| s.kind = FileKind::Fifo,
            |s| s.mode ^= 1,
            |s| s.uid += 1,
            |s| s.gid += 1,
            |s| s.ino += 1,
            |s| s.size += 1,
            |s| s.mtime.nanos += 1,
            |s| s.ctime.secs += 1,
            |s| s.ctime.nanos += 1,
        ];
        for change in changes {
            let mut other = base.clone();
            change(&mut other);
            assert_ne!(key_of(&base), key_of(&other));
        }
        let mut moved = base.clone();
        moved.dev.1 += 1;
        assert_eq!(key_of(&base), key_of(&moved));
    }

    prop_compose! {
        fn any_item()(name in prop::collection::vec(1u8..=255, 1..40), key in prop::collection::vec(any::<u8>(), 0..40), clean: bool, rest in prop::collection::vec(any::<u8>(), 0..80))
            -> (Vec<u8>, Vec<u8>, bool, Vec<u8>) {
            let mut entry = Encoder::new();
            entry.bytes(&name).raw(&rest);
            (name, key, clean, entry.finish())
        }
    }

    proptest! {
        #[test]
        fn a_record_gives_back_its_items(items in prop::collection::vec(any_item(), 0..20), node: [u8; 32]) {
            let items: Vec<Item<'_>> = items
                .iter()
                .map(|(name, key, clean, entry)| Item { name, key, clean: *clean, entry })
                .collect();
            let mut out = Encoder::new();
            items.iter().for_each(|item| item.encode(&mut out));
            let record = seal(out.finish(), &ObjectId(node));
            let (bytes, found) = open(&record).unwrap();
            let mut read = Items::new(bytes);
            prop_assert_eq!(read.by_ref().collect::<Vec<_>>(), items);
            prop_assert!(!read.damaged());
            prop_assert_eq!(found, ObjectId(node));
        }

        #[test]
        fn a_record_is_divided_at_a_name(names in prop::collection::btree_set("[a-c]{1,3}", 0..20), at in "[a-c]{1,3}") {
            let encode = |names: &mut dyn Iterator<Item = &String>| {
                let mut out = Encoder::new();
                for name in names {
                    let mut entry = Encoder::new();
                    entry.bytes(name.as_bytes());
                    let entry = entry.finish();
                    Item { name: name.as_bytes(), key: b"k", clean: true, entry: &entry }.encode(&mut out);
                }
                out.finish()
            };
            let all = encode(&mut names.iter());
            let (before, behind) = split_at_name(&all, at.as_bytes());
            prop_assert_eq!(before, encode(&mut names.iter().filter(|name| **name < at)));
            prop_assert_eq!(behind, encode(&mut names.iter().filter(|name| **name >= at)));
            prop_assert_eq!(without_name(behind, at.as_bytes()), encode(&mut names.iter().filter(|name| **name > at)));
        }

        #[test]
        fn bytes_that_are_no_record_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some((items, _)) = open(&bytes) {
                for item in Items::new(items) {
                    let _ = item.decode_entry();
                }
            }
        }
    }
}
