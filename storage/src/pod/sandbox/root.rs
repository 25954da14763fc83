//! What a sandbox root may be called, and where that leads.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use cofferdam_protocol::pod::RootRefusal;

use super::protected::Protected;

/// The longest path of a root, in bytes: with a subdirectory and a task's directory it still fits into one system call.
const LONGEST: usize = 1024;

/// The name under which `text` is a sandbox root: absolute, without trailing separators. Refused if it is relative or,
/// taken literally or with its links resolved, is or contains something protected. It need not exist.
pub fn check_root(text: &str, protected: &Protected) -> Result<String, RootRefusal> {
    let lexical = normalized(text).map_err(RootRefusal::Bad)?;
    let resolved = Resolved::new(&lexical).map_err(|error| {
        RootRefusal::Bad(format!(
            "{text:?} cannot be used as the sandbox root: {error}; name another directory"
        ))
    })?;
    match protected.within(&lexical, &resolved) {
        Some((what, place)) => Err(RootRefusal::Protected(format!(
            "{text:?} is or contains {what} ({}); name a directory that is used for nothing else",
            place.display()
        ))),
        // It was text before it was a path.
        None => Ok(lexical.to_string_lossy().into_owned()),
    }
}

/// `text` as an absolute path in its shortest spelling. The error says what it is instead, and what to do.
fn normalized(text: &str) -> Result<PathBuf, String> {
    let refuse = |why: &str| Err(format!("{text:?} cannot be the sandbox root: {why}"));
    let path = Path::new(text);
    if text.len() > LONGEST {
        return Err(format!(
            "the sandbox root cannot be longer than {LONGEST} bytes; name another directory"
        ));
    }
    if text.contains(char::is_control) {
        return refuse("it has control characters; name another directory");
    }
    if !path.is_absolute() {
        return refuse("it is not an absolute path of this system; give the whole path");
    }
    // What `..` means depends on the links before it.
    if path.components().any(|part| part == Component::ParentDir) {
        return refuse("it has `..` in it; give the path without");
    }
    Ok(path.components().collect())
}

/// Where a path leads once its links are followed, though the last part of it may be missing.
#[derive(Debug)]
pub(in crate::pod) struct Resolved {
    /// The innermost directory on the way that exists, without a link in its path.
    pub(in crate::pod) existing: PathBuf,
    /// The names below it that do not exist, outermost first.
    pub(in crate::pod) missing: Vec<OsString>,
}

