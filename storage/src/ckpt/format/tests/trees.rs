//! Building, reading, comparing and changing trees.

use std::collections::BTreeMap;
use std::slice::from_ref;

use proptest::prelude::*;
use proptest::sample::Index;

use super::testing::MemoryObjects;
use super::*;
use crate::ckpt::error::{Error, Result};
use crate::path::RelPath;

fn many(count: u64) -> Vec<Entry> {
    (0..count).map(|n| file(format!("file-{n:07}.txt"), 0)).collect()
}

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn read(source: &dyn ObjectSource, root: ObjectId) -> Vec<Entry> {
    Tree::new(source, root).entries().collect::<Result<_>>().unwrap()
}

fn all_deltas(source: &dyn ObjectSource, old: &ObjectId, new: &ObjectId) -> Vec<Delta> {
    let mut deltas = Vec::new();
    let mut visit = |delta: &Delta| {
        deltas.push(delta.clone());
        Ok(Visit::Inside)
    };
    diff_trees(source, old, new, &mut visit).unwrap();
    deltas
}

#[test]
fn an_empty_directory_is_one_empty_leaf() {
    let objects = MemoryObjects::new();
    let root = write(&objects, &[]);
    assert_eq!(&*objects.get(ObjectKind::Node, &root).unwrap(), [0]);
    assert_eq!(read(&objects, root), []);
    assert_eq!(Tree::new(&objects, root).entry(&name("a")).unwrap(), None);
}

#[test]
fn names_out_of_order_are_refused() {
    let objects = MemoryObjects::new();
    for second in ["a", "b"] {
        let mut writer = NodeWriter::new(&objects);
        writer.push(&file("b", 0)).unwrap();
        assert!(writer.push(&file(second, 0)).is_err());
    }
}

#[test]
fn a_big_directory_comes_back_whole_and_every_entry_is_found() {
    let objects = MemoryObjects::new();
    let entries = many(20_000);
    let root = write(&objects, &entries);
    assert!((40..160).contains(&objects.len()), "{} nodes", objects.len());
    assert_eq!(read(&objects, root), entries);

    let tree = Tree::new(&objects, root);
    let before = objects.gets();
    for entry in entries.iter().step_by(997) {
        assert_eq!(tree.entry(&entry.name).unwrap().as_ref(), Some(entry));
    }
    assert!(objects.gets() - before <= 3 * 21);
    for absent in ["a", "file-0010000", "z"] {
        assert_eq!(tree.entry(&name(absent)).unwrap(), None);
    }
}

#[test]
fn reading_the_first_entry_of_a_big_directory_reads_one_leaf() {
    let objects = MemoryObjects::new();
    let root = write(&objects, &many(20_000));
    let mut entries = Tree::new(&objects, root).entries();
    entries.next().unwrap().unwrap();
    assert!(objects.gets() <= 3, "{} nodes read", objects.gets());
}

#[test]
fn a_change_in_a_flat_directory_of_200_000_entries_costs_a_few_nodes() {
    let objects = MemoryObjects::new();
    let mut entries = many(200_000);
    let old = write(&objects, &entries);
    let nodes = objects.len();

    let at = |n: u64| usize::try_from(n * 19_999 + 7).unwrap();
    for n in 0..4 {
        entries[at(n)] = file(entries[at(n)].name.as_bytes(), 1);
    }
    for n in 4..7 {
        entries.push(file(format!("file-{:07}x", at(n)), 1));
    }
    let removed: Vec<Name> = (7..10).map(|n| entries[at(n)].name.clone()).collect();
    entries.retain(|entry| !removed.contains(&entry.name));
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let new = write(&objects, &entries);
    assert!(objects.len() - nodes <= 40, "{} new nodes", objects.len() - nodes);

    let before = objects.gets();
    let deltas = all_deltas(&objects, &old, &new);
    assert_eq!(deltas.len(), 10);
    assert!(objects.gets() - before <= 80, "{} nodes read", objects.gets() - before);

    let changes: BTreeMap<_, _> = deltas.into_iter().map(|delta| (delta.path, delta.new)).collect();
    let (gets, puts) = (objects.gets(), objects.puts());
    assert_eq!(rewrite_tree(&objects, &objects, &old, &changes).unwrap(), new);
    assert!(objects.gets() - gets <= 40, "{} nodes read", objects.gets() - gets);
    assert!(objects.puts() - puts <= 40, "{} nodes written", objects.puts() - puts);
}

