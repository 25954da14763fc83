//! Which conversation a turn resumes, and what its end means for that.
//!
//! The rules are those of any client of sessions: `session::recovery` has the table. Its actor is not used, for two reasons. It
//! asks a core which sessions can be resumed, and clears them, where people choose among many; here there is one, whose id
//! never changes, and the host has read it before the turn. And it is one client's; each agent would need one of its own, to be
//! waited for while nobody else can be in its way, since turns of an agent do not overlap.

use crate::session::recovery::{Attempt, LastEvent, RunObserver, Selection, State, TurnEnd};

/// The state of one agent.
#[derive(Clone, Debug, Default)]
pub(in crate::host::agent::command) struct Recovery(State);

/// What a turn ended with, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Well.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// Not well: why, and what to do.
    Failed(String),
}

impl Recovery {
    /// Begins a turn in the conversation of the task. Until a turn was completed in it, it is the one that the host has chosen.
    pub(super) fn begin(&mut self, workspace: &str, session_id: &str) -> Attempt {
        let active = self.0.snapshot().active;
        if active.is_none_or(|active| active.session_id != session_id || active.workspace != workspace) {
            let (session_id, workspace) = (session_id.to_owned(), workspace.to_owned());
            self.0.select(Selection { session_id, workspace });
        }
        self.0.begin(workspace, true)
    }

    /// Ends a turn. Nothing: it was not the newest any more, and nobody is to hear of it.
    pub(super) fn finish(&mut self, attempt: &Attempt, run: &RunObserver, ended: Shown) -> Option<Shown> {
        let (end, event) = match ended {
            Shown::Completed => (TurnEnd::Ended, LastEvent::Completed),
            Shown::Failed(why) => (TurnEnd::Ended, LastEvent::Failed(why)),
            Shown::Cancelled => (TurnEnd::Cancelled, LastEvent::Cancelled),
        };
        let verdict = self.0.finish(attempt, run, end);
        let completed = event == LastEvent::Completed;
        let hint = match run.session_error() {
            Some(error) => error.hint.clone(),
            // What was said of the failure is shown in place of what that means for the conversation.
            None if completed => self.0.snapshot().last_error.and_then(|error| error.hint),
            None => None,
        };
        Some(match verdict.shown(event)? {
            LastEvent::Completed => Shown::Completed,
            LastEvent::Cancelled => Shown::Cancelled,
            LastEvent::Failed(why) => Shown::Failed(match hint {
                Some(hint) => format!("{why}. {hint}"),
                None => why,
            }),
        })
    }
}
