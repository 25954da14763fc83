//! Paths are bytes: names need not be UTF-8, and a path below a root never leaves it.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// One component of a path: not empty, not `.` or `..`, without `/` and NUL, at most 255 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

/// Bytes that cannot be a file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a file name")]
pub struct InvalidName;

impl Name {
    /// The longest name any supported filesystem takes, in bytes.
    pub const MAX: usize = 255;

    /// Checks and takes a name.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self, InvalidName> {
        let bytes = bytes.into();
        let bad = bytes.is_empty()
            || bytes.len() > Self::MAX
            || &*bytes == b"."
            || &*bytes == b".."
            || bytes.iter().any(|b| matches!(b, b'/' | 0));
        if bad { Err(InvalidName) } else { Ok(Self(bytes)) }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name as the standard library wants it.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", escape(&self.0))
    }
}

/// A path below a workspace root: names joined by `/`, none of them `.` or `..`. The empty path is the root itself.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Vec<u8>);

impl RelPath {
    /// The root itself.
    pub const ROOT: Self = Self(Vec::new());

    /// Checks every component.
    pub fn new(bytes: &[u8]) -> Result<Self, InvalidName> {
        if !bytes.is_empty() {
            for part in bytes.split(|b| *b == b'/') {
                Name::new(part)?;
            }
        }
        Ok(Self(bytes.to_vec()))
    }

    /// This path with one more component.
    pub fn join(&self, name: &Name) -> Self {
        let mut joined = Vec::with_capacity(self.0.len() + 1 + name.0.len());
        joined.extend_from_slice(&self.0);
        if !joined.is_empty() {
            joined.push(b'/');
        }
        joined.extend_from_slice(&name.0);
        Self(joined)
    }

    /// The directory it stands in and its name there; `None` for the root.
    pub fn split(&self) -> Option<(Self, Name)> {
        if self.is_root() {
            return None;
        }
        let (parent, name) = match self.0.iter().rposition(|b| *b == b'/') {
            Some(at) => (&self.0[..at], &self.0[at + 1..]),
            None => (&self.0[..0], &self.0[..]),
        };
        Some((Self(parent.to_vec()), Name(name.into())))
    }

    /// The components, outermost first.
    pub fn components(&self) -> impl Iterator<Item = Name> + '_ {
        self.0.split(|b| *b == b'/').filter(|part| !part.is_empty()).map(|part| Name(part.into()))
    }

    /// Whether this is the workspace root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this path is `other` or lies below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        other.is_root()
            || (self.0.starts_with(&other.0) && matches!(self.0.get(other.0.len()), None | Some(b'/')))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as the standard library wants it.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

impl<'a> FromIterator<&'a Name> for RelPath {
    /// Joins names, outermost first.
    fn from_iter<T: IntoIterator<Item = &'a Name>>(names: T) -> Self {
        let mut joined = Vec::new();
        for name in names {
            if !joined.is_empty() {
                joined.push(b'/');
            }
            joined.extend_from_slice(&name.0);
        }
        Self(joined)
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No name is `.`.
        match self.is_root() {
            true => f.write_str("."),
            false => f.write_str(&escape(&self.0)),
        }
    }
}

/// Text for people and for the wire: valid UTF-8 stays as it is; a control character, a backslash and every
/// byte that is not UTF-8 become `\xNN`, so the text names exactly one path and fits on one line.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' || c.is_control() {
                let mut utf8 = [0; 4];
                c.encode_utf8(&mut utf8).bytes().for_each(|b| push_hex(&mut text, b));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|b| push_hex(&mut text, *b));
    }
    text
}

/// What [`escape`] made a text of; nothing if it made none like this.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.strip_prefix('x')?.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[3..]);
    }
    (escape(&bytes) == text).then_some(bytes)
}

fn push_hex(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.push_str("\\x");
    text.push(DIGITS[usize::from(byte >> 4)] as char);
    text.push(DIGITS[usize::from(byte & 15)] as char);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_name_anything_above_its_root() {
        for bad in [&b".."[..], b"a/../b", b"a//b", b"/a", b"a/", b".", b"a\0b"] {
            assert_eq!(RelPath::new(bad), Err(InvalidName), "{}", escape(bad));
        }
    }

    #[test]
    fn splitting_undoes_joining() {
        let dir = RelPath::new(b"a/b").unwrap();
        let name = Name::new(&b"\xffs"[..]).unwrap();
        assert_eq!(dir.join(&name).split(), Some((dir, name)));
        assert_eq!(RelPath::ROOT.split(), None);
    }

    #[test]
    fn a_prefix_of_a_name_is_not_a_parent() {
        let path = |text: &str| RelPath::new(text.as_bytes()).unwrap();
        assert!(path("a/b").starts_with(&path("a")));
        assert!(!path("ab").starts_with(&path("a")));
        assert!(path("a").starts_with(&RelPath::ROOT));
    }

    #[test]
    fn the_root_has_a_name_for_people() {
        assert_eq!(RelPath::ROOT.to_string(), ".");
        assert_eq!(format!("{:?}", RelPath::ROOT), "\".\"");
    }

    #[test]
    fn escaped_names_are_one_line_and_keep_readable_text() {
        assert_eq!(escape("größe ✓".as_bytes()), "größe ✓");
        assert_eq!(escape(b"\xffs\n\\"), "\\xffs\\x0a\\x5c");
    }

    #[test]
    fn what_was_escaped_is_read_back_and_nothing_else_is() {
        for bytes in [&b"\xffs\n\\"[..], "größe ✓".as_bytes(), b"", b"\\\\x", b"\xff"] {
            assert_eq!(unescape(&escape(bytes)).as_deref(), Some(bytes));
        }
        for other in ["\\", "\\x", "\\x0", "\\y00", "\\x+1", "a\\xfF", "\\x41", "\n", "\\xé"] {
            assert_eq!(unescape(other), None, "{other}");
        }
    }
}