#[test]
fn names_that_all_ask_for_a_boundary_or_none_still_make_a_bounded_tree() {
    let objects = MemoryObjects::new();
    let all = (0u64..).map(|n| file(format!("{n:09}"), 0));
    let (greedy, shy): (Vec<_>, Vec<_>) =
        all.take(300_000).partition(|entry| node::ends_node(0, 16, 0, entry.name.as_bytes()));
    for entries in [&greedy[..], &shy[..10_000]] {
        assert_eq!(read(&objects, write(&objects, entries)), entries);
    }
    assert!(objects.len() <= greedy.len() / 16 + 16, "{} nodes", objects.len());
}

#[test]
fn long_attributes_end_a_node_early() {
    let objects = MemoryObjects::new();
    let entries: Vec<Entry> = (0..100)
        .map(|n| {
            let mut entry = file(format!("{n:03}"), 0);
            entry.meta.xattrs = Box::new([(b"user.long"[..].into(), vec![n; 60_000].into())]);
            entry
        })
        .collect();
    let root = write(&objects, &entries);
    assert!(objects.len() >= 6);
    assert_eq!(read(&objects, root), entries);
}

#[test]
fn a_lookup_follows_directories_and_nothing_else() {
    let objects = MemoryObjects::new();
    let inner = write(&objects, &[file("c", 1)]);
    let unlisted = Entry { kind: EntryKind::Directory(None), ..directory("u", inner) };
    let root = write(&objects, &[directory("a", inner), file("f", 2), unlisted]);
    let tree = Tree::new(&objects, root);
    assert_eq!(tree.lookup(&path("a/c")).unwrap(), Some(file("c", 1)));
    assert_eq!(tree.lookup(&path("f")).unwrap(), Some(file("f", 2)));
    for absent in ["", "b", "f/c", "a/c/d", "u/c"] {
        assert_eq!(tree.lookup(&path(absent)).unwrap(), None, "{absent}");
    }
}

#[test]
fn a_diff_names_a_directory_before_its_content_and_leaves_out_what_is_passed_over() {
    let objects = MemoryObjects::new();
    let (one, two) = (write(&objects, &[file("x", 1), file("y", 1)]), write(&objects, &[file("x", 2)]));
    let old =
        write(&objects, &[directory("a", one), directory("gone", one), file("same", 1), file("to-dir", 1)]);
    let new = write(
        &objects,
        &[directory("a", two), directory("new", two), file("same", 1), directory("to-dir", two)],
    );
    let visited = |over: &str| {
        let mut paths = Vec::new();
        let mut visit = |delta: &Delta| {
            paths.push(delta.path.to_string());
            Ok(if delta.path == path(over) { Visit::Over } else { Visit::Inside })
        };
        diff_trees(&objects, &old, &new, &mut visit).unwrap();
        paths
    };
    let all = ["a", "a/x", "a/y", "gone", "gone/x", "gone/y", "new", "new/x", "to-dir", "to-dir/x"];
    assert_eq!(visited(""), all);
    assert_eq!(visited("gone"), [&all[..4], &all[6..]].concat());
}

#[test]
fn nothing_is_said_about_the_inside_of_a_directory_that_could_not_be_listed() {
    let objects = MemoryObjects::new();
    let listed = directory("a", write(&objects, &[file("x", 1)]));
    let unlisted = Entry { kind: EntryKind::Directory(None), ..listed.clone() };
    let (old, new) = (write(&objects, from_ref(&listed)), write(&objects, from_ref(&unlisted)));
    let delta = Delta { path: path("a"), old: Some(listed), new: Some(unlisted) };
    assert_eq!(all_deltas(&objects, &old, &new), [delta]);
}

