//! Finding the program that holds conversations, for agents.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cofferdam_actors::host::agent::command::CoreProgram;

use crate::paths::Environment;

/// Its name.
const NAME: &str = "cosh-core";

/// The program at `$COSH_CORE_PATH`, else the one beside the running program, else the one that the search path finds, else the
/// running program itself, which is `cofferdam` and can play that part. The error is for people.
pub(crate) fn core_program() -> Result<CoreProgram, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let named = Environment::of_process().cosh_core();
    find(named.as_deref(), env::current_exe().ok().as_deref(), &env::split_paths(&path).collect::<Vec<_>>())
}

fn find(named: Option<&Path>, running: Option<&Path>, path: &[PathBuf]) -> Result<CoreProgram, String> {
    let in_path = |name: &Path| {
        let mut places = path.iter().filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
        places.find(|place| can_run(place))
    };
    let program = |path: PathBuf, part| {
        // A sandbox shows the file, and no link to it.
        let path = std::fs::canonicalize(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(CoreProgram { path, part })
    };
    if let Some(named) = named {
        let found = match named.components().count() {
            1 => in_path(named),
            _ => Some(named.to_owned()).filter(|named| can_run(named)),
        };
        return found.map_or_else(
            || {
                Err(format!(
                    "COSH_CORE_PATH names {}, which is no program; correct or unset it",
                    named.display()
                ))
            },
            |found| program(found, None),
        );
    }
    let beside = running.map(|running| running.with_file_name(NAME)).filter(|path| can_run(path));
    match (beside.or_else(|| in_path(Path::new(NAME))), running) {
        (Some(found), _) => program(found, None),
        (None, Some(running)) => program(running.to_owned(), Some(NAME)),
        (None, None) => Err(format!(
            "{NAME} is neither beside the running program nor in PATH; install it, or name it in COSH_CORE_PATH"
        )),
    }
}

fn can_run(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files;

    use super::*;

    #[test]
    fn the_named_one_comes_first_then_the_one_beside_then_the_search_path_then_the_running_program() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| std::fs::canonicalize(dir.path()).unwrap().join(name);
        for name in ["named/core", "bin/cofferdam", "bin/cosh-core", "path/cosh-core", "path/core"] {
            files::write(at(name), "");
            files::chmod(at(name), 0o755);
        }
        let (running, path) = (at("bin/cofferdam"), [PathBuf::from("relative"), at("no"), at("path")]);
        let found = |named: Option<&str>| {
            let found = find(named.map(Path::new), Some(&running), &path)?;
            Ok::<_, String>((found.path, found.part))
        };
        let named = at("named/core");
        assert_eq!(found(named.to_str()).unwrap(), (named, None));
        assert_eq!(found(Some("core")).unwrap(), (at("path/core"), None));
        assert_eq!(found(None).unwrap(), (at("bin/cosh-core"), None));
        std::os::unix::fs::symlink(at("named/core"), at("link")).unwrap();
        assert_eq!(found(at("link").to_str()).unwrap().0, at("named/core"));
        // What cannot be run is none.
        files::chmod(at("bin/cosh-core"), 0o644);
        assert_eq!(found(None).unwrap(), (at("path/cosh-core"), None));
        files::remove(at("path/cosh-core"));
        assert_eq!(found(None).unwrap(), (running.clone(), Some("cosh-core")));
        for missing in ["missing", "/no/such/core", at("bin/cosh-core").to_str().unwrap()] {
            let why = found(Some(missing)).unwrap_err();
            assert!(why.contains(missing) && why.contains("COSH_CORE_PATH"), "{why}");
        }
        assert!(find(None, None, &[]).unwrap_err().contains("COSH_CORE_PATH"));
    }
}
