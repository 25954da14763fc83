//! What holds in every order of events.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const WORKSPACES: [&str; 2] = ["/a", "/b"];

/// Something that a client does. Turns are named by the order in which they began.
#[derive(Clone, Debug)]
enum Step {
    Select { id: u8, workspace: usize },
    Reject,
    StartFresh,
    Begin { workspace: usize, resume: bool },
    Finish { turn: prop::sample::Index, said: Said, cancelled: bool },
}

/// What a turn said.
#[derive(Clone, Copy, Debug)]
enum Said {
    /// Success, in the session that was resumed, or else in this one.
    Resumed(u8),
    /// Success, in this one.
    Success(u8),
    Failure,
    TooLong(u8),
    NotKept(u8),
    LoadError,
    PersistError,
    Nothing,
}

fn id(of: u8) -> String {
    format!("00000000-0000-4000-8000-00000000000{of}")
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let said = prop_oneof![
        4 => (0u8..3).prop_map(Said::Resumed),
        2 => (0u8..3).prop_map(Said::Success),
        1 => Just(Said::Failure),
        1 => (0u8..3).prop_map(Said::TooLong),
        1 => (0u8..3).prop_map(Said::NotKept),
        1 => Just(Said::LoadError),
        1 => Just(Said::PersistError),
        1 => Just(Said::Nothing),
    ];
    let step = prop_oneof![
        2 => (0u8..3, 0usize..2).prop_map(|(id, workspace)| Step::Select { id, workspace }),
        1 => Just(Step::Reject),
        1 => Just(Step::StartFresh),
        5 => (0usize..2, prop::bool::weighted(0.8)).prop_map(|(workspace, resume)| Step::Begin { workspace, resume }),
        6 => (any::<prop::sample::Index>(), said, prop::bool::weighted(0.2))
            .prop_map(|(turn, said, cancelled)| Step::Finish { turn, said, cancelled }),
    ];
    prop::collection::vec(step, 1..40)
}

fn observe(said: Said, resumed: Option<&str>) -> RunObserver {
    let result = |error: bool, id: &str| json!({"type": "result", "is_error": error, "session_id": id});
    let init = |resumable: bool| json!({"type": "system", "subtype": "init", "session_resumable": resumable});
    let with = |code: &str, phase: &str| json!({"type": "result", "is_error": true, "session_error_code": code, "session_error_phase": phase});
    let lines = match said {
        Said::Resumed(other) => vec![result(false, resumed.unwrap_or(&id(other)))],
        Said::Success(one) => vec![result(false, &id(one))],
        Said::Failure => vec![result(true, &id(0))],
        Said::TooLong(one) => {
            let mut line = result(true, &id(one));
            line["error_code"] = json!("max_turns");
            vec![init(true), line]
        }
        Said::NotKept(one) => vec![init(false), result(false, &id(one))],
        Said::LoadError => vec![with("corrupt", "load")],
        Said::PersistError => vec![with("conflict", "persist")],
        Said::Nothing => vec![],
    };
    let mut run = RunObserver::default();
    lines.iter().for_each(|line| run.line(line));
    run
}

/// A state whose generations are about to wrap, and every turn that ever began.
struct Walk {
    state: State,
    turns: Vec<Attempt>,
    /// Turns that held nothing once.
    over: Vec<Attempt>,
}

