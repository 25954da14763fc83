//! Bring a task back to what it was before a turn.

use clap::{ArgGroup, Args};
use cofferdam_protocol::host::{ListTurns, RewindTask, Rewound, TurnList, UndoRewind};

use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::{Run, find};
use crate::client::shown::{excerpt, one_line};

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("where").required(true).args(["turn", "undo"]))]
#[command(
    after_help = "The task's files, what its agent keeps, and the conversation go back together. What there is now is kept: \
                  --undo brings it back, and --undo once more takes that back. See cofferdam task turns."
)]
pub(crate) struct Rewind {
    /// The beginning of the task's id
    task: String,
    /// Before which turn
    #[arg(long, value_name = "N")]
    turn: Option<u64>,
    /// Take the last rewind back
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
            run.terminal.say(plan(&task_id, self.turn, &turns));
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
        Ok(run.terminal.print(self.told(&rewound))?)
    }

    fn told(&self, rewound: &Rewound) -> String {
        let (id, turn) = (one_line(&rewound.task.task.id), rewound.turn);
        let when = if self.undo { format!("the rewind to turn {turn}") } else { format!("turn {turn}") };
        let paths = if rewound.changed == 1 { "path" } else { "paths" };
        format!(
            "{id} is what it was before {when} ({} {paths} changed); --undo takes that back",
            rewound.changed
        )
    }
}

/// What will be done. The daemon judges whether it can be.
fn plan(task: &str, turn: Option<u64>, list: &TurnList) -> String {
    let id = one_line(task);
    let Some(turn) = turn else {
        return match list.undo {
            0 => format!("{id} has no rewind that could be taken back."),
            undo => format!(
                "{id} goes back to what it was before the rewind to turn {undo}: files and conversation."
            ),
        };
    };
    let mut lines =
        vec![format!("{id} goes back to what it was before turn {turn}: files and conversation.")];
    if let Some(row) = list.turns.iter().find(|row| row.turn == turn) {
        lines.push(format!("  turn {turn} was asked: {}", excerpt(&row.asked)));
    }
    let later = list.turns.iter().filter(|row| row.turn >= turn).count();
    lines.push(format!("  {later} turn(s) since then are taken back; --undo brings them back"));
    lines.join("\n")
}
