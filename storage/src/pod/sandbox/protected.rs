//! The places that no sandbox may take in.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::root::Resolved;

/// Where the process finds itself, as far as it matters for what is protected. A place that is not known is `None`.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// `DSH_HOME`, where it is set.
    pub dsh_home: Option<PathBuf>,
    /// The directory the program was started in.
    pub cwd: Option<PathBuf>,
    /// `SystemRoot` and `ProgramFiles`, where they are set.
    pub system: Vec<PathBuf>,
    /// Directories in which the program keeps files of its own: nothing is exported there.
    pub own: Vec<PathBuf>,
}

/// What no sandbox root may be or contain.
#[derive(Clone, Debug, Default)]
pub struct Protected {
    /// Each with what it is called in a message, such as `the home directory`.
    paths: Vec<(&'static str, PathBuf)>,
    /// The directory of the database.
    database: Option<PathBuf>,
    own: Vec<PathBuf>,
}

impl Protected {
    /// What is protected where a program finds itself there and has its database there. Without `DSH_HOME` that is the
    /// directory above the database's if that is called `isolation-pod`, else `.dsh` in the home directory.
    pub fn new(surroundings: &Surroundings, database: &Path) -> Self {
        let Surroundings { home, dsh_home, cwd, system, own } = surroundings;
        let known = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let beside = database.parent();
        let dsh_home = known(dsh_home)
            .or_else(|| beside.filter(|dir| dir.ends_with("isolation-pod"))?.parent().map(Path::to_owned))
            .or_else(|| known(home).map(|home| home.join(".dsh")));
        let places = [
            ("the root of the file system", Some(PathBuf::from("/"))),
            ("the home directory", known(home)),
            ("the DSH home", dsh_home),
            ("the directory of the database", beside.map(Path::to_owned)),
            ("the working directory", known(cwd)),
        ];
        let places = places.into_iter().filter_map(|(what, path)| Some((what, path?)));
        let system = system.iter().map(|path| ("a system directory", path.clone()));
        // A path that cannot be made absolute is an empty one: no place at all.
        let absolute = |(what, path): (_, PathBuf)| Some((what, std::path::absolute(path).ok()?));
        Self {
            paths: places.chain(system).filter_map(absolute).collect(),
            database: beside.and_then(|dir| std::path::absolute(dir).ok()),
            own: own.iter().filter_map(|dir| std::path::absolute(dir).ok()).collect(),
        }
    }

    /// The directories in which the program keeps files of its own.
    pub fn own(&self) -> &[PathBuf] {
        &self.own
    }

    /// What a person should know about a root that is allowed: that it lies where the database is.
    pub fn remark(&self, root: &str) -> Option<String> {
        let database = self.database.as_deref()?;
        let resolved = |path: &Path| Resolved::new(path).map(|found| found.path());
        let inside = Path::new(root).starts_with(database)
            || resolved(root.as_ref())
                .is_ok_and(|root| resolved(database).is_ok_and(|dir| root.starts_with(dir)));
        let text =
            || format!("{root:?} lies in the directory of the database; a directory apart from it is safer");
        inside.then(text)
    }

    /// The first place that a directory, which must exist, is or contains: what it is called, and where it is.
    pub(in crate::pod) fn inside(&self, dir: &Path) -> io::Result<Option<(&'static str, &Path)>> {
        Ok(self.within(dir, &Resolved::new(dir)?))
    }

    /// The first place that the directory `lexical`, which is `resolved` once its links are followed, is or contains:
    /// what it is called, and where it is.
    pub(super) fn within(&self, lexical: &Path, resolved: &Resolved) -> Option<(&'static str, &Path)> {
        let root = resolved.path();
        let identity = identity(&root).ok();
        let holds = |place: &Path| {
            let lies_in = |path: &Path| {
                path.starts_with(lexical)
                    || path.starts_with(&root)
                    // The same directory can have several paths: bind mounts, names that differ in case.
                    || identity.is_some_and(|root| path.ancestors().any(|dir| self::identity(dir).is_ok_and(|it| it == root)))
            };
            lies_in(place) || Resolved::new(place).is_ok_and(|place| lies_in(&place.path()))
        };
        self.paths.iter().map(|(what, path)| (*what, path.as_path())).find(|(_, path)| holds(path))
    }
}

/// Device and inode of what a path leads to.
pub(in crate::pod) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}