impl Resolved {
    /// Fails for a file, a link that leads nowhere, a way that may not be gone.
    pub(in crate::pod) fn new(path: &Path) -> io::Result<Self> {
        let mut missing = Vec::new();
        for at in path.ancestors() {
            match std::fs::canonicalize(at) {
                Ok(existing) if existing.is_dir() => {
                    missing.reverse();
                    return Ok(Self { existing, missing });
                }
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                // A name that is there and leads nowhere is a link; what it names could be made meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound && at.symlink_metadata().is_err() => {
                    missing.extend(at.file_name().map(OsString::from));
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// The whole path.
    pub(in crate::pod) fn path(&self) -> PathBuf {
        self.missing.iter().fold(self.existing.clone(), |path, name| path.join(name))
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{mkdir, symlink, write};
    use cofferdam_tests::mount::Mount;

    use super::*;
    use crate::pod::Surroundings;

    /// A machine in a directory: a home in `home/user`, the working directory in `src/project`.
    struct Machine {
        dir: tempfile::TempDir,
        protected: Protected,
    }

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let at = |path: &str| dir.path().join(path);
            for made in ["home/user", "src/project", "windows", "dsh", "free", "data/pod"] {
                mkdir(at(made));
            }
            let surroundings = Surroundings {
                home: Some(at("home/user")),
                dsh_home: Some(at("dsh")),
                cwd: Some(at("src/project")),
                system: vec![at("windows")],
                own: Vec::new(),
            };
            let protected = Protected::new(&surroundings, &at("data/pod/pod.db"));
            Self { dir, protected }
        }

        fn path(&self, path: &str) -> String {
            self.dir.path().join(path).to_str().unwrap().to_owned()
        }

        fn check(&self, path: &str) -> Result<String, RootRefusal> {
            check_root(&self.path(path), &self.protected)
        }

        /// The text with which the path is refused as protected.
        fn protects(&self, path: &str) -> String {
            match self.check(path) {
                Err(RootRefusal::Protected(text)) => text,
                other => panic!("{path}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_protected_and_what_is_above_it_is_refused_by_name() {
        let machine = Machine::new();
        let table = [
            ("home/user", "the home directory"),
            ("home", "the home directory"),
            ("dsh", "the DSH home"),
            ("src/project", "the working directory"),
            ("src", "the working directory"),
            ("windows", "a system directory"),
            ("data/pod", "the directory of the database"),
            ("data", "the directory of the database"),
            ("", "the home directory"),
        ];
        for (path, what) in table {
            let text = machine.protects(path);
            assert!(text.contains(what) && text.contains(&machine.path(path)), "{path}: {text}");
        }
        for root in ["/", "//", "/.", "/./"] {
            assert!(matches!(check_root(root, &machine.protected), Err(RootRefusal::Protected(_))), "{root}");
        }
    }

    #[test]
    fn a_directory_inside_of_what_is_protected_or_beside_it_is_allowed() {
        let machine = Machine::new();
        for path in
            ["home/user/pods", "home/user2", "hom", "src/project/a/b", "data/pod/x", "dsh/pods", "free"]
        {
            assert_eq!(machine.check(path), Ok(machine.path(path)));
        }
    }

    #[test]
    fn a_root_in_the_directory_of_the_database_is_remarked_upon() {
        let machine = Machine::new();
        symlink("data", machine.path("to-data"));
        for (root, remarked) in
            [("data/pod/x", true), ("to-data/pod/x", true), ("data/x", false), ("free", false)]
        {
            assert!(machine.check(root).is_ok());
            assert_eq!(machine.protected.remark(&machine.path(root)).is_some(), remarked, "{root}");
        }
    }

    #[test]
    fn trailing_and_doubled_separators_and_dots_are_dropped() {
        let machine = Machine::new();
        assert_eq!(machine.check("free///"), Ok(machine.path("free")));
        assert_eq!(machine.check("./free/.//new/./"), Ok(machine.path("free/new")));
        assert!(machine.protects("home/user///").contains("home directory"));
    }

    #[test]
    fn what_is_no_absolute_path_is_bad() {
        let machine = Machine::new();
        let long = format!("/{}", "x".repeat(LONGEST));
        let bad = [
            "",
            " ",
            "rel/dir",
            "./x",
            "~/x",
            r"E:\pods",
            r"\\nas\pods",
            "/a\0b",
            "/a\nb",
            &long,
            "/tmp/../x",
        ];
        for text in bad {
            match check_root(text, &machine.protected) {
                Err(RootRefusal::Bad(text)) => assert!(text.len() < 300, "{text}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
        assert!(
            matches!(machine.check(&"n".repeat(256)), Err(RootRefusal::Bad(_))),
            "longer than a name can be"
        );
    }

    #[test]
    fn links_are_followed_before_the_places_are_compared() {
        let machine = Machine::new();
        symlink("/", machine.path("to-root"));
        symlink(machine.path("home"), machine.path("free/to-home"));
        symlink("free", machine.path("to-free"));
        symlink("../../gone", machine.path("free/dangling"));
        for path in ["to-root", "to-root/", "free/to-home", "to-free/to-home/user"] {
            machine.protects(path);
        }
        let out = format!("to-root{}", machine.path("home"));
        machine.protects(&out);
        // Inside of the home is inside, by whatever way.
        assert!(machine.check("free/to-home/user/new").is_ok());
        assert_eq!(machine.check("to-free/new"), Ok(machine.path("to-free/new")));
        // Whoever makes what a link names decides where it leads.
        for path in ["free/dangling", "free/dangling/x"] {
            assert!(matches!(machine.check(path), Err(RootRefusal::Bad(_))), "{path}");
        }
    }

    #[test]
    fn a_place_that_is_a_link_itself_is_protected_under_both_names() {
        let machine = Machine::new();
        symlink(machine.path("free"), machine.path("home-link"));
        let surroundings =
            Surroundings { home: Some(machine.path("home-link").into()), ..Surroundings::default() };
        let protected = Protected::new(&surroundings, Path::new("/nowhere/pod.db"));
        for path in ["home-link", "free"] {
            let checked = check_root(&machine.path(path), &protected);
            assert!(matches!(checked, Err(RootRefusal::Protected(_))), "{path}: {checked:?}");
        }
    }

    #[test]
    fn another_mount_of_what_is_protected_is_refused() {
        if !cofferdam_tests::user::is_root() {
            return cofferdam_tests::skipped(format_args!("mounting needs root"));
        }
        let machine = Machine::new();
        mkdir(machine.path("mnt"));
        let _mount = Mount::bind(machine.path("home").as_ref(), machine.path("mnt").as_ref());
        assert!(machine.protects("mnt").contains("home directory"));
        machine.protects("mnt/user");
        assert!(machine.check("mnt/user/pods").is_ok());
    }

    #[test]
    fn a_file_where_the_root_or_a_directory_above_it_should_be_is_bad() {
        let machine = Machine::new();
        write(machine.path("file"), "");
        for path in ["file", "file/x"] {
            assert!(matches!(machine.check(path), Err(RootRefusal::Bad(_))), "{path}");
        }
    }

    #[test]
    fn without_dsh_home_it_is_found_beside_the_database_or_in_the_home() {
        let machine = Machine::new();
        let refused = |surroundings: &Surroundings, database: &str, root: &str| {
            let protected = Protected::new(surroundings, machine.path(database).as_ref());
            matches!(check_root(&machine.path(root), &protected), Err(RootRefusal::Protected(_)))
        };
        let blank = Surroundings { dsh_home: Some(PathBuf::new()), ..Surroundings::default() };
        assert!(refused(&blank, "free/isolation-pod/pod.db", "free"));
        assert!(!refused(&blank, "free/other/pod.db", "home/user/.dsh"));
        let home = Surroundings { home: Some(machine.path("home/user").into()), ..blank };
        assert!(refused(&home, "free/other/pod.db", "home/user/.dsh"));
        assert!(!refused(&home, "free/isolation-pod/pod.db", "home/user/.dsh"));
    }
}
