//! Bring a task back to what it was before a turn.

use clap::{ArgGroup, Args};
use cofferdam_protocol::host::{ListTurns, RewindTask, Rewound, TurnList, UndoRewind, WayBack};
use jiff::tz::Offset;

use super::turns::done;

use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::moment::local_offset;
use crate::client::shown::{excerpt, one_line};

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("where").required(true).args(["turn", "undo"]))]
#[command(
    after_help = "The task's files, what its agent keeps, and the conversation go back together. What there is now is kept: \
                  --undo brings it back, and --undo once more rewinds the task again. See cofferdam task turns."
)]
pub(crate) struct Rewind {
    /// The beginning of the task's id
    task: String,
    /// Before which turn
    #[arg(long, value_name = "N")]
    turn: Option<u64>,
    /// Undo the last rewind, or the last undo
    #[arg(long)]
    undo: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Rewind {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let task_id = find::task(&run.control, &self.task)?.task.id;
        if !self.yes {
            let turns = run.control.host(&ListTurns { task_id: task_id.clone() })?;
            let plan = plan(&task_id, self.turn, &turns, local_offset()).map_err(Failure::Said)?;
            run.terminal.say(plan);
        }
        if !run.consent(self.yes, "Bring it back?")? {
            run.terminal.say("Nothing was changed.");
            return Ok(());
        }
        let rewound = match self.turn {
            Some(turn) => run.control.host(&RewindTask { task_id, turn })?,
            None => run.control.host(&UndoRewind { task_id })?,
        };
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&rewound)?);
        }
        for note in &rewound.notes {
            run.terminal.warn(format_args!("Note: {}", one_line(note)));
        }
        Ok(run.terminal.print(told(&rewound))?)
    }
}

/// What was done.
fn told(rewound: &Rewound) -> String {
    let (id, turn) = (one_line(&rewound.task.task.id), rewound.turn);
    let paths = if rewound.changed == 1 { "path" } else { "paths" };
    let changed = format!("{} {paths} changed", rewound.changed);
    match rewound.undid {
        None => {
            format!("{id} is what it was before turn {turn} ({changed}); --undo brings back what there was")
        }
        Some(WayBack::Rewind) => {
            format!("The rewind of {id} to before turn {turn} is undone ({changed}); --undo rewinds it again")
        }
        Some(WayBack::Undo) => format!(
            "{id} is again what the rewind to before turn {turn} had made of it ({changed}); --undo undoes that rewind"
        ),
    }
}

/// What will be done, or why there is nothing to be done. Whether it can be the daemon judges.
fn plan(task: &str, turn: Option<u64>, list: &TurnList, offset: Offset) -> Result<String, String> {
    let id = one_line(task);
    let mut lines = Vec::new();
    let (brings, takes, incomplete): (Vec<u64>, Vec<u64>, &String) = match turn {
        Some(turn) => {
            lines.push(format!("{id} goes back to what it was before turn {turn}: files and conversation."));
            let Some(row) = list.turns.iter().find(|row| row.turn == turn) else {
                return Err(format!("{id} has no turn {turn} that is known; see cofferdam task turns"));
            };
            lines.push(format!("  turn {turn} was asked: {}", excerpt(&row.asked)));
            let older = list.turns.iter().filter(|row| row.turn < turn).cloned().collect();
            let then = TurnList { turns: older, undo: None }.line(row.after);
            let brings = then.iter().rev().copied().filter(|turn| !stands(list, *turn)).collect();
            let taken = list.turns.iter().filter(|row| row.stands && !then.contains(&row.turn));
            (brings, taken.map(|row| row.turn).collect(), &row.incomplete)
        }
        None => {
            let Some(undo) = &list.undo else {
                return Err(format!(
                    "{id} has no rewind that could be undone; cofferdam task turns shows to which turns it can be rewound"
                ));
            };
            lines.push(format!(
                "{id}: {}. Files and conversation become again what they were just before that.",
                done(undo, offset)
            ));
            (undo.brings.clone(), undo.takes.clone(), &undo.incomplete)
        }
    };
    lines.extend(turns(&takes, "is taken back", "are taken back"));
    lines.extend(turns(&brings, "comes back", "come back"));
    if !incomplete.is_empty() {
        lines.push(format!("  not all of it will be as it was: {}", one_line(incomplete)));
    }
    lines.push("  what there is now is kept; --undo brings it back".to_owned());
    Ok(lines.join("\n"))
}

fn stands(list: &TurnList, turn: u64) -> bool {
    list.turns.iter().any(|row| row.turn == turn && row.stands)
}

/// What becomes of turns, in a line; nothing if there are none.
fn turns(turns: &[u64], one: &str, more: &str) -> Option<String> {
    match turns {
        [] => None,
        [turn] => Some(format!("  turn {turn} {one}")),
        // Mostly a row without a gap.
        [first, .., last] if last - first == turns.len() as u64 - 1 => {
            Some(format!("  turns {first} to {last} {more}"))
        }
        turns => {
            let turns: Vec<_> = turns.iter().map(u64::to_string).collect();
            Some(format!("  turns {} {more}", turns.join(", ")))
        }
    }
}
