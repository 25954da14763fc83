//! What a task has made, as a person may look at it before it leaves the sandbox. All of it is hostile: links, swaps,
//! special files, mounts, strange names.

mod path;

use cofferdam_protocol::pod::{FileRows, FileStat, FileText};

use super::error::Result;
use super::place::TaskPlace;

pub use path::rel_path;

/// What there is: depth first, names in byte order, to a depth of 8 and at most 2000 (spec §7).
pub fn list(place: Option<&TaskPlace>) -> Result<FileRows> {
    let _ = place;
    todo!()
}

/// What is known of one file.
pub fn stat(place: Option<&TaskPlace>, rel_path: &str) -> Result<FileStat> {
    let _ = (place, rel_path);
    todo!()
}

/// The text of one file of at most `limit` bytes, cut at `max_chars` characters.
pub fn read(place: Option<&TaskPlace>, rel_path: &str, limit: u64, max_chars: usize) -> Result<FileText> {
    let _ = (place, rel_path, limit, max_chars);
    todo!()
}
