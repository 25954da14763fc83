//! Any export of any tree over any tree, undone.

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::*;

/// A file somewhere in a tree.
#[derive(Clone, Debug)]
struct File {
    path: Vec<&'static str>,
    text: Vec<u8>,
    mode: u32,
    linked: bool,
    open: bool,
}

const NAMES: [&str; 7] = ["a", "b.txt", ".env", "x.tar.gz", "größe 日本", " ", "-n\n*"];

fn file() -> impl Strategy<Value = File> {
    let path = prop::collection::vec(prop::sample::select(&NAMES[..]), 1..4);
    let text =
        prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u8>(), 0..100), Just(vec![7; 300_000])];
    let mode = prop::sample::select(vec![0o600, 0o644, 0o444, 0o755, 0o400]);
    (path, text, mode, prop::bool::weighted(0.2), prop::bool::weighted(0.2))
        .prop_map(|(path, text, mode, linked, open)| File { path, text, mode, linked, open })
}

/// Makes the files, as far as they do not contradict each other; gives those that somebody is writing to.
fn make(lab: &Lab, root: &Path, tree: &[File]) -> Vec<std::fs::File> {
    let mut open = Vec::new();
    for (n, file) in tree.iter().enumerate() {
        let path = file.path.iter().fold(root.to_owned(), |at, name| at.join(name));
        let blocked = path.exists() || path.ancestors().any(|at| at.is_file());
        if blocked {
            continue;
        }
        files::write(&path, &file.text);
        if file.linked {
            files::mkdir(lab.at("links"));
            let link = lab.at("links").join(format!("{}-{n}", root.file_name().unwrap().display()));
            files::hard_link(&path, link);
        }
        if file.open {
            open.push(std::fs::File::options().append(true).open(&path).unwrap());
        }
        files::chmod(&path, file.mode);
    }
    let mut dirs = Tree::new();
    read(root, "", &mut dirs);
    // The innermost first: to set a time changes no other.
    for (n, (path, _)) in dirs.iter().rev().enumerate() {
        files::set_mtime(root.join(path.trim_start_matches('/')), 1_000_000 + n as i64, 123);
    }
    open
}

proptest! {
    #![proptest_config(Config { cases: 150, failure_persistence: None, ..Config::default() })]

    #[test]
    fn export_then_undo_gives_back_the_target_and_the_source(
        task in prop::collection::vec(file(), 1..12),
        target in prop::collection::vec(file(), 0..12),
        entries in prop::collection::vec(prop::sample::select(&NAMES[..]), 0..4),
        conflict in prop::sample::select(vec![ConflictMode::Overwrite, ConflictMode::Skip, ConflictMode::Rename]),
        mode in prop::sample::select(vec![ExportMode::Copy, ExportMode::Move]),
    ) {
        let mut lab = Lab::new();
        let (source, sink) = (lab.at("root/task"), lab.at("target"));
        let _open = (make(&lab, &source, &task), make(&lab, &sink, &target));
        let before = (lab.tree("root/task"), lab.tree("target"));
        let mut entries: Vec<&str> =
            entries.into_iter().filter(|name| source.join(name).exists()).collect();
        if entries.is_empty() {
            entries.push(".");
        }
        let request = ExportRequest { conflict, mode, ..lab.request(&entries) };
        let record = lab.run(request);
        for item in record.items.iter().filter(|item| item.status == Status::Ok) {
            prop_assert_eq!(&item.hash, &blake3::hash(&files::read(&item.dst)).to_hex().to_string());
            prop_assert_eq!(Path::new(&item.src).exists(), mode == ExportMode::Copy);
        }
        let can_undo = record.items.iter().any(|item| item.status == Status::Ok);
        let undone = lab.undo();
        prop_assert!(undone.conflicts.is_empty(), "{:?}", undone.conflicts);
        prop_assert_eq!(undone.export.undone_at > 0, can_undo);
        prop_assert_eq!(lab.tree("target"), before.1);
        prop_assert_eq!(lab.tree("root/task"), before.0);
    }
}
