//! The state table: what each event does, by what the turn still holds, and by whether a session is chosen.

use super::error::ClientError;
use super::state::{Active, Selection};

/// What a turn holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// The chosen session, which it resumes.
    Selected,
    /// The active session, which it resumes.
    Active,
    /// No session: it resumed none.
    Fresh,
    /// No session any more, though it is the newest turn.
    Released,
    /// Nothing: it is not the newest turn.
    Stale,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The user has chosen a session, and the core found it in order.
    Selected(Selection),
    /// The user has chosen a session, and the core refused it.
    Rejected(ClientError),
    /// The user wants none of the sessions so far.
    StartedFresh,

    /// A turn begins that resumes the chosen session.
    BeganSelected,
    /// A turn begins that resumes the active session.
    BeganActive,
    /// A turn begins that resumes none.
    BeganFresh,

    /// The provider said that the session cannot be loaded or stored.
    SessionError(ClientError),
    /// The turn is complete, in the session that was to be resumed; or in any, if none was.
    Reported(Active),
    /// The turn is complete, in another session than the one that was to be resumed.
    Misreported(ClientError),
    /// The turn is not complete, or it is not known in which session it was.
    Unfinished(ClientError),
    /// The provider keeps no sessions.
    NotResumable(ClientError),
}

/// What becomes of the active session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActiveBecomes {
    /// It stays.
    Same,
    /// It stays, and is the turn's.
    TheTurns,
    /// It is the one the provider reports.
    Reported,
    /// There is none.
    None,
}

/// What becomes of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChoiceBecomes {
    /// It stays.
    Same,
    /// It is the event's, else what it was, but no turn resumes it.
    Selected,
    /// It is being resumed by the turn.
    Restoring,
    /// It was resumed.
    Active,
    /// It could not be resumed.
    Failed,
    /// There is none.
    None,
}

/// What becomes of the newest error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorBecomes {
    /// It stays.
    Same,
    /// It is the event's.
    This,
    /// There is none.
    None,
}

/// What the front end does with the turn's last events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// It delivers them.
    Continue,
    /// It says that the session was not restored.
    RestoreFailed,
    /// It drops them.
    StaleAttempt,
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) active: ActiveBecomes,
    pub(super) choice: ChoiceBecomes,
    pub(super) error: ErrorBecomes,
    pub(super) then: Then,
}

const fn does(active: ActiveBecomes, choice: ChoiceBecomes, error: ErrorBecomes, then: Then) -> Effect {
    Effect { active, choice, error, then }
}

/// The table. `selected` is whether a session is chosen, one that is being resumed included.
#[rustfmt::skip]
pub(super) fn effect(event: &Event, hold: Hold, selected: bool) -> Effect {
    use ActiveBecomes as A;
    use ChoiceBecomes as C;
    use ErrorBecomes as E;
    use Event::*;
    use Hold as H;
    use Then::*;
    match (event, hold, selected) {
        // The user. Each of these makes every turn so far a stale one.
        (Selected(_),     _,                    _    ) => does(A::Same,     C::Selected,  E::None, Continue),
        (Rejected(_),     _,                    _    ) => does(A::Same,     C::Failed,    E::This, Continue),
        (StartedFresh,    _,                    _    ) => does(A::None,     C::None,      E::None, Continue),

        // A turn begins. It is the newest from here on.
        (BeganSelected,   _,                    _    ) => does(A::Same,     C::Restoring, E::None, Continue),
        (BeganActive,     _,                    _    ) => does(A::TheTurns, C::Same,      E::Same, Continue),
        (BeganFresh,      _,                    _    ) => does(A::Same,     C::Selected,  E::Same, Continue),

        // A turn ends: first what the provider said about the session. Only the one that was resumed is given up.
        (SessionError(_), H::Selected,          _    ) => does(A::Same,     C::Failed,    E::This, Continue),
        (SessionError(_), H::Active,            false) => does(A::None,     C::Failed,    E::This, Continue),
        (SessionError(_), H::Active,            true ) => does(A::None,     C::Same,      E::This, Continue),
        (SessionError(_), _,                    _    ) => does(A::Same,     C::Same,      E::Same, Continue),

        // Then how it ended. Whoever is not the newest, or gave its session up, changes nothing.
        (_,               H::Stale,             _    ) => does(A::Same,     C::Same,      E::Same, StaleAttempt),
        (_,               H::Released,          _    ) => does(A::Same,     C::Same,      E::Same, Continue),

        (Reported(_),     H::Selected,          _    ) => does(A::Reported, C::Active,    E::None, Continue),
        (Reported(_),     H::Active | H::Fresh, false) => does(A::Reported, C::Active,    E::None, Continue),
        (Reported(_),     H::Active | H::Fresh, true ) => does(A::Reported, C::Same,      E::None, Continue),

        (Misreported(_),  H::Selected,          _    ) => does(A::Same,     C::Failed,    E::This, RestoreFailed),
        (Misreported(_),  H::Active,            false) => does(A::None,     C::Failed,    E::This, RestoreFailed),
        (Misreported(_),  H::Active,            true ) => does(A::None,     C::Same,      E::This, RestoreFailed),
        (Misreported(_),  H::Fresh,             _    ) => does(A::Same,     C::Same,      E::Same, Continue),

        // An active session survives a provider that fails.
        (Unfinished(_),   H::Selected,          _    ) => does(A::Same,     C::Failed,    E::This, RestoreFailed),
        (Unfinished(_),   H::Active | H::Fresh, _    ) => does(A::Same,     C::Same,      E::Same, Continue),

        (NotResumable(_), H::Selected,          _    ) => does(A::Same,     C::Failed,    E::This, RestoreFailed),
        (NotResumable(_), H::Active,            false) => does(A::None,     C::None,      E::None, Continue),
        (NotResumable(_), H::Active,            true ) => does(A::None,     C::Same,      E::Same, Continue),
        (NotResumable(_), H::Fresh,             _    ) => does(A::Same,     C::Same,      E::Same, Continue),
    }
}
