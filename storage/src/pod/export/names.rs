//! The names that exports give files.

use crate::path::{InvalidName, Name, RelPath};

/// The directory below a target in which backups are kept.
pub(super) const UNDO_DIR: &str = ".isolation-pod-undo";

/// After how many tries for a free name an export gives up.
pub(super) const MOST_TRIES: u32 = 9999;

/// The names of one export's own files. They follow from its id, so that whoever finds one knows whose it is.
#[derive(Clone, Debug)]
pub(super) struct Names {
    id: String,
    token: String,
}

impl Names {
    /// Those of an export.
    pub(super) fn of(id: &str) -> Self {
        let token = blake3::hash(id.as_bytes()).to_hex();
        Self { id: id.to_owned(), token: token[..16].to_owned() }
    }

    /// The new file of an item, until it gets its name.
    pub(super) fn new_file(&self, item: usize) -> String {
        format!(".isolation-pod-{}-{item}.new", self.token)
    }

    /// The exported file of an item, once it has lost its name.
    pub(super) fn aside(&self, item: usize) -> String {
        format!(".isolation-pod-{}-{item}.old", self.token)
    }

    /// The file of an item on its way back to the source.
    pub(super) fn returning(&self, item: usize) -> String {
        format!(".isolation-pod-{}-{item}.back", self.token)
    }

    /// Where this export's backups are, below its target.
    pub(super) fn backups(&self) -> Result<RelPath, InvalidName> {
        Ok([&Name::new(UNDO_DIR.as_bytes())?, &Name::new(self.id.as_bytes())?].into_iter().collect())
    }
}

/// `<stem>-<number><ext>`; the name itself for 0. The stem ends at the last dot, but a name whose only dot is its
/// first character has no extension.
pub(super) fn numbered(name: &Name, number: u32) -> Result<Name, InvalidName> {
    if number == 0 {
        return Ok(name.clone());
    }
    let bytes = name.as_bytes();
    let end = bytes.iter().rposition(|b| *b == b'.').filter(|at| *at > 0).unwrap_or(bytes.len());
    Name::new([&bytes[..end], format!("-{number}").as_bytes(), &bytes[end..]].concat())
}

/// `path` below `dir`.
pub(super) fn below(dir: &RelPath, path: &RelPath) -> RelPath {
    path.components().fold(dir.clone(), |at, name| at.join(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_before_the_extension() {
        let table = [
            ("x.txt", "x-1.txt"),
            ("a.tar.gz", "a.tar-1.gz"),
            (".env", ".env-1"),
            (".env.local", ".env-1.local"),
            ("Makefile", "Makefile-1"),
            ("x.", "x-1."),
        ];
        for (name, expected) in table {
            let name = Name::new(name.as_bytes()).unwrap();
            assert_eq!(numbered(&name, 1).unwrap().as_bytes(), expected.as_bytes());
            assert_eq!(numbered(&name, 0).unwrap(), name);
        }
        assert!(numbered(&Name::new([b'n'; 255]).unwrap(), 1).is_err());
    }
}