#[test]
fn a_tree_a_thousand_directories_deep_is_compared_and_changed() {
    let objects = MemoryObjects::new();
    let nest = |version| {
        (0..1000).fold(write(&objects, &[file("leaf", version)]), |node, _| {
            write(&objects, &[directory("d", node)])
        })
    };
    let (old, new) = (nest(1), nest(2));
    let deltas = all_deltas(&objects, &old, &new);
    assert_eq!(deltas.len(), 1001);
    let last = deltas.into_iter().next_back().unwrap();
    let changes = BTreeMap::from([(last.path, last.new)]);
    assert_eq!(rewrite_tree(&objects, &objects, &old, &changes).unwrap(), new);
}

#[test]
fn a_missing_node_and_a_node_in_the_wrong_place_are_damage() {
    let objects = MemoryObjects::new();
    let entries = many(2_000);
    let root = write(&objects, &entries);
    let bytes = objects.get(ObjectKind::Node, &root).unwrap();

    // The same root with its first two children's ids exchanged.
    let leaf = |names: &[Entry]| write(&MemoryObjects::new(), names);
    let node::Node::Inner(_, children) = node::Node::decode(&bytes).unwrap() else { panic!("one leaf") };
    let (one, two) = (children[0].id, children[1].id);
    assert_eq!(one, leaf(&entries[..children[0].entries as usize]));
    let mut swapped = bytes.to_vec();
    for (from, to) in [(one, two), (two, one)] {
        let at = bytes.windows(32).position(|window| window == from.0).unwrap();
        swapped[at..at + 32].copy_from_slice(&to.0);
    }
    let swapped = objects.put(ObjectKind::Node, &swapped).unwrap();
    let first = Tree::new(&objects, swapped).entries().collect::<Result<Vec<_>>>();
    assert!(matches!(first, Err(Error::Corrupt(_))));

    objects.lose(&two);
    let tree = Tree::new(&objects, root);
    let missing: Vec<_> = tree.entries().collect();
    assert!(matches!(missing.last(), Some(Err(Error::Corrupt(_)))));
    assert_eq!(missing.len() as u64, children[0].entries + 1);
}

#[test]
fn a_change_below_something_that_is_no_directory_is_refused() {
    let objects = MemoryObjects::new();
    let root = write(&objects, &[file("f", 1)]);
    let put = |at: &str, entry| rewrite_tree(&objects, &objects, &root, &BTreeMap::from([(path(at), entry)]));
    assert!(put("f/x", Some(file("x", 1))).is_err());
    assert!(put("", Some(file("x", 1))).is_err());
    assert!(put("x", Some(file("y", 1))).is_err());
    assert_eq!(put("f/x", None).unwrap(), root);
    assert_eq!(put("gone", None).unwrap(), root);
}

/// A tree as a test thinks of it.
#[derive(Clone, Debug, PartialEq)]
enum Model {
    File(u64),
    Directory(BTreeMap<String, Model>),
}

type Names = BTreeMap<String, Model>;

