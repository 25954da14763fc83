//! Where the store is.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::{Config, Error};

/// The directory that holds a directory for each workspace. Its links are resolved here and never again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRoot {
    /// Absolute, its existing part canonical.
    pub path: PathBuf,
    /// Where the conversations of this workspace were before there were directories for each: relative to the workspace,
    /// canonical. Only where it provably belongs to this workspace; it may not be there.
    pub legacy: Option<PathBuf>,
}

impl StoreRoot {
    /// Resolves the configured directory for a workspace, whose path is canonical.
    pub fn resolve(persist_dir: &str, home: Option<&Path>, workspace: &Path) -> Result<Self, Error> {
        let path = match persist_dir.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let none = || io::Error::new(io::ErrorKind::NotFound, "there is no home directory");
                let home = home.ok_or_else(none).map_err(|error| refused(persist_dir, error))?;
                home.join(rest.trim_start_matches('/'))
            }
            // An absolute path stays what it is.
            _ => workspace.join(persist_dir),
        };
        let path = canonical(&path).map_err(|error| refused(&path, error))?;
        Ok(Self { path, legacy: legacy(persist_dir, workspace)? })
    }
}

fn refused(path: impl Into<PathBuf>, error: io::Error) -> Error {
    Error::io("resolve session directory", path, error)
}

/// A path whose existing part has no links any more. `..` below that is taken away with the name before it.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = path.to_owned();
    let mut canonical = loop {
        match std::fs::canonicalize(&existing) {
            Ok(found) => break found,
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::NOTDIR)) => {
                let last = existing.components().next_back();
                missing.extend(last.map(|name| name.as_os_str().to_owned()));
                if !existing.pop() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    };
    for name in missing.iter().rev() {
        match name.as_bytes() {
            b".." => _ = canonical.pop(),
            _ => canonical.push(name),
        }
    }
    Ok(canonical)
}

/// Where the flat directory of a workspace is, if there is one. Absolute directories, those in the home and those reached
/// by `..` may be shared: nothing in them can be told to be this workspace's.
fn legacy(persist_dir: &str, workspace: &Path) -> Result<Option<PathBuf>, Error> {
    let relative = match persist_dir {
        Config::DEFAULT_DIR => "sessions",
        "~" => return Ok(None),
        other if other.starts_with("~/") => return Ok(None),
        other => other,
    };
    let relative = Path::new(relative);
    if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(None);
    }
    if !workspace.is_dir() {
        return Err(Error::io("open canonical workspace", workspace, Errno::NOTDIR));
    }
    let found = std::fs::canonicalize(workspace.join(relative)).ok().filter(|found| found.is_dir());
    Ok(found.and_then(|found| found.strip_prefix(workspace).ok().map(Path::to_owned)))
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{mkdir, symlink, write};

    use super::*;

    /// A canonical directory with a home and a workspace in it.
    fn site() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        mkdir(path.join("home"));
        mkdir(path.join("ws"));
        (dir, path)
    }

    fn resolve(site: &Path, persist_dir: &str) -> StoreRoot {
        StoreRoot::resolve(persist_dir, Some(&site.join("home")), &site.join("ws")).unwrap()
    }

    #[test]
    fn each_form_of_a_root_leads_where_it_is_documented_to() {
        let (_dir, site) = site();
        let outside = site.join("x/y");
        let table = [
            ("~", "home".to_owned()),
            ("~/a/b", "home/a/b".to_owned()),
            ("~user/a", "ws/~user/a".to_owned()),
            ("", "ws".to_owned()),
            ("rel", "ws/rel".to_owned()),
            ("rel/../up", "ws/up".to_owned()),
            ("../shared", "shared".to_owned()),
            ("../../../../../../../../../../..", "/".to_owned()),
            (outside.to_str().unwrap(), "x/y".to_owned()),
        ];
        for (written, expected) in table {
            assert_eq!(resolve(&site, written).path, site.join(expected), "{written}");
        }
    }

    #[test]
    fn links_in_the_part_that_exists_are_resolved_at_once() {
        let (_dir, site) = site();
        mkdir(site.join("real/deep"));
        symlink("../real/deep", site.join("ws/link"));
        symlink("nowhere", site.join("ws/dangling"));
        assert_eq!(resolve(&site, "link/new").path, site.join("real/deep/new"));
        assert_eq!(resolve(&site, "link/../new").path, site.join("real/new"));
        assert_eq!(resolve(&site, "dangling/new").path, site.join("ws/dangling/new"));
    }

    #[test]
    fn without_a_home_a_root_in_it_is_refused() {
        let (_dir, site) = site();
        let refused = StoreRoot::resolve("~/a", None, &site.join("ws"));
        assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
        assert!(StoreRoot::resolve("a", None, &site.join("ws")).is_ok());
    }

    #[test]
    fn only_a_directory_that_is_in_the_workspace_for_sure_is_looked_into() {
        let (_dir, site) = site();
        let legacy = |written: &str| resolve(&site, written).legacy;
        assert_eq!((legacy(Config::DEFAULT_DIR), legacy("rel")), (None, None));
        mkdir(site.join("ws/sessions"));
        mkdir(site.join("ws/real/rel"));
        mkdir(site.join("ws/~user"));
        mkdir(site.join("shared"));
        write(site.join("ws/file"), "");
        symlink("real", site.join("ws/inside"));
        symlink("../shared", site.join("ws/outside"));
        let table = [
            (Config::DEFAULT_DIR, Some("sessions")),
            ("sessions", Some("sessions")),
            ("inside/rel", Some("real/rel")),
            ("./real//rel/", Some("real/rel")),
            ("~user", Some("~user")),
            ("", Some("")),
            ("outside", None),
            ("file", None),
            ("none", None),
            ("real/../real", None),
            ("../shared", None),
            ("~", None),
            ("~/a", None),
            (site.join("ws/sessions").to_str().unwrap(), None),
        ]
        .map(|(written, expected)| (written.to_owned(), expected.map(PathBuf::from)));
        for (written, expected) in table {
            assert_eq!(legacy(&written), expected, "{written}");
        }
    }

    #[test]
    fn links_in_a_circle_lead_nowhere() {
        let (_dir, site) = site();
        symlink("sessions", site.join("ws/sessions"));
        let refused = StoreRoot::resolve("sessions", None, &site.join("ws"));
        assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
        assert_eq!(resolve(&site, Config::DEFAULT_DIR).legacy, None);
    }

    #[test]
    fn a_workspace_that_is_a_file_has_no_flat_directory_to_look_into() {
        let (_dir, site) = site();
        write(site.join("file"), "");
        let resolve = |written: &str| StoreRoot::resolve(written, None, &site.join("file"));
        assert!(matches!(resolve("rel"), Err(Error::Io { .. })));
        assert_eq!(resolve("/nowhere").unwrap().legacy, None);
    }
}
