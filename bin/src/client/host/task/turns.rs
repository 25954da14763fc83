//! List the turns of a task.

use clap::Args;
use cofferdam_protocol::host::{ListTurns, TurnList};
use jiff::tz::Offset;

use super::moment;
use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::moment::{local_offset, zone};
use crate::client::shown::{excerpt, one_line};
use crate::client::table::table;

#[derive(Args, Debug)]
#[command(after_help = "A turn with a checkpoint can be gone back to: cofferdam task rewind TASK --turn N")]
pub(crate) struct Turns {
    /// The beginning of the task's id
    task: String,
    #[command(flatten)]
    shown: Shown,
}

impl Turns {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        let turns = run.control.host(&ListTurns { task_id })?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&turns)?);
        }
        Ok(run.terminal.print(as_table(&turns, local_offset()))?)
    }
}

fn as_table(list: &TurnList, offset: Offset) -> String {
    if list.turns.is_empty() {
        return "No turns found.".to_owned();
    }
    let began = format!("BEGAN({})", zone(offset));
    let mut rows = vec![["TURN", &began, "CHECKPOINT", "ASKED"].map(str::to_owned)];
    rows.extend(list.turns.iter().map(|row| {
        let checkpoint = if row.checkpoint { "yes" } else { "no" };
        [row.turn.to_string(), moment(row.at, offset), checkpoint.to_owned(), excerpt(&row.asked)]
    }));
    let mut text = table(&rows);
    for row in list.turns.iter().filter(|row| !row.checkpoint && !row.note.is_empty()) {
        text.push_str(&format!("\nTurn {} has no checkpoint: {}", row.turn, one_line(&row.note)));
    }
    if list.undo > 0 {
        text.push_str(&format!("\nThe rewind to turn {} can be taken back with --undo.", list.undo));
    }
    text
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::host::TurnRow;

    use super::*;
    use crate::client::host::testing::NOW;

    #[test]
    fn the_table_says_what_was_asked_and_which_turns_can_be_gone_back_to() {
        let row = |turn, checkpoint, asked: &str, note: &str| TurnRow {
            turn,
            at: NOW,
            asked: asked.to_owned(),
            checkpoint,
            note: note.to_owned(),
        };
        let turns =
            vec![row(1, true, "look\x1b[2J\nat it", ""), row(2, false, "more", "the disk\x07 was full")];
        assert_eq!(
            as_table(&TurnList { turns, undo: 1 }, Offset::UTC),
            "TURN  BEGAN(UTC+0)         CHECKPOINT  ASKED\n\
             1     2026-01-02 03:04:05  yes         look\\u{1b}[2J…\n\
             2     2026-01-02 03:04:05  no          more\n\
             Turn 2 has no checkpoint: the disk\\u{7} was full\n\
             The rewind to turn 1 can be taken back with --undo."
        );
        assert_eq!(as_table(&TurnList { turns: Vec::new(), undo: 0 }, Offset::UTC), "No turns found.");
    }
}
