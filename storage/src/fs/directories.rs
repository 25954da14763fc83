//! The directories in a directory, from which a person picks one.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// What is in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// Its path, without links.
    pub path: PathBuf,
    /// Names that are text, of directories; links are left out. Sorted.
    pub names: Vec<String>,
    /// Whether there are more.
    pub truncated: bool,
}

/// Lists at most so many directories of the one at a path. May block for as long as the disk does.
pub fn directories(path: &Path, most: usize) -> io::Result<Directories> {
    let path = fs::canonicalize(path)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&path)? {
        let entry = entry?;
        // One that goes meanwhile is none.
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    let truncated = names.len() > most;
    names.truncate(most);
    Ok(Directories { path, names, truncated })
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{symlink, write};

    use super::*;

    #[test]
    fn directories_are_listed_by_name_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("b/file"), "");
        write(dir.path().join(".a/file"), "");
        write(dir.path().join("file"), "");
        symlink("b", dir.path().join("link"));
        let path = fs::canonicalize(dir.path()).unwrap();
        let names = vec![".a".to_owned(), "b".to_owned()];
        let all = Directories { path: path.clone(), names, truncated: false };
        assert_eq!(directories(&dir.path().join("b/.."), 2).unwrap(), all);
        let cut = Directories { path, names: vec![".a".to_owned()], truncated: true };
        assert_eq!(directories(dir.path(), 1).unwrap(), cut);
        for other in ["file", "none"] {
            assert!(directories(&dir.path().join(other), 1).is_err(), "{other}");
        }
    }
}
