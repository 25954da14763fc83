//! What ARCHITECTURE.md says must never be, as far as a program can tell by reading the repository.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "reads the repository, not a user's disk")]

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};
use cofferdam_tests::skip;

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Our crates, each with those of ours that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("cofferdam-protocol", &[]),
    ("cofferdam-storage", &["cofferdam-protocol"]),
    ("cofferdam-actors", &["cofferdam-protocol", "cofferdam-storage"]),
    ("cofferdam-web", &["cofferdam-protocol", "cofferdam-storage", "cofferdam-actors"]),
    ("cofferdam", &["cofferdam-protocol", "cofferdam-storage", "cofferdam-actors", "cofferdam-web"]),
    ("cofferdam-tests", &["cofferdam-protocol"]),
];

/// Crates that a layer must not contain, however deep.
const FOREIGN: &[(&str, &[&str])] = &[
    // Wire types: no I/O, no actors, no clock.
    ("cofferdam-protocol", &["actix", "actix-rt", "actix-web", "diesel", "libsqlite3-sys", "nix", "rustix"]),
    // Synchronous, with no idea of a transport.
    ("cofferdam-storage", &["actix", "actix-rt", "actix-web", "hyper", "clap"]),
    // Actors translate nothing.
    ("cofferdam-actors", &["actix-web", "hyper", "clap"]),
];

/// What cargo knows of this workspace on this platform; `None` where cargo cannot be run.
fn metadata() -> Option<Metadata> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let options = ["--locked", "--offline", "--filter-platform", &platform].map(str::to_owned).to_vec();
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).other_options(options).exec().ok()
}

/// Every package that a build of `start` for its users compiles: no dev-dependencies.
fn closure<'m>(metadata: &'m Metadata, start: &str) -> HashSet<&'m str> {
    let names: HashMap<&PackageId, &str> =
        metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
    let nodes: HashMap<_, _> =
        metadata.resolve.as_ref().unwrap().nodes.iter().map(|node| (&node.id, node)).collect();
    let first = metadata.packages.iter().find(|package| package.name == start).unwrap();
    let mut found = HashSet::new();
    let mut left = vec![&first.id];
    while let Some(id) = left.pop() {
        let dependencies = nodes[id].deps.iter().filter(|dependency| {
            dependency.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
        });
        for dependency in dependencies {
            if found.insert(names[&dependency.pkg]) {
                left.push(&dependency.pkg);
            }
        }
    }
    found
}

#[test]
fn dependencies_point_from_the_programs_to_the_protocol_and_never_back() {
    let Some(metadata) = metadata() else { skip!("cargo cannot be run here; root's run looks at this") };
    let ours: HashSet<_> = LAYERS.iter().map(|(name, _)| *name).collect();
    let members: HashSet<_> =
        metadata.workspace_packages().iter().map(|package| package.name.as_str()).collect();
    assert_eq!(members, ours, "a crate was added or removed: say here what it may depend on");
    for (layer, allowed) in LAYERS {
        for dependency in closure(&metadata, layer).intersection(&ours) {
            assert!(allowed.contains(dependency), "{layer} must not depend on {dependency}");
        }
    }
}

#[test]
fn each_layer_is_free_of_what_belongs_to_the_layers_above() {
    let Some(metadata) = metadata() else { skip!("cargo cannot be run here; root's run looks at this") };
    for (layer, foreign) in FOREIGN {
        let within = closure(&metadata, layer);
        for package in *foreign {
            assert!(!within.contains(package), "{layer} must not contain {package}");
        }
    }
    // tokio-util's codec brings the crate tokio along; a runtime it must not bring.
    let protocol = metadata.packages.iter().find(|package| package.name == "cofferdam-protocol").unwrap();
    assert!(protocol.dependencies.iter().all(|dependency| dependency.name != "tokio"));
}

#[test]
fn the_top_of_the_repository_holds_only_what_the_layout_names() {
    let allowed: BTreeSet<_> = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "actors",
        "bin",
        "clippy.toml",
        "deny.toml",
        "protocol",
        "rustfmt.toml",
        "storage",
        "target",
        "tests",
        "web",
    ]
    .into();
    for entry in std::fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || allowed.contains(name.as_str()), "{name} has no place at the top");
    }
}

#[test]
fn a_file_of_code_is_short_enough_to_be_read() {
    const MOST: usize = 700;
    let long: Vec<_> = sources()
        .into_iter()
        .map(|path| (text(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > MOST)
        .map(|(lines, path)| format!("{}: {lines} lines", shown(&path)))
        .collect();
    assert!(long.is_empty(), "split by idea what has more than {MOST} lines:\n{}", long.join("\n"));
}

#[test]
fn a_file_of_code_says_first_what_it_is_for() {
    for path in sources() {
        let text = text(&path);
        let first = text.lines().next().unwrap_or("");
        assert!(
            first.starts_with("//! ") || first.starts_with("// "),
            "{} begins with {first:?}",
            shown(&path)
        );
    }
}

#[test]
fn only_one_module_knows_bincode() {
    assert_eq!(files_with("bincode::"), ["protocol/src/ckpt/codec.rs"]);
}

#[test]
fn unsafe_code_is_in_one_module_and_every_block_says_why_it_is_sound() {
    assert_eq!(files_with("allow(unsafe_code"), ["storage/src/sys.rs"]);
    let text = text(&root().join("storage/src/sys.rs"));
    let lines: Vec<_> = text.lines().collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("unsafe {")) {
        let above = lines[..at].iter().rev().take_while(|line| line.trim().starts_with("//"));
        let explained = line.contains("SAFETY") || above.into_iter().any(|line| line.contains("SAFETY"));
        assert!(explained, "storage/src/sys.rs:{}: no SAFETY line above", at + 1);
    }
}

#[test]
fn no_test_is_ignored() {
    // Written in two pieces, or this file would find itself.
    assert_eq!(files_with(concat!("#[", "ignore")), Vec::<String>::new());
}

/// Our Rust files that hold `what` outside of comments.
fn files_with(what: &str) -> Vec<String> {
    let here = root().join("tests/tests/invariants.rs");
    sources()
        .into_iter()
        .filter(|path| *path != here)
        .filter(|path| text(path).lines().any(|line| !line.trim().starts_with("//") && line.contains(what)))
        .map(|path| shown(&path))
        .collect()
}

/// Every Rust file of ours.
fn sources() -> Vec<PathBuf> {
    fn visit(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for part in ["protocol", "storage", "actors", "web", "bin", "tests"] {
        visit(&root().join(part), &mut found);
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}