impl Walk {
    fn new(first: u64) -> Self {
        let state = State { next: Generation(NonZeroU64::new(first).unwrap()), ..State::default() };
        Self { state, turns: Vec::new(), over: Vec::new() }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let before = self.state.snapshot();
        match step {
            Step::Select { id: of, workspace } => {
                let workspace = WORKSPACES[*workspace].to_owned();
                let selection = Selection { session_id: id(*of), workspace };
                self.state.select(selection.clone());
                let after = self.state.snapshot();
                prop_assert_eq!(&after.active, &before.active);
                prop_assert_eq!(after.selected, Some(selection));
            }
            Step::Reject => {
                self.state.reject(ClientError::transport("refused"));
                prop_assert_eq!(&self.state.snapshot().active, &before.active);
            }
            Step::StartFresh => {
                let given_up = self.state.start_fresh();
                let had = before.active.map(|active| active.session_id);
                prop_assert_eq!(given_up, had.or(before.selected.map(|selected| selected.session_id)));
                prop_assert_eq!(self.state.snapshot(), State::default().snapshot());
            }
            Step::Begin { workspace, resume } => {
                let workspace = WORKSPACES[*workspace];
                let attempt = self.state.begin(workspace, *resume);
                let after = self.state.snapshot();
                let fits = |selected: &&Selection| selected.workspace == workspace;
                let selected = before.selected.as_ref().filter(fits).map(|one| one.session_id.as_str());
                let active = before.active.as_ref().filter(|active| active.workspace == workspace);
                let active = active.map(|active| active.session_id.as_str());
                prop_assert_eq!(attempt.resume(), selected.or(active).filter(|_| *resume));
                prop_assert_eq!(&after.active, &before.active);
                prop_assert_eq!(&after.selected, &before.selected);
                prop_assert!(!self.turns.iter().any(|turn| turn.generation == attempt.generation));
                self.turns.push(attempt);
            }
            Step::Finish { turn, said, cancelled } => {
                if self.turns.is_empty() {
                    return Ok(());
                }
                let attempt = turn.get(&self.turns).clone();
                self.finish(&attempt, *said, *cancelled)?;
            }
        }
        self.check()
    }

    fn finish(&mut self, attempt: &Attempt, said: Said, cancelled: bool) -> Result<(), TestCaseError> {
        let before = self.state.snapshot();
        let hold = self.state.hold(attempt);
        let end = if cancelled { TurnEnd::Cancelled } else { TurnEnd::Ended };
        let verdict = self.state.finish(attempt, &observe(said, attempt.resume()), end);
        let after = self.state.snapshot();
        prop_assert_eq!(hold == Hold::Stale, verdict == Verdict::StaleAttempt);
        if matches!(hold, Hold::Stale | Hold::Released) {
            prop_assert_eq!(&after, &before);
        }
        if hold == Hold::Fresh {
            prop_assert_eq!(&after.selected, &before.selected);
        }
        if before.active.is_some() && after.active.is_none() {
            prop_assert_eq!(hold, Hold::Active);
        }
        if before.selected != after.selected {
            prop_assert_eq!(hold, Hold::Selected);
        }
        if after.active != before.active
            && let Some(active) = &after.active
        {
            prop_assert!(!cancelled && verdict == Verdict::Continue);
            prop_assert_eq!(&active.workspace, &attempt.workspace);
            prop_assert!(attempt.resume().is_none_or(|resumed| resumed == active.session_id));
        }
        Ok(())
    }

    /// What is so at any moment.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let Snapshot { active, phase, selected, .. } = self.state.snapshot();
        prop_assert_eq!(selected.is_some(), matches!(phase, Phase::Selected | Phase::Restoring));
        let owners = self.turns.iter().filter(|turn| self.state.hold(turn) != Hold::Stale);
        prop_assert!(owners.count() <= 1);
        let over = |turn: &&Attempt| matches!(self.state.hold(turn), Hold::Stale | Hold::Released);
        prop_assert!(self.over.iter().all(|turn| over(&turn)), "what a turn lost it never gets back");
        self.over = self.turns.iter().filter(over).cloned().collect();
        let protected = self.state.protected();
        for used in
            active.map(|active| active.session_id).into_iter().chain(selected.map(|one| one.session_id))
        {
            prop_assert_eq!(protected.iter().filter(|one| one.as_str() == used).count(), 1);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_the_newest_turn_changes_anything_and_a_session_is_chosen_exactly_while_it_is_selected_or_restored(
        steps in steps(),
        first in prop_oneof![Just(1), (u64::MAX - 5)..=u64::MAX],
    ) {
        let mut walk = Walk::new(first);
        for step in &steps {
            walk.step(step)?;
        }
    }
}

#[test]
fn generations_go_round_and_none_is_zero() {
    let last = Generation(NonZeroU64::MAX);
    assert_eq!(last.next(), Generation(NonZeroU64::MIN));
}
