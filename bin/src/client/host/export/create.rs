//! Export files of a task.

use clap::{Args, ValueEnum};
use cofferdam_protocol::host::{ExportEntries, Exported, HostEvent, ListFiles};
use cofferdam_protocol::pod::{
    ConflictMode, ExportItemStatus, ExportMode, ExportStatus, FileRow, FileRows, FileType,
};

use crate::client::arguments::Shown;
use crate::client::host::failure::{Failure, INTERRUPTED, answered};
use crate::client::host::{Run, find, paths};
use crate::client::shown::{one_line, size};
use crate::control::Listener;

#[derive(Args, Debug)]
pub(crate) struct Create {
    /// The beginning of the task's id
    task: String,
    /// Files and directories, below the task's directory [default: everything]
    #[arg(value_name = "ENTRY", default_value = ".", hide_default_value = true)]
    entries: Vec<String>,
    /// The directory they go to, outside of the sandbox root
    #[arg(long, value_name = "DIR")]
    to: String,
    /// Remove them from the task's directory once they are copied
    #[arg(long = "move")]
    moved: bool,
    /// What to do about files in the way
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    conflict: Conflict,
    /// Have panels fill in this directory next time, if allowRememberChoice says so
    #[arg(long)]
    remember: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    shown: Shown,
}

/// What to do about a file in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Conflict {
    /// Replace it; undo brings it back
    #[default]
    Overwrite,
    /// Leave it
    Skip,
    /// Choose another name
    Rename,
}

impl Create {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        let target_dir = paths::absolute(&self.to)?;
        let files = run.control.host(&ListFiles { task_id: task_id.clone() })?;
        let chosen = Chosen::of(&files, &self.entries)?;
        if !run.consent(self.yes, &self.question(&chosen, &task_id, &target_dir))? {
            run.terminal.say("Nothing was exported.");
            return Ok(());
        }
        let exported = export(
            run,
            &ExportEntries {
                task_id,
                entries: self.entries.clone(),
                target_dir,
                mode: Some(if self.moved { ExportMode::Move } else { ExportMode::Copy }),
                conflict: Some(match self.conflict {
                    Conflict::Overwrite => ConflictMode::Overwrite,
                    Conflict::Skip => ConflictMode::Skip,
                    Conflict::Rename => ConflictMode::Rename,
                }),
                remember: self.remember,
            },
        )?;
        if self.shown.as_json(&mut run.terminal) {
            run.terminal.print_json(&exported)?;
        } else {
            run.terminal.print(as_text(&exported))?;
        }
        if let Some(message) = &exported.message {
            run.terminal.warn(one_line(message));
        }
        if is_whole(&exported) { Ok(()) } else { Err(Failure::Exit(1)) }
    }

    fn question(&self, chosen: &Chosen, task: &str, to: &str) -> String {
        let verb = if self.moved { "Move" } else { "Copy" };
        let least = if chosen.at_least { "at least " } else { "" };
        let (count, bytes) = (chosen.files, size(chosen.bytes));
        let in_the_way = match self.conflict {
            Conflict::Overwrite => "files in the way are replaced",
            Conflict::Skip => "files in the way stay",
            Conflict::Rename => "files in the way stay, and the new ones get other names",
        };
        let (task, to) = (one_line(task), one_line(to));
        format!("{verb} {least}{count} file(s), {bytes}, of {task} to {to}; {in_the_way}?")
    }
}

/// Exports, and shows on a terminal how far that is.
fn export(run: &mut Run, entries: &ExportEntries) -> Result<Exported, Failure> {
    if !run.terminal.shows_progress() {
        return Ok(run.control.host(entries)?);
    }
    let mut listener = Listener::open(&run.control, None)?;
    let terminal = &mut run.terminal;
    let exported = listener.ask_hearing(entries, |event| match event {
        HostEvent::ExportProgress { task_id, done, total, .. } if *task_id == entries.task_id => {
            terminal.progress(&bar(*done, *total));
        }
        _ => {}
    });
    run.terminal.progress("");
    let exported = answered(exported);
    if matches!(exported, Err(Failure::Exit(INTERRUPTED))) {
        run.terminal.say("The export goes on. See how it ends: cofferdam export list");
    }
    exported
}

/// How far an export is: `[#####               ] 12/48`.
fn bar(done: usize, total: usize) -> String {
    const WIDTH: usize = 30;
    let filled = (done.min(total) * WIDTH).checked_div(total).unwrap_or(WIDTH);
    format!("[{}{}] {done}/{total}", "#".repeat(filled), " ".repeat(WIDTH - filled))
}

/// What the entries name.
#[derive(Debug, PartialEq, Eq)]
struct Chosen {
    files: usize,
    bytes: u64,
    /// Whether there may be more: what is deep down, or far behind, is not listed.
    at_least: bool,
}

