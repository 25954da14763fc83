//! Show how two snapshots differ.

use clap::Args;
use cofferdam_protocol::ckpt::{DiffEntry, DiffKind};

use crate::client::arguments::Shown;
use crate::client::failure::Failure;
use crate::client::invocation::{Invocation, workspace};
use crate::client::shown::one_line;
use crate::terminal::{Colour, Terminal};

#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// The directory, or the id of its workspace
    #[arg(short, long, value_name = "PATH")]
    workspace: String,
    /// The earlier snapshot, or the unique beginning of its name
    #[arg(short, long, value_name = "ID")]
    from: String,
    /// The later one, likewise, or @live for the directory as it is now
    #[arg(short, long, value_name = "ID")]
    to: String,
    #[command(flatten)]
    shown: Shown,
}

impl Diff {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let changes = invocation.client.diff(&workspace(&self.workspace)?, &self.from, &self.to)?;
        if self.shown.as_json(&mut invocation.terminal) {
            return Ok(invocation.terminal.print_json(&changes)?);
        }
        let text = as_text(&changes, &invocation.terminal);
        Ok(invocation.terminal.print(text)?)
    }
}

fn as_text(changes: &[DiffEntry], terminal: &Terminal) -> String {
    if changes.is_empty() {
        return "No differences found.".to_owned();
    }
    let mut text = String::new();
    for change in changes {
        let (mark, colour) = match change.change_type {
            DiffKind::Added => ("+", Colour::Green),
            DiffKind::Deleted => ("-", Colour::Red),
            DiffKind::Modified => ("M", Colour::Yellow),
            DiffKind::Renamed => ("R", Colour::Cyan),
        };
        let path = one_line(&change.path);
        let detail = change.detail.as_deref().map(|detail| format!(" ({})", one_line(detail)));
        text.push_str(&terminal.paint(colour, &format!("{mark}  {path}{}", detail.unwrap_or_default())));
        text.push('\n');
    }
    format!("{text}\n{} change(s)", changes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::testing::{Input, terminal};

    #[test]
    fn each_change_is_a_mark_a_path_and_a_detail() {
        let change = |path: &str, change_type, detail: Option<&str>| DiffEntry {
            path: path.to_owned(),
            change_type,
            detail: detail.map(str::to_owned),
        };
        let changes = [
            change("src/new.rs", DiffKind::Added, None),
            change("src/lib.rs", DiffKind::Modified, None),
            change("old", DiffKind::Deleted, Some("directory")),
            change("bar", DiffKind::Renamed, Some("foo → bar")),
        ];
        let (terminal, ..) = terminal(Input::Piped(""));
        assert_eq!(
            as_text(&changes, &terminal),
            "+  src/new.rs\nM  src/lib.rs\n-  old (directory)\nR  bar (foo → bar)\n\n4 change(s)"
        );
        assert_eq!(as_text(&[], &terminal), "No differences found.");
    }
}
