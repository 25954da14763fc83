//! What a host may call a file below a task's directory.

use crate::path::{Name, RelPath};
use crate::pod::error::{Error, Result};

/// The longest path a host may give, in characters.
const LONGEST: usize = 4096;

/// The path that `text` names below a task's directory: the directory itself for `.`. Doubled and trailing separators
/// and segments that are `.` are dropped; a backslash and a colon belong to names, as they do on this system.
pub fn rel_path(text: &str) -> Result<RelPath> {
    if text.is_empty() || text.chars().count() > LONGEST {
        return Err(Error::BadRequest(format!("a path must have 1 to {LONGEST} characters")));
    }
    let segments = || text.split('/').filter(|segment| !matches!(*segment, "" | "."));
    if text.starts_with('/') || text.contains('\0') || segments().any(|segment| segment == "..") {
        return Err(Error::PathOutside(format!(
            "{text:?} is no path below the task's directory; give one without a leading `/`, `..` and NUL"
        )));
    }
    let names: std::result::Result<Vec<_>, _> =
        segments().map(|segment| Name::new(segment.as_bytes())).collect();
    match names {
        Ok(names) => Ok(names.iter().collect()),
        // No file can have a name that long.
        Err(_) => Err(not_found(text)),
    }
}

/// The refusal of what is not there.
pub(in crate::pod) fn not_found(path: impl std::fmt::Display) -> Error {
    Error::FileNotFound(format!("no such file: {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_the_task_is_taken_in_its_shortest_spelling() {
        for (text, path) in [
            ("a", "a"),
            ("a..b.txt", "a..b.txt"),
            ("..a/...", "..a/..."),
            ("sub/größe 日本.txt", "sub/größe 日本.txt"),
            ("./a//b/./", "a/b"),
            (r"C:x\y", r"C:x\y"),
            (r"\\nas\x", r"\\nas\x"),
            (" ", " "),
            ("~", "~"),
            (".", ""),
            ("./", ""),
        ] {
            assert_eq!(rel_path(text).unwrap().as_bytes(), path.as_bytes(), "{text}");
        }
    }

    #[test]
    fn what_leads_out_is_outside_and_what_is_no_path_is_bad() {
        for text in ["..", "../b", "x/..", "x/../../b", "/", "/etc/passwd", "//", "a\0", "\0", "./../x"] {
            assert!(matches!(rel_path(text), Err(Error::PathOutside(_))), "{text:?}");
        }
        let long = |len: usize| "日/".repeat(len / 2);
        assert!(rel_path(&long(4096)).is_ok());
        for text in ["", &(long(4096) + "x"), &"/".repeat(4097)] {
            assert!(matches!(rel_path(text), Err(Error::BadRequest(_))), "{} bytes", text.len());
        }
        assert!(rel_path(&"n".repeat(255)).is_ok());
        let names = ["n".repeat(256), "日".repeat(86)];
        assert!(names.iter().all(|name| matches!(rel_path(name), Err(Error::FileNotFound(_)))));
        assert!(matches!(rel_path(&format!("{}/..", names[0])), Err(Error::PathOutside(_))));
    }
}