impl Chosen {
    fn of(files: &FileRows, entries: &[String]) -> Result<Self, Failure> {
        let entries: Vec<_> = entries.iter().map(|entry| plain(entry)).collect();
        for entry in &entries {
            let is_there = entry.is_empty() || files.entries.iter().any(|row| row.rel_path == *entry);
            if !is_there && !files.truncated {
                return Err(Failure::Said(format!(
                    "the task has no file {entry}; see which there are: cofferdam task files <task>"
                )));
            }
        }
        let chosen = |row: &&FileRow| {
            row.kind == FileType::File && entries.iter().any(|entry| is_within(&row.rel_path, entry))
        };
        let chosen: Vec<_> = files.entries.iter().filter(chosen).collect();
        let bytes = chosen.iter().map(|row| row.size).sum();
        Ok(Self { files: chosen.len(), bytes, at_least: files.truncated })
    }
}

/// An entry as the list spells it; empty: everything.
fn plain(entry: &str) -> String {
    entry.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect::<Vec<_>>().join("/")
}

fn is_within(path: &str, entry: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    entry.is_empty() || path.strip_prefix(entry).is_some_and(below)
}

/// Whether everything was written, or left out as it was asked for.
fn is_whole(exported: &Exported) -> bool {
    let export = &exported.export;
    export.status == ExportStatus::Completed
        && export.items.iter().all(|item| item.status != ExportItemStatus::Fail)
}

fn as_text(exported: &Exported) -> String {
    let export = &exported.export;
    let (mut written, mut skipped, mut failed, mut bytes) = (0_usize, 0_usize, 0_usize, 0_u64);
    let mut lines = Vec::new();
    for item in &export.items {
        let word = match item.status {
            ExportItemStatus::Ok | ExportItemStatus::Undo | ExportItemStatus::UndoConflict => {
                (written, bytes) = (written + 1, bytes + item.bytes);
                "written"
            }
            ExportItemStatus::Skip => {
                skipped += 1;
                "skipped"
            }
            ExportItemStatus::Fail => {
                failed += 1;
                "failed "
            }
        };
        let why =
            if item.message.is_empty() { String::new() } else { format!(": {}", one_line(&item.message)) };
        lines.push(format!("{word}  {}{why}", one_line(&item.dst)));
    }
    if let Some(total) = export.items_total {
        lines.push(format!("and {} more", total.saturating_sub(export.items.len())));
    }
    let (id, bytes) = (one_line(&export.id), size(bytes));
    lines.push(format!("{id}: {written} written, {bytes}; {skipped} skipped, {failed} failed"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::host::testing::{export as record, files};

    #[track_caller]
    fn check(entries: &[&str], expected: Result<(usize, u64), &str>) {
        let rows = files(&[
            ("a", FileType::Directory, 0),
            ("a/one", FileType::File, 1),
            ("a/s", FileType::Directory, 0),
            ("a/s/two", FileType::File, 10),
            ("ab", FileType::File, 100),
            ("link", FileType::Symlink, 0),
        ]);
        let entries: Vec<_> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let chosen = Chosen::of(&rows, &entries).map(|chosen| (chosen.files, chosen.bytes));
        let chosen = chosen.map_err(|error| error.to_string());
        assert_eq!(
            chosen.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|text| *text),
            "{entries:?}"
        );
    }

    #[test]
    fn directories_are_expanded_and_each_file_counts_once() {
        check(&["."], Ok((3, 111)));
        check(&["a"], Ok((2, 11)));
        check(&["./a/", "a/one", "a//s"], Ok((2, 11)));
        check(&["ab"], Ok((1, 100)));
        check(&["link"], Ok((0, 0)));
        let none = "the task has no file b; see which there are: cofferdam task files <task>";
        check(&["a", "b"], Err(none));
    }

    #[test]
    fn what_is_not_listed_is_not_said_to_be_missing() {
        let rows = FileRows { truncated: true, ..files(&[("a", FileType::File, 7)]) };
        let chosen = Chosen::of(&rows, &["b".to_owned()]).unwrap();
        assert_eq!(chosen, Chosen { files: 0, bytes: 0, at_least: true });
    }

    #[test]
    fn the_bar_fills_and_never_runs_over() {
        assert_eq!(bar(0, 4), format!("[{}] 0/4", " ".repeat(30)));
        assert_eq!(bar(2, 4), format!("[{}{}] 2/4", "#".repeat(15), " ".repeat(15)));
        assert_eq!(bar(5, 4), format!("[{}] 5/4", "#".repeat(30)));
        assert_eq!(bar(0, 0), format!("[{}] 0/0", "#".repeat(30)));
    }

    #[test]
    fn each_file_is_said_to_be_written_skipped_or_failed() {
        let export = record(
            "exp-1",
            &[
                (ExportItemStatus::Ok, "/out/a\x1b", ""),
                (ExportItemStatus::Skip, "/out/b", "there is one"),
                (ExportItemStatus::Fail, "/out/c", "no space\x07"),
            ],
        );
        let exported = Exported { export, message: None };
        assert!(!is_whole(&exported));
        assert_eq!(
            as_text(&exported),
            "written  /out/a\\u{1b}\n\
             skipped  /out/b: there is one\n\
             failed   /out/c: no space\\u{7}\n\
             exp-1: 1 written, 5 B; 1 skipped, 1 failed"
        );
    }
}
