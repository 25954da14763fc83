//! Who waits for whom, before a core that is a set of names.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, mpsc};

use cofferdam_protocol::session::{
    ClearRequest, Health, PrepareClearAllRequest, SessionData, SessionError, SessionErrorCode,
    SessionRequest, ValidateRequest,
};
use proptest::prelude::*;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::*;
use crate::session::recovery::{Phase, Recovery, RunObserver, TurnEnd, start};

const WORKSPACE: &str = "/work/project";

/// A core that knows which sessions there are, and says what it was asked.
#[derive(Default)]
struct Core {
    stored: Mutex<BTreeSet<String>>,
    asked: Mutex<Vec<String>>,
    /// What the next removal says when it has begun, and waits for.
    hold: Mutex<Option<(oneshot::Sender<()>, mpsc::Receiver<()>)>>,
    /// Who is asked what is in use while something is being removed.
    watched: OnceLock<Recovery>,
    wrong: Mutex<Vec<String>>,
}

impl Core {
    fn with(ids: &[u8]) -> Arc<Self> {
        let core = Self::default();
        core.stored.lock().unwrap().extend(ids.iter().copied().map(id));
        Arc::new(core)
    }

    fn say(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    /// What it was asked since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// Holds the next removal.
    fn hold(&self) -> (oneshot::Receiver<()>, mpsc::Sender<()>) {
        let ((began, beginning), (go, going)) = (oneshot::channel(), mpsc::channel());
        *self.hold.lock().unwrap() = Some((began, going));
        (beginning, go)
    }

    /// The sessions that are in use at this moment.
    fn in_use(&self) -> Vec<String> {
        let Some(recovery) = self.watched.get() else { return Vec::new() };
        let snapshot = Handle::current().block_on(recovery.ask(GetSnapshot)).unwrap();
        let active = snapshot.active.map(|active| active.session_id);
        active.into_iter().chain(snapshot.selected.map(|selected| selected.session_id)).collect()
    }
}

impl SessionCore for Core {
    fn ask(&self, request: SessionRequest) -> Result<SessionData, ClientError> {
        match request {
            SessionRequest::Validate(request) => self.validated(request),
            SessionRequest::PrepareClearAll(request) => Ok(self.planned(request)),
            SessionRequest::Clear(request) => Ok(self.cleared(request)),
            SessionRequest::List(_) | SessionRequest::Inspect(_) => unreachable!(),
        }
    }
}

impl Core {
    fn validated(&self, request: ValidateRequest) -> Result<SessionData, ClientError> {
        let ValidateRequest { workspace_scope, session_id } = request;
        self.say(format!("validate {session_id}"));
        assert_ne!(session_id, "panic", "planned");
        if !self.stored.lock().unwrap().contains(&session_id) {
            return Err(SessionError::new(SessionErrorCode::NotFound, "session not found").into());
        }
        let session = Summary {
            session_id,
            workspace_scope,
            created_at_ms: 0,
            updated_at_ms: 0,
            model: None,
            message_count: 0,
            first_prompt: None,
            schema_version: Some(1),
            health: Health::Ready,
        };
        Ok(SessionData::Validate { session })
    }

    fn planned(&self, request: PrepareClearAllRequest) -> SessionData {
        self.say("plan".to_owned());
        let protected_session_ids = request.protected_session_ids;
        let session_ids = self.stored.lock().unwrap().iter().cloned().collect();
        SessionData::PrepareClearAll { session_ids, protected_session_ids, next_cursor: None }
    }

