//! A small project that looks like a real one, and what people do to it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files;

/// A second in the past, so that nothing of the project looks as if it were being written.
const LONG_AGO: i64 = 1_600_000_000;

/// Makes a project at `root` with every kind of file an ordinary user can make.
pub fn make(root: &Path) {
    files::mkdir(root);
    files::write(root.join("README.md"), "# A project\n\nIt has some text.\n");
    files::write(root.join("empty"), "");
    files::write(root.join("with a blank.txt"), "blank\n");
    files::write(root.join("-rf"), "a name like a flag\n");
    files::write(root.join("new\nline"), "a name with a newline\n");
    files::write(root.join(OsStr::from_bytes(b"not-utf8-\xff\xfe")), "bytes are names\n");
    files::write(root.join("n".repeat(255)), "the longest name\n");
    files::write(root.join("日本語/ファイル"), "unicode\n");
    files::write(root.join("build.sh"), "#!/bin/sh\necho built\n");
    files::chmod(root.join("build.sh"), 0o755);
    files::write(root.join("secret"), "only mine\n");
    files::chmod(root.join("secret"), 0o600);
    for module in 0..12 {
        for file in 0..6 {
            let name = root.join(format!("src/module{module}/file{file}.rs"));
            files::write(name, format!("// module {module}, file {file}\n").repeat(10 + file));
        }
    }
    files::write(root.join("big.bin"), noise(700 * 1024));
    files::sparse(root.join("sparse.img"), 8 << 20, &[(0, b"head"), (5 << 20, b"middle")]);
    files::mkdir(root.join("empty-dir/nested/deeper"));
    files::symlink("src/module0/file0.rs", root.join("link"));
    files::symlink("../outside/of/it", root.join("dangling"));
    files::symlink("src", root.join("link-to-dir"));
    files::write(root.join("hard/one"), "linked three times\n");
    files::hard_link(root.join("hard/one"), root.join("hard/two"));
    files::hard_link(root.join("hard/one"), root.join("src/three"));
    files::fifo(root.join("pipe"));
    files::socket(root.join("socket"));
    files::write(root.join("node_modules/.cache/vendor/index.js"), "module.exports = 1\n");
    files::write(root.join("read-only/sealed"), "in a directory nobody may write\n");
    let _ = files::set_xattr(root.join("README.md"), "user.origin", b"somewhere\0else");
    git(root);
    age(root);
    files::chmod(root.join("read-only"), 0o555);
    files::set_mtime(root.join("read-only"), LONG_AGO, 987_654_321);
}

/// What a bad day does to a project made by [`make`]: edits of equal length, deletions, renames, files where
/// directories were and the other way round, changed modes, broken links.
pub fn break_it(root: &Path) {
    // The same length, and the time set back: only content and ctime tell.
    let edited = root.join("src/module1/file1.rs");
    let text = String::from_utf8(files::read(&edited)).unwrap().replace("module 1", "MODULE 1");
    files::write(&edited, text);
    files::set_mtime(&edited, LONG_AGO, 1);
    files::append(root.join("README.md"), "appended\n");
    files::remove(root.join("src/module2"));
    files::remove(root.join("empty-dir"));
    files::remove(root.join("secret"));
    files::mkdir(root.join("secret/now/a/directory"));
    files::remove(root.join("src/module3"));
    files::write(root.join("src/module3"), "now a file\n");
    files::remove(root.join("link"));
    files::symlink("/etc/passwd", root.join("link"));
    files::remove(root.join("link-to-dir"));
    files::mkdir(root.join("link-to-dir"));
    files::write(root.join("link-to-dir/inside"), "x");
    files::rename(root.join("src/module4"), root.join("moved"));
    // An editor's save: another file under the same name.
    files::write(root.join("build.sh~"), "#!/bin/sh\necho broken\n");
    files::rename(root.join("build.sh~"), root.join("build.sh"));
    files::chmod(root.join("src/module5/file0.rs"), 0o444);
    files::chmod(root.join("src/module6"), 0o711);
    files::remove(root.join("hard/two"));
    files::write(root.join("hard/two"), "linked three times\n");
    files::write(root.join("hard/one"), "and so its twin in src says the same\n");
    files::remove(root.join("pipe"));
    files::write(root.join("big.bin"), noise(300 * 1024));
    files::write(root.join("brand/new/file"), "new\n");
    files::remove(root.join(OsStr::from_bytes(b"not-utf8-\xff\xfe")));
    files::write(root.join(OsStr::from_bytes(b"other-\xf0")), "also bytes\n");
    files::chmod(root.join("read-only"), 0o755);
    files::remove(root.join("read-only/sealed"));
    files::mkdir(root.join("made-empty"));
}

/// Paths below a project's root that [`break_it`] leaves alone, and everything above which does, too.
pub const UNTOUCHED: &[&str] = &[
    "src/module0/file0.rs",
    "src/module11",
    "src/module11/file5.rs",
    "sparse.img",
    "empty",
    "node_modules",
    "-rf",
];

/// Bytes that do not compress, the same for the same length.
pub fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&len.to_le_bytes());
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

/// Makes `root` a git repository with a commit; without git, directories that look like one.
fn git(root: &Path) {
    let run = |arguments: &[&str]| {
        Command::new("git")
            .arg("-C")
            .arg(root)
            .args([
                "-c",
                "user.name=Somebody",
                "-c",
                "user.email=somebody@example.org",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(["-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"])
            .args(arguments)
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !(run(&["init", "-q"]) && run(&["add", "README.md", "src"]) && run(&["commit", "-q", "-m", "first"])) {
        files::remove(root.join(".git"));
        files::write(root.join(".git/HEAD"), "ref: refs/heads/main\n");
        files::write(root.join(".git/objects/ab/cdef"), noise(200));
        files::chmod(root.join(".git/objects/ab/cdef"), 0o444);
    }
}

/// Gives everything its own time in the past, directories after what they hold.
fn age(root: &Path) {
    fn visit(path: &Path, count: &mut i64) {
        if std::fs::symlink_metadata(path).unwrap().is_dir() {
            let mut entries: Vec<PathBuf> =
                std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
            entries.sort();
            for entry in entries {
                visit(&entry, count);
            }
        }
        *count += 1;
        files::set_mtime(path, LONG_AGO + *count * 61, (*count * 7_654_321) % 1_000_000_000);
    }
    visit(root, &mut 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn breaking_a_project_changes_it_and_spares_what_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        make(&root);
        let before = Tree::read(&root);
        break_it(&root);
        let after = Tree::read(&root);
        assert!(before.differences(&after).len() > 30);
        for path in UNTOUCHED {
            assert_eq!(before.get(path).unwrap(), after.get(path).unwrap(), "{path}");
        }
        files::remove(&root);
    }
}
