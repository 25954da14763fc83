//! The state of a client's recovery, and how it changes. Pure: it knows no actors, no core and no time.

use std::num::NonZeroU64;

use cofferdam_protocol::session::{SessionId, bounded, limits};

use super::error::ClientError;
use super::observer::{Ending, RunObserver, TurnEnd};
use super::table::{ActiveBecomes, ChoiceBecomes, Effect, ErrorBecomes, Event, Hold, Then, effect};
use super::verdict::Verdict;

/// Which session is chosen, which is active, and whose turn may change that.
#[derive(Clone, Debug)]
pub(crate) struct State {
    active: Option<OwnedActive>,
    choice: Choice,
    last_error: Option<ClientError>,
    /// The newest turn, or the newest event that made every turn a stale one.
    latest: Option<Generation>,
    next: Generation,
}

/// Numbers turns and events. Zero is none of them, also after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Generation(NonZeroU64);

#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedActive {
    active: Active,
    /// The turn that made it active, or resumes it.
    owner: Generation,
}

/// What the user has chosen to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    None,
    Selected(Selection),
    /// A turn resumes it.
    Restoring {
        selection: Selection,
        owner: Generation,
    },
    Active,
    Failed,
}

/// The session that the newest complete turn was in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Active {
    /// The provider's id of it.
    pub session_id: String,
    /// Its workspace.
    pub workspace: String,
}

/// The session that the user has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Its id.
    pub session_id: String,
    /// The workspace in which it was chosen.
    pub workspace: String,
}

/// A turn's token. What it may change ends with it being the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    resumes: Resumes,
    workspace: String,
    generation: Generation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Resumes {
    Selected(String),
    Active(String),
    Nothing,
}

/// How far the choice of a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was chosen.
    None,
    /// One is chosen, and the next turn in its workspace resumes it.
    Selected,
    /// A turn resumes it.
    Restoring,
    /// The newest turn was in the active session.
    Active,
    /// It could not be chosen or resumed.
    Failed,
}

/// What is so at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The active session.
    pub active: Option<Active>,
    /// How far the choice has come.
    pub phase: Phase,
    /// The chosen session; one exactly while it is selected or being restored.
    pub selected: Option<Selection>,
    /// The newest failure that the user has not got over.
    pub last_error: Option<ClientError>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            active: None,
            choice: Choice::None,
            last_error: None,
            latest: None,
            next: Generation(NonZeroU64::MIN),
        }
    }
}

impl State {
    /// The user has chosen a session, and the core found it in order.
    pub(crate) fn select(&mut self, selection: Selection) {
        self.by_user(Event::Selected(selection));
    }

    /// The user has chosen a session, and it is none that can be resumed.
    pub(super) fn reject(&mut self, error: ClientError) {
        self.by_user(Event::Rejected(error));
    }

    /// Forgets every session; the reply is the one that was given up.
    pub(super) fn start_fresh(&mut self) -> Option<String> {
        let active = self.active.as_ref().map(|owned| owned.active.session_id.clone());
        let given_up = active.or_else(|| self.selection().map(|selection| selection.session_id.clone()));
        self.by_user(Event::StartedFresh);
        given_up
    }

    /// Begins a turn. It resumes the chosen session, else the active one, if that is in the turn's workspace.
    pub(crate) fn begin(&mut self, workspace: &str, resume: bool) -> Attempt {
        let selected = self.selection().filter(|one| resume && one.workspace == workspace);
        let active = self.active.as_ref().filter(|one| resume && one.active.workspace == workspace);
        let (event, resumes) = match (selected, active) {
            (Some(one), _) => (Event::BeganSelected, Resumes::Selected(one.session_id.clone())),
            (None, Some(one)) => (Event::BeganActive, Resumes::Active(one.active.session_id.clone())),
            (None, None) => (Event::BeganFresh, Resumes::Nothing),
        };
        let generation = self.by_user(event);
        Attempt { resumes, workspace: workspace.to_owned(), generation }
    }

    /// Ends a turn: first what it said about its session, then how it ended.
    pub(crate) fn finish(&mut self, attempt: &Attempt, run: &RunObserver, end: TurnEnd) -> Verdict {
        if let Some(error) = run.session_error() {
            self.by_turn(attempt, Event::SessionError(error.clone()));
        }
        self.by_turn(attempt, attempt.event(run.ending(end)))
    }

    /// The sessions in use, which must not be removed. What is no session's id is no stored session's either.
    pub(super) fn protected(&self) -> Vec<SessionId> {
        let active = self.active.as_ref().map(|owned| &owned.active.session_id);
        let selected = self.selection().map(|one| &one.session_id).filter(|one| Some(*one) != active);
        active.into_iter().chain(selected).filter_map(|id| SessionId::new(id.as_str()).ok()).collect()
    }

