//! What an agent has kept at home.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How many entries are looked at. A home with more in it is not new.
const MOST: usize = 1000;

/// Whether no program has left anything in a home: there are directories at most, and links to what is `shown` of the user's own.
/// One that cannot be looked through is not new. Blocks; nothing runs in the home meanwhile.
pub(super) fn is_new(home: &Path, shown: &[PathBuf]) -> bool {
    let (mut dirs, mut looked_at) = (vec![PathBuf::new()], 0);
    while let Some(dir) = dirs.pop() {
        let entries = match fs::read_dir(home.join(&dir)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(_) => return false,
        };
        for entry in entries {
            looked_at += 1;
            let Ok(entry) = entry else { return false };
            let path = dir.join(entry.file_name());
            match entry.file_type() {
                _ if looked_at > MOST => return false,
                Ok(kind) if kind.is_dir() => dirs.push(path),
                Ok(kind) if kind.is_symlink() && shown.iter().any(|shown| path.starts_with(shown)) => {}
                Ok(_) | Err(_) => return false,
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{mkdir, symlink, write};

    use super::*;

    #[test]
    fn a_home_is_new_until_a_program_has_left_something_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let shown = [PathBuf::from(".agent")];
        assert!(is_new(&home, &shown));
        mkdir(home.join(".local/share"));
        mkdir(home.join(".agent"));
        symlink("/elsewhere/key", home.join(".agent/key"));
        assert!(is_new(&home, &shown));
        assert!(!is_new(&home, &[]));
        for file in [".local/share/session", ".agent/session"] {
            write(home.join(file), "");
            assert!(!is_new(&home, &shown), "{file}");
            cofferdam_tests::files::remove(home.join(file));
        }
        for number in 0..MOST {
            mkdir(home.join(format!("dirs/{number}")));
        }
        assert!(!is_new(&home, &shown));
    }
}
