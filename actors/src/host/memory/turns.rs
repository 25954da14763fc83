//! The turns there were, as a file beside the agent's directory: it is not taken back with that, so numbers only grow.

use cofferdam_protocol::host::{TurnList, TurnRow, Undoable, WayBack};
use cofferdam_protocol::pod::cut;
use serde::{Deserialize, Serialize};

/// The most turns that are listed; the oldest go first.
const TURNS: usize = 1000;
/// The most of what was asked, in UTF-16 units.
const ASKED: usize = 200;

/// The file. What is not there is as it would be by default, so that later versions can add to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Turns {
    /// Where the task works: for whoever finds this when its record has gone.
    pub(super) dir: String,
    /// Oldest first.
    pub(super) turns: Vec<TurnRecord>,
    /// The turn that runs, or ran when the host died.
    pub(super) open: Option<OpenTurn>,
    /// The turn whose end the task is at, if nothing was done since; 0: it had none. Nothing: nobody knows.
    pub(super) last: Option<u64>,
    /// The checkpoint from before the last rewind, or before that was undone: what undoing it leads to.
    pub(super) undo: Option<Undo>,
    /// How many rewinds there were.
    pub(super) rewinds: u64,
    /// Whether the task's record was removed here, and what is left only waits for being removed.
    pub(super) gone: bool,
}

/// A turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TurnRecord {
    /// Its number.
    pub(super) turn: u64,
    /// When it began, in milliseconds since the epoch.
    pub(super) at: i64,
    /// The beginning of what was asked.
    pub(super) asked: String,
    /// The checkpoint from before it; empty: there is none.
    pub(super) kept: String,
    /// Why there is none.
    pub(super) why: String,
    /// What is not in the checkpoint as it was; empty: nothing.
    pub(super) incomplete: String,
    /// The turn whose end it began at; 0: it was the first. Nothing: nobody knows.
    pub(super) after: Option<u64>,
}

/// A turn that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenTurn {
    /// Its number.
    pub(super) turn: u64,
    /// What was asked, whole.
    pub(super) told: String,
    /// How many messages the conversation had before it; nothing if whoever wrote this did not say.
    pub(super) messages: Option<usize>,
}

/// What undoing the last rewind leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Undo {
    /// The checkpoint.
    pub(super) kept: String,
    /// The turn before which the rewind led.
    pub(super) turn: u64,
    /// What is undone.
    pub(super) of: WayBack,
    /// When it was done, in milliseconds since the epoch.
    pub(super) at: i64,
    /// The turn whose end it leads to; 0: to before the first. Nothing: nobody knows.
    pub(super) last: Option<u64>,
    /// What is not in the checkpoint as it was; empty: nothing.
    pub(super) incomplete: String,
}

impl Turns {
    /// A turn begins. One of the same number came to nothing, and is replaced.
    pub(super) fn begin(&mut self, record: TurnRecord, told: &str, messages: usize) {
        self.gone = false;
        let asked = cut(&record.asked, ASKED).to_owned();
        self.open = Some(OpenTurn { turn: record.turn, told: told.to_owned(), messages: Some(messages) });
        let after = match self.get(record.turn) {
            Some(same) if self.last == Some(record.turn) => same.after,
            _ => self.last.or(self.turns.is_empty().then_some(0)),
        };
        self.last = Some(record.turn);
        self.turns.retain(|other| other.turn != record.turn);
        self.turns.push(TurnRecord { asked, after, ..record });
        let excess = self.turns.len().saturating_sub(TURNS);
        self.turns.drain(..excess);
    }

    /// The task was brought back. Told again, nothing has happened since.
    pub(super) fn went_back(&mut self, intent: Intent, at: i64) {
        let Intent { keep: kept, turn, undo, incomplete, .. } = intent;
        if self.undo.as_ref().is_some_and(|undo| undo.kept == kept) {
            return;
        }
        let (of, last) = match self.undo.take() {
            Some(undone) if undo => (undone.of.undone(), undone.last),
            _ => {
                let older = self.turns.iter().rev().map(|record| record.turn).find(|other| *other < turn);
                let after = self.get(turn).and_then(|record| record.after);
                (WayBack::Rewind, after.or(older).or(Some(0)))
            }
        };
        self.undo = Some(Undo { kept, turn, of, at, last: self.last, incomplete });
        self.last = last;
        self.rewinds += 1;
        self.open = None;
    }

    /// As people see it.
    pub(super) fn shown(self) -> TurnList {
        let row = |record: TurnRecord| TurnRow {
            turn: record.turn,
            at: record.at,
            asked: record.asked,
            checkpoint: !record.kept.is_empty(),
            note: record.why,
            incomplete: record.incomplete,
            stands: false,
            after: record.after,
        };
        let mut list = TurnList { turns: self.turns.into_iter().map(row).collect(), undo: None };
        let now = list.line(self.last);
        list.undo = self.undo.map(|Undo { turn, of, at, last, incomplete, .. }| {
            let then = list.line(last);
            let without = |these: &[u64], those: &[u64]| {
                these.iter().rev().copied().filter(|turn| !those.contains(turn)).collect()
            };
            let (brings, takes) = (without(&then, &now), without(&now, &then));
            Undoable { of, turn, at, brings, takes, incomplete }
        });
        for row in &mut list.turns {
            row.stands = now.contains(&row.turn);
        }
        list
    }

    /// The highest number a turn has had; 0: there was none.
    pub(super) fn highest(&self) -> u64 {
        self.turns.iter().map(|record| record.turn).max().unwrap_or(0)
    }

    /// The record of a turn.
    pub(super) fn get(&self, turn: u64) -> Option<&TurnRecord> {
        self.turns.iter().find(|record| record.turn == turn)
    }
}

/// A rewind under way, as a file: what is done first, and what then. Each step can be done again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Intent {
    /// The checkpoint that is taken of what there is now.
    pub(super) keep: String,
    /// The checkpoint that is gone back to.
    pub(super) target: String,
    /// The turn before which that was; of an undo, the one before which the rewind led that is undone.
    pub(super) turn: u64,
    /// Whether it undoes what was done last, a rewind or the undoing of one.
    pub(super) undo: bool,
    /// What is not in the checkpoint that is taken as it is now; empty: nothing.
    #[serde(default)]
    pub(super) incomplete: String,
    /// Whether the task's files are what they are to be. Before that nothing was changed, or at most just that.
    #[serde(default)]
    pub(super) files: bool,
    /// The checkpoint that was taken first, if the rewind was begun again since; empty: it was not.
    #[serde(default)]
    pub(super) before: String,
}