fn store(objects: &MemoryObjects, names: &Names) -> ObjectId {
    let mut entries: Vec<Entry> = names
        .iter()
        .map(|(name, model)| match model {
            Model::File(version) => file(name, *version),
            Model::Directory(inside) => directory(name, store(objects, inside)),
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    write(objects, &entries)
}

fn flatten(objects: &MemoryObjects, names: &Names, below: &RelPath, out: &mut Vec<(RelPath, Entry)>) {
    for (text, model) in names {
        let path = below.join(&name(text));
        match model {
            Model::File(version) => out.push((path, file(text, *version))),
            Model::Directory(inside) => {
                out.push((path.clone(), directory(text, store(objects, inside))));
                flatten(objects, inside, &path, out);
            }
        }
    }
}

/// Every path whose entries differ, found the slow way.
fn naive(
    objects: &MemoryObjects,
    old: &Names,
    new: &Names,
) -> BTreeMap<RelPath, (Option<Entry>, Option<Entry>)> {
    let mut all: BTreeMap<RelPath, (Option<Entry>, Option<Entry>)> = BTreeMap::new();
    for (names, is_new) in [(old, false), (new, true)] {
        let mut flat = Vec::new();
        flatten(objects, names, &RelPath::ROOT, &mut flat);
        for (path, entry) in flat {
            let both = all.entry(path).or_default();
            *if is_new { &mut both.1 } else { &mut both.0 } = Some(entry);
        }
    }
    all.retain(|_, (old, new)| old != new);
    all
}

/// Short names, so that two trees share many; now and then a directory of several nodes.
fn any_names() -> impl Strategy<Value = Names> {
    let leaf = (0..3u64).prop_map(Model::File);
    let wide = (0..3000u64, 0..3u64).prop_map(|(count, version)| {
        let inside = (0..count).map(|n| (format!("w{n:04}"), Model::File(u64::from(n % 700 == 0) * version)));
        Model::Directory(inside.collect())
    });
    let model = leaf.prop_recursive(3, 60, 6, move |inner| {
        prop_oneof![
            8 => proptest::collection::btree_map("[a-d]{1,2}", inner, 0..6).prop_map(Model::Directory),
            1 => wide.clone(),
        ]
    });
    proptest::collection::btree_map("[a-d]{1,2}", model, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_finds_exactly_what_comparing_every_path_finds((old, new) in (any_names(), any_names())) {
        let objects = MemoryObjects::new();
        let deltas = all_deltas(&objects, &store(&objects, &old), &store(&objects, &new));
        let mut found = BTreeMap::new();
        for (index, delta) in deltas.iter().enumerate() {
            // A directory comes before what is in it.
            let (parent, _) = delta.path.split().unwrap();
            let known = deltas[..index].iter().any(|before| before.path == parent);
            prop_assert!(parent.is_root() || known);
            prop_assert!(found.insert(delta.path.clone(), (delta.old.clone(), delta.new.clone())).is_none());
        }
        prop_assert_eq!(found, naive(&objects, &old, &new));
    }

    #[test]
    fn changing_a_tree_gives_the_tree_that_building_it_anew_gives((old, new) in (any_names(), any_names())) {
        let objects = MemoryObjects::new();
        let (from, to) = (store(&objects, &old), store(&objects, &new));
        // Only what the outermost paths need: a new directory brings its inside along.
        let mut changes = BTreeMap::new();
        let mut visit = |delta: &Delta| {
            let both = matches!(
                (&delta.old, &delta.new),
                (Some(Entry { kind: EntryKind::Directory(_), .. }), Some(Entry { kind: EntryKind::Directory(_), .. }))
            );
            if !both {
                changes.insert(delta.path.clone(), delta.new.clone());
            }
            Ok(if both { Visit::Inside } else { Visit::Over })
        };
        diff_trees(&objects, &from, &to, &mut visit).unwrap();
        prop_assert_eq!(rewrite_tree(&objects, &objects, &from, &changes).unwrap(), to);
    }

    #[test]
    fn equal_directories_are_equal_nodes_whatever_their_history(
        (size, edits) in (0usize..6000, proptest::collection::vec((any::<Index>(), 1usize..400, 0..3u64), 1..6)),
    ) {
        let objects = MemoryObjects::new();
        let mut entries: BTreeMap<Name, Entry> =
            many(size as u64).into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        let mut root = write(&objects, &entries.values().cloned().collect::<Vec<_>>());
        for (at, run, version) in edits {
            // A run of neighbours goes, changes, or gets neighbours of its own.
            let from = at.index(entries.len() + 1);
            let names: Vec<Name> = entries.keys().skip(from).take(run).cloned().collect();
            let changes: BTreeMap<Name, Option<Entry>> = match version {
                0 => names.into_iter().map(|name| (name, None)).collect(),
                1 => names.into_iter().map(|name| (name.clone(), Some(file(name.as_bytes(), 1)))).collect(),
                _ => (0..run)
                    .map(|n| file(format!("file-{from:07}.txt-{n:03}"), 2))
                    .map(|entry| (entry.name.clone(), Some(entry)))
                    .collect(),
            };
            for (name, entry) in &changes {
                match entry {
                    Some(entry) => entries.insert(name.clone(), entry.clone()),
                    None => entries.remove(name),
                };
            }
            let changes = changes.into_iter().map(|(name, entry)| (RelPath::ROOT.join(&name), entry)).collect();
            root = rewrite_tree(&objects, &objects, &root, &changes).unwrap();
            let anew = write(&objects, &entries.values().cloned().collect::<Vec<_>>());
            prop_assert_eq!(root, anew);
        }
        prop_assert_eq!(read(&objects, root), entries.into_values().collect::<Vec<_>>());
    }
}

/// Entries of a tree of three levels with as few of them as possible: one full node of full leaves on level 1,
/// and behind it another with a leaf or two.
fn tall() -> Vec<Entry> {
    let mut names = (0u64..).map(|n| format!("{n:09}"));
    let ends = |level, name: &String| node::ends_node(level, 16, 0, name.as_bytes());
    let mut entries = Vec::new();
    for leaf in 1..=16 {
        entries.extend(names.by_ref().take(15).map(|name| file(name, 0)));
        let last = names.find(|name| ends(0, name) && ends(1, name) == (leaf == 16));
        entries.extend(last.map(|name| file(name, 0)));
    }
    entries.extend(names.filter(|name| !ends(0, name)).take(15).map(|name| file(name, 0)));
    entries
}

#[test]
fn removing_any_part_of_a_tall_tree_gives_the_tree_that_building_it_anew_gives() {
    let objects = MemoryObjects::new();
    let all = tall();
    let root = write(&objects, &all);
    let node::Node::Inner(2, top) = node::Node::load(&objects, &root).unwrap() else { panic!("not tall") };
    assert_eq!(top.iter().map(|child| child.entries).collect::<Vec<_>>(), [256, 15]);

    let cuts: Vec<usize> =
        (0..=all.len()).filter(|at| [0, 1, 31].contains(&(at % 32)) || *at == all.len()).collect();
    for (index, from) in cuts.iter().enumerate() {
        for to in &cuts[index..] {
            let gone = all[*from..*to].iter().map(|entry| (RelPath::ROOT.join(&entry.name), None)).collect();
            let kept = [&all[..*from], &all[*to..]].concat();
            let changed = rewrite_tree(&objects, &objects, &root, &gone).unwrap();
            assert_eq!(changed, write(&objects, &kept), "{from}..{to}");
            assert_eq!(all_deltas(&objects, &root, &changed).len(), to - from);
        }
    }
}

#[test]
fn a_node_that_is_not_what_its_parent_says_is_damage() {
    let objects = MemoryObjects::new();
    let (one, two) = (write(&objects, &[file("a", 1), file("b", 1)]), write(&objects, &[file("c", 1)]));
    let parent = |level, children: &[(&str, ObjectId, u64)]| {
        let mut out = Encoder::new();
        out.byte(level);
        for (last, id, entries) in children {
            node::Child { last: name(last), id: *id, entries: *entries }.encode(&mut out);
        }
        objects.put(ObjectKind::Node, out.as_slice()).unwrap()
    };
    let is_sound = |root| {
        let walked = Tree::new(&objects, root).entries().collect::<Result<Vec<_>>>();
        let compared = diff_trees(&objects, &one, &root, &mut |_| Ok(Visit::Inside));
        assert_eq!(walked.is_ok(), compared.is_ok());
        walked.is_ok()
    };
    let empty = write(&objects, &[]);
    let sound = parent(1, &[("b", one, 2), ("c", two, 1)]);
    assert!(is_sound(sound));
    assert!(is_sound(parent(2, &[("c", sound, 3)])));
    for bad in [
        // Another last name, number of entries, level; names that belong before the parent's boundary.
        parent(1, &[("bb", one, 2), ("c", two, 1)]),
        parent(1, &[("b", one, 1), ("c", two, 1)]),
        parent(2, &[("b", one, 2), ("c", two, 1)]),
        parent(3, &[("c", sound, 3)]),
        parent(1, &[("aa", write(&objects, &[file("aa", 1)]), 1), ("b", one, 2)]),
        parent(2, &[("b", parent(1, &[("b", one, 2)]), 2), ("c", sound, 3)]),
        parent(1, &[("b", empty, 1), ("c", two, 1)]),
        parent(1, &[("b", one, 2), ("c", two, u64::MAX)]),
    ] {
        assert!(!is_sound(bad));
    }
}
