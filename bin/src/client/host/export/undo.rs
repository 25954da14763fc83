//! Undo an export.

use clap::Args;
use cofferdam_protocol::host::UndoExport;
use cofferdam_protocol::pod::ExportUndone;

use super::list::count;
use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Undo {
    /// The beginning of the export's id
    export: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Undo {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let export = find::export(&run.control, &self.export)?;
        let (files, to) = (count(&export), one_line(&export.target_dir));
        let question = format!("Undo {}: take back {files} file(s) in {to}?", one_line(&export.id));
        if !run.consent(self.yes, &question)? {
            run.terminal.say("Nothing was undone.");
            return Ok(());
        }
        let undone = run.control.host(&UndoExport { export_id: export.id })?;
        if self.shown.as_json(&mut run.terminal) {
            run.terminal.print_json(&undone)?;
        } else {
            run.terminal.print(as_text(&undone))?;
        }
        // What was left alone is no success.
        if undone.conflicts.is_empty() { Ok(()) } else { Err(Failure::Exit(1)) }
    }
}

fn as_text(undone: &ExportUndone) -> String {
    let mut text: Vec<_> =
        undone.removed.iter().map(|path| format!("removed   {}", one_line(path))).collect();
    text.extend(undone.restored.iter().map(|path| format!("restored  {}", one_line(path))));
    text.extend(
        undone
            .conflicts
            .iter()
            .map(|left| format!("kept      {}: {}", one_line(&left.path), one_line(&left.message))),
    );
    let (removed, restored, kept) = (undone.removed.len(), undone.restored.len(), undone.conflicts.len());
    text.push(format!(
        "{}: {removed} removed, {restored} restored, {kept} kept",
        one_line(&undone.export.id)
    ));
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::pod::UndoConflict;

    use super::*;
    use crate::client::host::testing::export;

    #[test]
    fn what_was_removed_restored_and_kept_is_told_apart_and_why() {
        let conflict = UndoConflict { path: "/out/c".to_owned(), message: "it was changed\x07".to_owned() };
        let undone = ExportUndone {
            export: export("exp-1", &[]),
            removed: vec!["/out/a\x1b".to_owned()],
            restored: vec!["/out/b".to_owned()],
            conflicts: vec![conflict],
        };
        assert_eq!(
            as_text(&undone),
            "removed   /out/a\\u{1b}\n\
             restored  /out/b\n\
             kept      /out/c: it was changed\\u{7}\n\
             exp-1: 1 removed, 1 restored, 1 kept"
        );
    }
}
