//! List the files of a task.

use clap::Args;
use cofferdam_protocol::host::ListFiles;
use cofferdam_protocol::pod::{FileRow, FileRows, FileType};
use jiff::tz::Offset;

use super::list::moment;
use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::moment::{local_offset, zone};
use crate::client::shown::{one_line, size};
use crate::client::table::table;

#[derive(Args, Debug)]
pub(crate) struct Files {
    /// The beginning of the task's id
    task: String,
    #[command(flatten)]
    shown: Shown,
}

impl Files {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        let files = run.control.host(&ListFiles { task_id })?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&files)?);
        }
        Ok(run.terminal.print(as_table(&files, local_offset()))?)
    }
}

fn as_table(files: &FileRows, offset: Offset) -> String {
    let root = one_line(&files.root);
    if files.missing {
        return format!("The task's directory is gone: {root}");
    }
    if files.entries.is_empty() {
        return format!("No files in {root}");
    }
    let changed = format!("CHANGED({})", zone(offset));
    let mut rows = vec![["SIZE", &changed, "PATH"].map(str::to_owned)];
    rows.extend(files.entries.iter().map(|row| {
        let bytes = if row.kind == FileType::File { size(row.size) } else { "-".to_owned() };
        [bytes, moment(row.mtime, offset), path(row)]
    }));
    let more = if files.truncated { "\nThere is more than can be listed." } else { "" };
    format!("{}\n\nIn {root}{more}", table(&rows))
}

/// A path with a mark that says what it is, as `ls -F` does.
fn path(row: &FileRow) -> String {
    let mark = match row.kind {
        FileType::Directory => "/",
        FileType::Symlink => "@",
        FileType::Other => "?",
        FileType::File => "",
    };
    let lossy = if row.lossy { "  (its name is no text and only resembles this)" } else { "" };
    format!("{}{mark}{lossy}", one_line(&row.rel_path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::host::testing::files;

    #[test]
    fn the_table_tells_kinds_apart_and_says_what_is_not_in_it() {
        let mut rows = files(&[
            ("a", FileType::Directory, 0),
            ("a/b\x1b", FileType::File, 1536),
            ("l", FileType::Symlink, 0),
        ]);
        rows.entries[1].lossy = true;
        rows.truncated = true;
        assert_eq!(
            as_table(&rows, Offset::UTC),
            "SIZE     CHANGED(UTC+0)       PATH\n\
             -        2026-01-02 03:04:05  a/\n\
             1.5 KiB  2026-01-02 03:04:05  a/b\\u{1b}  (its name is no text and only resembles this)\n\
             -        2026-01-02 03:04:05  l@\n\
             \n\
             In /pods/pod-1\n\
             There is more than can be listed."
        );
        assert_eq!(as_table(&files(&[]), Offset::UTC), "No files in /pods/pod-1");
        let gone = FileRows { missing: true, ..files(&[]) };
        assert_eq!(as_table(&gone, Offset::UTC), "The task's directory is gone: /pods/pod-1");
    }
}
