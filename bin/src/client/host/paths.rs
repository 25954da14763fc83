//! Paths that people type, as the daemon takes them: absolute and plain.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::failure::Failure;

/// An absolute path. `~` at the beginning is the home directory, where a shell did not say so; `..` leads where the system
/// says.
pub(super) fn absolute(given: &str) -> Result<String, Failure> {
    resolved(given, std::env::home_dir())
}

fn resolved(given: &str, home: Option<PathBuf>) -> Result<String, Failure> {
    let path = match given.strip_prefix('~') {
        None => PathBuf::from(given),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = home.filter(|home| home.is_absolute());
            let unknown = || Failure::Said(format!("no home directory is known; write {given} out"));
            home.ok_or_else(unknown)?.join(rest.trim_start_matches('/'))
        }
        Some(_) => {
            return Err(Failure::Said(format!(
                "whose home is meant by {given}? write the path out, or ./{given} if it is a name"
            )));
        }
    };
    let path = plain(&std::path::absolute(path)?)?;
    let unnamed =
        || Failure::Said(format!("{} is not UTF-8; the daemon cannot be told of it", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(unnamed)
}

/// The path without `..`: what stands before one is resolved first, as far as it is there.
fn plain(path: &Path) -> io::Result<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        if component != Component::ParentDir {
            plain.push(component);
            continue;
        }
        match std::fs::canonicalize(&plain) {
            Ok(real) => plain = real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        plain.pop();
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_absolute_whatever_a_shell_has_left_of_it() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        let home = || Some(PathBuf::from("/home/you"));
        for (given, expected) in [
            ("/a/b", "/a/b".to_owned()),
            ("/a//b/./c/", "/a/b/c".to_owned()),
            ("a", format!("{here}/a")),
            ("./~a", format!("{here}/~a")),
            ("~", "/home/you".to_owned()),
            ("~/pods", "/home/you/pods".to_owned()),
            ("/nowhere/at/all/../x", "/nowhere/at/x".to_owned()),
        ] {
            assert_eq!(resolved(given, home()).unwrap(), expected, "{given}");
        }
        assert!(resolved("~root/x", home()).unwrap_err().to_string().contains("write the path out"));
        assert!(resolved("~/x", None).unwrap_err().to_string().contains("no home directory"));
    }

    #[test]
    fn two_dots_after_a_link_lead_where_the_system_says() {
        let dir = tempfile::tempdir().unwrap();
        let dir = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", dir.join("link")).unwrap();
        let given = dir.join("link/../c");
        assert_eq!(resolved(given.to_str().unwrap(), None).unwrap(), dir.join("a/c").to_str().unwrap());
    }
}
