//! List the turns of a task.

use clap::Args;
use cofferdam_protocol::host::{ListTurns, TurnList, Undoable, WayBack};
use jiff::tz::Offset;

use super::moment;
use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::moment::{local_offset, zone};
use crate::client::shown::{excerpt, one_line};
use crate::client::table::table;

#[derive(Args, Debug)]
#[command(after_help = "A turn with a checkpoint can be gone back to: cofferdam task rewind TASK --turn N\n\
                        What was done in a turn that does not stand was taken back by a rewind.")]
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
    let mut rows = vec![["TURN", &began, "CHECKPOINT", "STANDS", "ASKED"].map(str::to_owned)];
    rows.extend(list.turns.iter().map(|row| {
        let checkpoint = match (row.checkpoint, row.incomplete.as_str()) {
            (false, _) => "no",
            (true, "") => "yes",
            (true, _) => "not whole",
        };
        let stands = if row.stands { "yes" } else { "no" };
        let (turn, began) = (row.turn.to_string(), moment(row.at, offset));
        [turn, began, checkpoint.to_owned(), stands.to_owned(), excerpt(&row.asked)]
    }));
    let mut text = table(&rows);
    for row in &list.turns {
        let (turn, note, incomplete) = (row.turn, one_line(&row.note), one_line(&row.incomplete));
        if !row.checkpoint && !note.is_empty() {
            text.push_str(&format!("\nTurn {turn} has no checkpoint: {note}"));
        }
        if row.checkpoint && !incomplete.is_empty() {
            text.push_str(&format!("\nThe checkpoint of turn {turn} is not whole: {incomplete}"));
        }
    }
    if let Some(undo) = &list.undo {
        text.push_str(&format!("\nLast, {}. --undo takes that back.", done(undo, offset)));
    }
    text
}

/// What was done last of what can be undone.
pub(super) fn done(undo: &Undoable, offset: Offset) -> String {
    let at = match undo.at {
        0 => String::new(),
        at => format!(" at {}", moment(at, offset)),
    };
    let turn = undo.turn;
    match undo.of {
        WayBack::Rewind => format!("it was rewound to before turn {turn}{at}"),
        WayBack::Undo => format!("the rewind to before turn {turn} was undone{at}"),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::host::TurnRow;

    use super::*;
    use crate::client::host::testing::NOW;

    #[test]
    fn the_table_says_what_was_asked_and_which_turns_can_be_gone_back_to() {
        let row = |turn, asked: &str| TurnRow {
            turn,
            at: NOW,
            asked: asked.to_owned(),
            checkpoint: true,
            note: String::new(),
            incomplete: String::new(),
            stands: true,
            after: Some(turn - 1),
        };
        let lacking = TurnRow { incomplete: "a\x07 could not be read".to_owned(), ..row(2, "more") };
        let turns = vec![
            row(1, "look\x1b[2J\nat it"),
            lacking,
            TurnRow {
                checkpoint: false,
                stands: false,
                note: "the disk\x07 was full".to_owned(),
                ..row(3, "most")
            },
        ];
        let undo = Undoable {
            of: WayBack::Rewind,
            turn: 3,
            at: NOW,
            brings: vec![3],
            takes: Vec::new(),
            incomplete: String::new(),
        };
        let shown = |undo| as_table(&TurnList { turns: turns.clone(), undo }, Offset::UTC);
        assert_eq!(
            shown(Some(undo.clone())),
            "TURN  BEGAN(UTC+0)         CHECKPOINT  STANDS  ASKED\n\
             1     2026-01-02 03:04:05  yes         yes     look\\u{1b}[2J…\n\
             2     2026-01-02 03:04:05  not whole   yes     more\n\
             3     2026-01-02 03:04:05  no          no      most\n\
             The checkpoint of turn 2 is not whole: a\\u{7} could not be read\n\
             Turn 3 has no checkpoint: the disk\\u{7} was full\n\
             Last, it was rewound to before turn 3 at 2026-01-02 03:04:05. --undo takes that back."
        );
        let undone = shown(Some(Undoable { of: WayBack::Undo, at: 0, ..undo }));
        let last = "\nLast, the rewind to before turn 3 was undone. --undo takes that back.";
        assert!(undone.ends_with(last), "{undone}");
        assert_eq!(as_table(&TurnList { turns: Vec::new(), undo: None }, Offset::UTC), "No turns found.");
    }
}
