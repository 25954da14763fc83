//! Turns from their beginning to their end, and what is chosen and active afterwards.

use serde_json::{Value, json};

use super::*;
use crate::session::recovery::LastEvent;

const WORKSPACE: &str = "/work/project";
const OLD: &str = "00000000-0000-4000-8000-000000000000";
const CHOSEN: &str = "00000000-0000-4000-8000-000000000001";
const OTHER: &str = "00000000-0000-4000-8000-000000000002";

fn chosen(id: &str) -> Selection {
    Selection { session_id: id.to_owned(), workspace: WORKSPACE.to_owned() }
}

fn run(lines: &[Value]) -> RunObserver {
    let mut run = RunObserver::default();
    lines.iter().for_each(|line| run.line(line));
    run
}

fn ok(id: &str) -> RunObserver {
    run(&[json!({"type": "result", "is_error": false, "session_id": id})])
}

fn session_error(code: &str, phase: &str) -> RunObserver {
    run(&[json!({
        "type": "result", "is_error": true, "errors": ["what the core said"],
        "session_error_code": code, "session_error_phase": phase, "session_id": CHOSEN,
    })])
}

fn not_kept(id: &str) -> RunObserver {
    run(&[
        json!({"type": "system", "subtype": "init", "session_resumable": false, "session_id": id}),
        json!({"type": "result", "is_error": false, "session_id": id}),
    ])
}

/// A state in which a turn made `OLD` the active session.
fn with_old() -> State {
    let mut state = State::default();
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(attempt.resume(), None);
    assert_eq!(state.finish(&attempt, &ok(OLD), TurnEnd::Ended), Verdict::Continue);
    state
}

/// One in which the user has chosen `CHOSEN` besides.
fn with_old_and_chosen() -> State {
    let mut state = with_old();
    state.select(chosen(CHOSEN));
    state
}

impl State {
    fn end(&mut self, attempt: &Attempt, run: &RunObserver) -> Verdict {
        self.finish(attempt, run, TurnEnd::Ended)
    }

    /// Active session, phase, chosen session, code of the newest error.
    fn is(&self) -> (Option<String>, &'static str, Option<String>, Option<String>) {
        let Snapshot { active, phase, selected, last_error } = self.snapshot();
        (
            active.map(|active| active.session_id),
            phase.as_str(),
            selected.map(|selected| selected.session_id),
            last_error.map(|error| error.code),
        )
    }

    #[track_caller]
    fn assert_is(&self, active: Option<&str>, phase: &str, selected: Option<&str>, error: Option<&str>) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let is = self.is();
        assert_eq!((is.0, is.1, is.2, is.3), (owned(active), phase, owned(selected), owned(error)));
    }
}