    fn cleared(&self, request: ClearRequest) -> SessionData {
        let ClearRequest { session_ids: ids, protected_session_ids: protected, .. } = request;
        self.say(format!("clear {}, not {}", ids.join(" "), protected.join(" ")));
        let deleted = ids.iter().filter(|id| self.stored.lock().unwrap().remove(*id)).cloned().collect();
        if let Some((began, go)) = self.hold.lock().unwrap().take() {
            began.send(()).unwrap();
            // An error is a test that ended.
            let _ = go.recv();
        }
        // Each look lets the others go on.
        for used in (0..10).flat_map(|_| self.in_use()) {
            if ids.contains(&used) {
                self.wrong.lock().unwrap().push(format!("{used} is in use while it is removed"));
            }
        }
        SessionData::Clear { deleted, skipped: Vec::new() }
    }
}

fn id(of: u8) -> String {
    format!("00000000-0000-4000-8000-00000000000{of}")
}

fn select(of: u8) -> Select {
    Select { workspace: WORKSPACE.to_owned(), session_id: id(of) }
}

fn clear(ids: &[u8]) -> Clear {
    Clear { workspace: WORKSPACE.to_owned(), session_ids: ids.iter().copied().map(id).collect() }
}

fn begin(resume: bool) -> BeginTurn {
    BeginTurn { workspace: WORKSPACE.to_owned(), resume }
}

/// The end of a turn that was in this session.
fn finish(attempt: Attempt, of: u8) -> FinishTurn {
    let mut run = RunObserver::default();
    run.line(&json!({"type": "result", "is_error": false, "session_id": id(of)}));
    FinishTurn { attempt, run, end: TurnEnd::Ended }
}

/// Sends a message at once, whoever waits for its answer.
fn send<M>(recovery: &Recovery, message: M) -> impl Future<Output = M::Result>
where
    Recovery: Carries<M>,
    M: Message + Send + 'static,
    M::Result: Send,
{
    let sent = recovery.recipient().send(message);
    async { sent.await.unwrap() }
}

/// Gives whatever does not wait the time to be done.
async fn settle(recovery: &Recovery) -> Snapshot {
    for _ in 0..20 {
        spawn_blocking(std::thread::yield_now).await.unwrap();
        recovery.ask(GetSnapshot).await.unwrap();
    }
    recovery.ask(GetSnapshot).await.unwrap()
}

async fn phase(recovery: &Recovery) -> Phase {
    recovery.ask(GetSnapshot).await.unwrap().phase
}

#[actix::test]
async fn a_choice_waits_for_a_removal_and_then_finds_the_session_gone() {
    let core = Core::with(&[1]);
    let recovery = start(core.clone());
    let (began, go) = core.hold();
    let removal = send(&recovery, clear(&[1]));
    began.await.unwrap();
    let choice = send(&recovery, select(1));
    assert_eq!(settle(&recovery).await.phase, Phase::None, "and a snapshot waits for nobody");
    assert_eq!(core.asked(), [format!("clear {}, not ", id(1))]);
    go.send(()).unwrap();
    assert_eq!(removal.await.unwrap().report.deleted, [id(1)]);
    assert_eq!(choice.await.unwrap_err().code, "not_found");
    assert_eq!(core.asked(), [format!("validate {}", id(1))]);
    assert_eq!(phase(&recovery).await, Phase::Failed);
}

#[actix::test]
async fn a_turn_that_makes_a_session_active_waits_for_a_removal_and_others_do_not() {
    let core = Core::with(&[1, 2]);
    let recovery = start(core.clone());
    let fresh = recovery.ask(begin(true)).await.unwrap();
    let (began, go) = core.hold();
    let removal = send(&recovery, clear(&[1]));
    began.await.unwrap();
    let cancelled = FinishTurn { end: TurnEnd::Cancelled, ..finish(fresh.clone(), 2) };
    assert_eq!(recovery.ask(cancelled).await.unwrap(), Verdict::Continue);
    let activation = send(&recovery, finish(fresh, 2));
    assert_eq!(settle(&recovery).await.active, None);
    go.send(()).unwrap();
    removal.await.unwrap();
    assert_eq!(activation.await.unwrap(), Verdict::Continue);
    let active = recovery.ask(GetSnapshot).await.unwrap().active.unwrap();
    assert_eq!((active.session_id, active.workspace), (id(2), WORKSPACE.to_owned()));
}

#[actix::test]
async fn planning_and_starting_fresh_wait_for_a_removal() {
    let core = Core::with(&[1, 2]);
    let recovery = start(core.clone());
    recovery.ask(select(2)).await.unwrap();
    let (began, go) = core.hold();
    let removal = send(&recovery, clear(&[1]));
    began.await.unwrap();
    core.asked();
    let plan = send(&recovery, PrepareClearAll { workspace: WORKSPACE.to_owned() });
    let fresh = send(&recovery, StartFresh);
    assert_eq!(settle(&recovery).await.phase, Phase::Selected);
    assert_eq!(core.asked(), [""; 0]);
    go.send(()).unwrap();
    removal.await.unwrap();
    let plan = plan.await.unwrap();
    assert_eq!((plan.session_ids, plan.protected_session_ids), (vec![id(2)], vec![id(2)]));
    assert_eq!(fresh.await.unwrap(), Some(id(2)));
    assert_eq!(phase(&recovery).await, Phase::None);
}

#[actix::test]
async fn sessions_in_use_are_not_even_asked_for_and_the_answer_says_so() {
    let core = Core::with(&[1, 2, 3]);
    let recovery = start(core.clone());
    let attempt = recovery.ask(begin(true)).await.unwrap();
    recovery.ask(finish(attempt, 1)).await.unwrap();
    recovery.ask(select(2)).await.unwrap();
    core.asked();
    let cleared = recovery.ask(clear(&[3, 2, 1])).await.unwrap();
    assert_eq!((cleared.protected, cleared.report.deleted), (vec![id(2), id(1)], vec![id(3)]));
    assert_eq!(core.asked(), [format!("clear {}, not {} {}", id(3), id(1), id(2))]);
}

#[actix::test]
async fn a_core_that_panics_is_an_error_and_gives_the_lease_back() {
    let recovery = start(Core::with(&[1]));
    let panics = Select { session_id: "panic".to_owned(), ..select(1) };
    assert_eq!(recovery.ask(panics).await.unwrap_err().code, ClientError::TRANSPORT);
    assert_eq!(phase(&recovery).await, Phase::Failed);
    recovery.ask(select(1)).await.unwrap();
}

/// Something that a client does while it does other things.
#[derive(Clone, Debug)]
enum Deed {
    Select(u8),
    Clear(Vec<u8>),
    /// A turn that ends in this session, or in the one that it resumes.
    Turn(u8, bool),
    StartFresh,
}

/// Deeds, and for how many moments each waits: before it is done, or, a turn, before it ends.
fn deeds() -> impl Strategy<Value = Vec<(Deed, u8)>> {
    let deed = prop_oneof![
        2 => (0u8..4).prop_map(Deed::Select),
        4 => prop::collection::vec(0u8..4, 1..5).prop_map(Deed::Clear),
        4 => (0u8..4, any::<bool>()).prop_map(|(id, resume)| Deed::Turn(id, resume)),
        1 => Just(Deed::StartFresh),
    ];
    prop::collection::vec((deed, 0u8..40), 2..12)
}

async fn carry_out((deed, moments): (Deed, u8), core: Arc<Core>, recovery: Recovery) {
    let wait = async || {
        for _ in 0..moments {
            recovery.ask(GetSnapshot).await.unwrap();
        }
    };
    let turn = match deed {
        Deed::Turn(_, resume) => Some(recovery.ask(begin(resume)).await.unwrap()),
        _ => None,
    };
    wait().await;
    // What these lead to depends on the others; what they may not lead to, the core looks for.
    match (deed, turn) {
        (Deed::Select(of), _) => drop(recovery.ask(select(of)).await),
        (Deed::Clear(ids), _) => drop(recovery.ask(clear(&ids)).await),
        (Deed::Turn(of, _), Some(turn)) => {
            let of = turn.resume().map_or(of, |resumed| resumed.as_bytes()[35] - b'0');
            core.stored.lock().unwrap().insert(id(of));
            drop(recovery.ask(finish(turn, of)).await);
        }
        (Deed::StartFresh | Deed::Turn(..), _) => drop(recovery.ask(StartFresh).await),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_in_use_is_never_removed_whatever_else_goes_on(deeds in deeds()) {
        System::new().block_on(async {
            let core = Core::with(&[0, 1, 2, 3]);
            let recovery = start(core.clone());
            core.watched.set(recovery.clone()).unwrap();
            let begin = |deed| actix::spawn(carry_out(deed, core.clone(), recovery.clone()));
            for deed in deeds.into_iter().map(begin).collect::<Vec<_>>() {
                deed.await.unwrap();
            }
            prop_assert_eq!(&*core.wrong.lock().unwrap(), &[""; 0]);
            let chosen = recovery.ask(GetSnapshot).await.unwrap().selected;
            prop_assert!(chosen.is_none_or(|chosen| core.stored.lock().unwrap().contains(&chosen.session_id)));
            Ok(())
        })?;
    }
}