    /// What is so now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            active: self.active.as_ref().map(|owned| owned.active.clone()),
            phase: match self.choice {
                Choice::None => Phase::None,
                Choice::Selected(_) => Phase::Selected,
                Choice::Restoring { .. } => Phase::Restoring,
                Choice::Active => Phase::Active,
                Choice::Failed => Phase::Failed,
            },
            selected: self.selection().cloned(),
            last_error: self.last_error.clone(),
        }
    }

    fn selection(&self) -> Option<&Selection> {
        match &self.choice {
            Choice::Selected(selection) | Choice::Restoring { selection, .. } => Some(selection),
            Choice::None | Choice::Active | Choice::Failed => None,
        }
    }

    /// What a turn still holds.
    fn hold(&self, Attempt { resumes, generation, .. }: &Attempt) -> Hold {
        let owns_active = self.active.as_ref().is_some_and(|active| active.owner == *generation);
        match (resumes, &self.choice) {
            _ if self.latest != Some(*generation) => Hold::Stale,
            (Resumes::Nothing, _) => Hold::Fresh,
            (Resumes::Selected(_), Choice::Restoring { owner, .. }) if owner == generation => Hold::Selected,
            (Resumes::Active(_), _) if owns_active => Hold::Active,
            (Resumes::Selected(_) | Resumes::Active(_), _) => Hold::Released,
        }
    }

    /// What the user does makes every turn so far a stale one.
    fn by_user(&mut self, event: Event) -> Generation {
        let generation = self.next;
        self.next = generation.next();
        self.latest = Some(generation);
        self.apply(effect(&event, Hold::Stale, self.selection().is_some()), generation, event);
        generation
    }

    fn by_turn(&mut self, attempt: &Attempt, event: Event) -> Verdict {
        let effect = effect(&event, self.hold(attempt), self.selection().is_some());
        let verdict = match (effect.then, event.error()) {
            (Then::RestoreFailed, Some(error)) => Verdict::RestoreFailed(error.clone()),
            (Then::RestoreFailed, None) | (Then::Continue, _) => Verdict::Continue,
            (Then::StaleAttempt, _) => Verdict::StaleAttempt,
        };
        self.apply(effect, attempt.generation, event);
        verdict
    }

    fn apply(&mut self, effect: Effect, generation: Generation, event: Event) {
        match effect.error {
            ErrorBecomes::Same => {}
            ErrorBecomes::This => self.last_error = event.error().cloned(),
            ErrorBecomes::None => self.last_error = None,
        }
        let (reported, chosen) = match event {
            Event::Reported(active) => (Some(active), None),
            Event::Selected(selection) => (None, Some(selection)),
            _ => (None, None),
        };
        let owned = |active| OwnedActive { active, owner: generation };
        match effect.active {
            ActiveBecomes::Same => {}
            ActiveBecomes::TheTurns => self.active = self.active.take().map(|own| owned(own.active)),
            ActiveBecomes::Reported => self.active = reported.map(owned),
            ActiveBecomes::None => self.active = None,
        }
        match (effect.choice, chosen.or_else(|| self.selection().cloned())) {
            (ChoiceBecomes::Selected, Some(selection)) => self.choice = Choice::Selected(selection),
            (ChoiceBecomes::Restoring, Some(selection)) => {
                self.choice = Choice::Restoring { selection, owner: generation };
            }
            (ChoiceBecomes::Same | ChoiceBecomes::Selected | ChoiceBecomes::Restoring, _) => {}
            (ChoiceBecomes::Active, _) => self.choice = Choice::Active,
            (ChoiceBecomes::Failed, _) => self.choice = Choice::Failed,
            (ChoiceBecomes::None, _) => self.choice = Choice::None,
        }
    }
}

impl Attempt {
    /// The session to resume: the argument of `--resume`, if there is to be one.
    pub fn resume(&self) -> Option<&str> {
        match &self.resumes {
            Resumes::Selected(id) | Resumes::Active(id) => Some(id),
            Resumes::Nothing => None,
        }
    }

    /// What the end of this turn is to the state.
    fn event(&self, ending: Ending<'_>) -> Event {
        let resumed = self.resume();
        // Errors are about what was resumed; without that, nobody sees them.
        let shown = resumed.unwrap_or_default();
        match ending {
            Ending::Reported(id) if resumed.is_none_or(|resumed| resumed == id) => {
                Event::Reported(Active { session_id: id.to_owned(), workspace: self.workspace.clone() })
            }
            Ending::Reported(id) => Event::Misreported(not_restored(&format!(
                "identity mismatch: session {shown} was resumed, but the turn was in {}",
                bounded(id, limits::SKIPPED_ID)
            ))),
            Ending::Unfinished => Event::Unfinished(not_restored(&format!(
                "the turn that resumed session {shown} was not completed"
            ))),
            Ending::NotResumable => Event::NotResumable(ClientError::new(
                ClientError::RESTORE_FAILED,
                format!("session {shown} is not resumable: the provider keeps no sessions"),
                "Start a new session, or enable persistence (session.auto_persist).",
            )),
        }
    }
}

fn not_restored(message: &str) -> ClientError {
    ClientError::new(ClientError::RESTORE_FAILED, message, "Refresh the session list and try again.")
}

impl Event {
    /// The error that it is about, if it is.
    fn error(&self) -> Option<&ClientError> {
        match self {
            Self::Rejected(error)
            | Self::SessionError(error)
            | Self::Misreported(error)
            | Self::Unfinished(error)
            | Self::NotResumable(error) => Some(error),
            Self::Selected(_)
            | Self::StartedFresh
            | Self::BeganSelected
            | Self::BeganActive
            | Self::BeganFresh
            | Self::Reported(_) => None,
        }
    }
}

impl Generation {
    /// The next one.
    fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(NonZeroU64::MIN))
    }
}

impl Phase {
    /// The word for it, which users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Selected => "selected",
            Self::Restoring => "restoring",
            Self::Active => "active",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