fn restore_failed(verdict: &Verdict) -> &ClientError {
    match verdict {
        Verdict::RestoreFailed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chosen_session_that_was_resumed_is_the_active_one() {
    let mut state = with_old_and_chosen();
    state.assert_is(Some(OLD), "selected", Some(CHOSEN), None);
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(attempt.resume(), Some(CHOSEN));
    state.assert_is(Some(OLD), "restoring", Some(CHOSEN), None);
    assert_eq!(state.end(&attempt, &ok(CHOSEN)), Verdict::Continue);
    state.assert_is(Some(CHOSEN), "active", None, None);
    assert_eq!(state.begin(WORKSPACE, true).resume(), Some(CHOSEN));
}

#[test]
fn a_turn_in_another_session_than_the_chosen_one_fails_and_the_old_one_stays_active() {
    let mut state = with_old_and_chosen();
    let attempt = state.begin(WORKSPACE, true);
    let verdict = state.end(&attempt, &ok(OTHER));
    assert!(restore_failed(&verdict).message.contains("identity mismatch"));
    state.assert_is(Some(OLD), "failed", None, Some("restore_failed"));
    let shown = verdict.shown(LastEvent::Completed).unwrap();
    assert_eq!(shown, LastEvent::Failed(restore_failed(&verdict).to_string()));
    let said = LastEvent::Failed("what the provider said".to_owned());
    assert_eq!(verdict.shown(said.clone()), Some(said));
    assert_eq!(verdict.shown(LastEvent::Cancelled), Some(LastEvent::Cancelled));
}

#[test]
fn a_turn_in_another_session_than_the_active_one_leaves_none_active() {
    let mut state = with_old();
    let attempt = state.begin(WORKSPACE, true);
    restore_failed(&state.end(&attempt, &ok(OTHER)));
    state.assert_is(None, "failed", None, Some("restore_failed"));

    let mut state = with_old();
    state.select(Selection { workspace: "/elsewhere".to_owned(), ..chosen(CHOSEN) });
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(attempt.resume(), Some(OLD), "the choice is for another workspace");
    restore_failed(&state.end(&attempt, &ok(OTHER)));
    state.assert_is(None, "selected", Some(CHOSEN), Some("restore_failed"));
}

#[test]
fn a_chosen_session_that_cannot_be_loaded_is_given_up_with_the_cores_words_and_the_old_one_stays() {
    let mut state = with_old_and_chosen();
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(state.end(&attempt, &session_error("not_found", "load")), Verdict::Continue);
    state.assert_is(Some(OLD), "failed", None, Some("not_found"));
    let error = state.snapshot().last_error.unwrap();
    assert_eq!(error.message, "what the core said");
    assert!(error.hint.unwrap().contains("Refresh"));
}

#[test]
fn an_active_session_that_cannot_be_stored_is_given_up_and_an_unrelated_choice_stays() {
    let mut state = with_old();
    state.select(Selection { workspace: "/elsewhere".to_owned(), ..chosen(CHOSEN) });
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(state.end(&attempt, &session_error("conflict", "persist")), Verdict::Continue);
    state.assert_is(None, "selected", Some(CHOSEN), Some("conflict"));

    let mut state = with_old();
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(state.end(&attempt, &session_error("io", "persist")), Verdict::Continue);
    state.assert_is(None, "failed", None, Some("io"));
}

#[test]
fn a_session_error_of_a_turn_that_resumed_none_gives_nothing_up() {
    let mut state = with_old_and_chosen();
    let attempt = state.begin(WORKSPACE, false);
    assert_eq!(state.end(&attempt, &session_error("conflict", "persist")), Verdict::Continue);
    state.assert_is(Some(OLD), "selected", Some(CHOSEN), None);
}

#[test]
fn an_active_session_survives_a_provider_that_fails_whatever_it_says() {
    let failure =
        run(&[json!({"type": "result", "is_error": true, "errors": ["[not_found] x"], "session_id": OLD})]);
    for (run, end) in [
        (failure.clone(), TurnEnd::Ended),
        (failure, TurnEnd::Cancelled),
        (RunObserver::default(), TurnEnd::Ended),
        (session_error("io", "load"), TurnEnd::Ended),
    ] {
        let mut state = with_old();
        let attempt = state.begin(WORKSPACE, true);
        assert_eq!(attempt.resume(), Some(OLD));
        assert_eq!(state.finish(&attempt, &run, end), Verdict::Continue);
        state.assert_is(Some(OLD), "active", None, None);
    }
}

#[test]
fn a_chosen_session_whose_turn_did_not_complete_is_not_restored() {
    let failed = run(&[json!({"type": "result", "is_error": true, "session_id": CHOSEN})]);
    for (run, end) in [
        (failed, TurnEnd::Ended),
        (ok(CHOSEN), TurnEnd::Cancelled),
        (RunObserver::default(), TurnEnd::Ended),
        (session_error("io", "load"), TurnEnd::Ended),
    ] {
        let mut state = with_old_and_chosen();
        let attempt = state.begin(WORKSPACE, true);
        restore_failed(&state.finish(&attempt, &run, end));
        state.assert_is(Some(OLD), "failed", None, Some("restore_failed"));
    }
}

#[test]
fn another_choice_while_the_chosen_session_is_resumed_stays_whatever_becomes_of_that_turn() {
    let mut state = with_old_and_chosen();
    let attempt = state.begin(WORKSPACE, true);
    state.select(chosen(OTHER));
    for late in [ok(CHOSEN), session_error("not_found", "load"), not_kept(CHOSEN), RunObserver::default()] {
        let verdict = state.end(&attempt, &late);
        assert_eq!(verdict, Verdict::StaleAttempt);
        assert_eq!(verdict.shown(LastEvent::Completed), None);
        state.assert_is(Some(OLD), "selected", Some(OTHER), None);
    }
}

#[test]
fn a_late_end_of_a_turn_cannot_touch_the_retry_of_the_same_session() {
    let mut state = with_old_and_chosen();
    let (first, retry) = (state.begin(WORKSPACE, true), state.begin(WORKSPACE, true));
    assert_eq!(first.resume(), retry.resume());
    assert_eq!(state.end(&first, &session_error("corrupt", "load")), Verdict::StaleAttempt);
    state.assert_is(Some(OLD), "restoring", Some(CHOSEN), None);
    assert_eq!(state.end(&retry, &ok(CHOSEN)), Verdict::Continue);
    state.assert_is(Some(CHOSEN), "active", None, None);
    assert_eq!(state.end(&first, &ok(OTHER)), Verdict::StaleAttempt);
    state.assert_is(Some(CHOSEN), "active", None, None);
}

#[test]
fn a_turn_that_may_not_resume_lets_the_choice_wait_and_keeps_it() {
    let mut state = with_old_and_chosen();
    let resuming = state.begin(WORKSPACE, true);
    let fresh = state.begin(WORKSPACE, false);
    assert_eq!(fresh.resume(), None);
    state.assert_is(Some(OLD), "selected", Some(CHOSEN), None);
    assert_eq!(state.end(&resuming, &ok(CHOSEN)), Verdict::StaleAttempt);
    assert_eq!(state.end(&fresh, &ok(OTHER)), Verdict::Continue);
    state.assert_is(Some(OTHER), "selected", Some(CHOSEN), None);
    assert_eq!(state.begin(WORKSPACE, true).resume(), Some(CHOSEN));
}

#[test]
fn a_provider_that_keeps_no_sessions_costs_only_the_session_that_was_resumed() {
    let mut fresh = with_old_and_chosen();
    let attempt = fresh.begin(WORKSPACE, false);
    assert_eq!(fresh.end(&attempt, &not_kept(OTHER)), Verdict::Continue);
    fresh.assert_is(Some(OLD), "selected", Some(CHOSEN), None);

    let mut active = with_old();
    let attempt = active.begin(WORKSPACE, true);
    assert_eq!(active.finish(&attempt, &not_kept(OLD), TurnEnd::Cancelled), Verdict::Continue);
    active.assert_is(None, "none", None, None);

    let mut beside = with_old();
    beside.select(Selection { workspace: "/elsewhere".to_owned(), ..chosen(CHOSEN) });
    let attempt = beside.begin(WORKSPACE, true);
    assert_eq!(beside.end(&attempt, &not_kept(OLD)), Verdict::Continue);
    beside.assert_is(None, "selected", Some(CHOSEN), None);

    let mut selected = with_old_and_chosen();
    let attempt = selected.begin(WORKSPACE, true);
    let verdict = selected.end(&attempt, &not_kept(CHOSEN));
    assert!(restore_failed(&verdict).message.contains("not resumable"));
    selected.assert_is(Some(OLD), "failed", None, Some("restore_failed"));
}

#[test]
fn a_cancelled_turn_gives_up_what_it_said_cannot_be_loaded_and_is_shown_as_cancelled() {
    let mut state = with_old_and_chosen();
    let attempt = state.begin(WORKSPACE, true);
    let verdict = state.finish(&attempt, &session_error("not_found", "load"), TurnEnd::Cancelled);
    state.assert_is(Some(OLD), "failed", None, Some("not_found"));
    assert_eq!(verdict.shown(LastEvent::Cancelled), Some(LastEvent::Cancelled));
}

#[test]
fn starting_fresh_gives_everything_up_and_says_what() {
    let mut state = with_old_and_chosen();
    let running = state.begin(WORKSPACE, true);
    assert_eq!(state.start_fresh().as_deref(), Some(OLD));
    state.assert_is(None, "none", None, None);
    assert_eq!(state.end(&running, &ok(CHOSEN)), Verdict::StaleAttempt);
    assert_eq!(state.start_fresh(), None);
    state.select(chosen(CHOSEN));
    assert_eq!(state.start_fresh().as_deref(), Some(CHOSEN));
    assert_eq!(state.begin(WORKSPACE, true).resume(), None);
}

#[test]
fn a_turn_that_became_too_long_keeps_its_session_though_the_failure_is_shown() {
    let too_long = |phase: Value| {
        run(&[
            json!({"type": "system", "subtype": "init", "session_resumable": true, "session_id": OTHER}),
            json!({
                "type": "result", "is_error": true, "errors": ["context_limit: full"], "session_id": OTHER,
                "session_error_phase": phase,
            }),
        ])
    };
    let mut state = State::default();
    let attempt = state.begin(WORKSPACE, true);
    let verdict = state.end(&attempt, &too_long(Value::Null));
    state.assert_is(Some(OTHER), "active", None, None);
    let failure = LastEvent::Failed("context_limit: full".to_owned());
    assert_eq!(verdict.shown(failure.clone()), Some(failure));

    let mut state = State::default();
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(state.end(&attempt, &too_long(json!("persist"))), Verdict::Continue);
    state.assert_is(None, "none", None, None);
}

#[test]
fn a_choice_that_the_core_refuses_is_a_failure_with_the_cores_error() {
    let mut state = with_old_and_chosen();
    let running = state.begin(WORKSPACE, true);
    state.reject(ClientError::new("not_found", "session not found", ""));
    state.assert_is(Some(OLD), "failed", None, Some("not_found"));
    assert_eq!(state.end(&running, &ok(CHOSEN)), Verdict::StaleAttempt);
    state.select(chosen(OTHER));
    state.assert_is(Some(OLD), "selected", Some(OTHER), None);
}

#[test]
fn what_is_protected_is_the_active_and_the_chosen_session_once_each() {
    let ids = |state: &State| state.protected().iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut state = with_old_and_chosen();
    assert_eq!(ids(&state), [OLD, CHOSEN]);
    let attempt = state.begin(WORKSPACE, true);
    assert_eq!(ids(&state), [OLD, CHOSEN]);
    state.end(&attempt, &RunObserver::default());
    assert_eq!(ids(&state), [OLD], "one that failed is not protected");
    state.select(chosen(OLD));
    assert_eq!(ids(&state), [OLD]);
    // Other providers name their sessions as they like; the core would refuse such an id.
    let mut foreign = State::default();
    let attempt = foreign.begin(WORKSPACE, true);
    foreign.end(&attempt, &ok("thread-7"));
    assert_eq!(ids(&foreign), [""; 0]);
    assert_eq!(foreign.begin(WORKSPACE, true).resume(), Some("thread-7"));
}
