//! The actor with the owner of tasks and database in its test's hands: what that is asked, and what becomes of an export
//! when it refuses. Files and records are real.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_protocol::pod::{
    ConflictMode, Done, ExportCreated, ExportMode, ExportStatus, ExportUndone, Method, PodErrorCode as Code,
    TaskId, TaskSummary,
};
use cofferdam_storage::clock::IdGen;
use cofferdam_storage::disk::{Disk, FaultHook, Op};
use cofferdam_storage::pod::export::ExportRequest;
use cofferdam_storage::pod::{Change, PodDb, Protected, Surroundings, TaskPlace};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{RwLock, oneshot};
use tokio::time::Instant;

use super::*;
use crate::pod::messages::{AdmittedExport, AdmittedUndo};
use crate::pod::testing::{Said, VirtualClock};

/// What the owner does and has heard.
struct Office {
    db: Mutex<PodDb>,
    task: TaskSummary,
    said: Said,
    /// Whoever has it for writing keeps everybody from saving.
    saving: RwLock<()>,
    /// How many saves succeed before one fails.
    saves: Mutex<Option<usize>>,
    max_exports: i64,
    remembers: bool,
    wants_progress: bool,
    /// Set once an export's record is there.
    panics_next: Arc<Panics>,
}

/// Panics in the midst of an export, if that is wanted.
#[derive(Debug, Default)]
struct Panics {
    wanted: AtomicBool,
    armed: AtomicBool,
}

impl FaultHook for Panics {
    fn before(&self, op: Op) -> io::Result<()> {
        if op != Op::Commit && self.armed.swap(false, Ordering::Relaxed) {
            panic!("a bug in the midst of an export");
        }
        Ok(())
    }

    fn step(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

struct FakeOwner(Arc<Office>);

impl Actor for FakeOwner {
    type Context = Context<Self>;
}

impl Office {
    fn locked(&self) -> cofferdam_storage::pod::StillLocked {
        self.db.lock().unwrap().keep_locked()
    }

    fn task_id(&self) -> TaskId {
        TaskId::new(self.task.id.as_str()).unwrap()
    }

    async fn save(&self, changes: &[Change]) -> Result<(), Failure> {
        let _turn = self.saving.read().await;
        let fails = match self.saves.lock().unwrap().as_mut() {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        if fails {
            *self.saves.lock().unwrap() = None;
            return Err(Refusal::NotSaved("the disk is full".to_owned()).into());
        }
        self.db.lock().unwrap().commit(changes).unwrap();
        if self.panics_next.wanted.load(Ordering::Relaxed)
            && changes.iter().any(|change| matches!(change, Change::PutExport(_)))
        {
            self.panics_next.wanted.store(false, Ordering::Relaxed);
            self.panics_next.armed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Handler<AdmitExport> for FakeOwner {
    type Result = Result<AdmittedExport, Refusal>;

    fn handle(&mut self, AdmitExport { id, request }: AdmitExport, _: &mut Context<Self>) -> Self::Result {
        let office = &self.0;
        if request.task_id != office.task.id {
            return Err(Refusal::TaskNotFound(request.task_id));
        }
        office.said.say(format!("hold {}", request.task_id));
        Ok(AdmittedExport {
            request: ExportRequest {
                id,
                task: request.task_id,
                label: "label".to_owned(),
                at: 5,
                place: TaskPlace::of(&office.task),
                current_root: None,
                own_files: Vec::new(),
                own_dirs: Vec::new(),
                entries: request.entries,
                target_dir: request.target_dir.into(),
                mode: request.mode.unwrap_or(ExportMode::Copy),
                conflict: request.conflict.unwrap_or(ConflictMode::Overwrite),
            },
            held: office.task_id(),
            remember_for: office.remembers.then(|| "m".to_owned()),
            wants_progress: office.wants_progress,
            locked: office.locked(),
        })
    }
}

impl Handler<AdmitUndo> for FakeOwner {
    type Result = Result<AdmittedUndo, Failure>;

    fn handle(&mut self, AdmitUndo { export }: AdmitUndo, _: &mut Context<Self>) -> Self::Result {
        let found = self.0.db.lock().unwrap().export(&export).unwrap();
        let export = found.ok_or(Refusal::ExportNotFound(export))?;
        self.0.said.say("hold a");
        Ok(AdmittedUndo { export, verify: true, held: Some(self.0.task_id()), locked: self.0.locked() })
    }
}

impl Handler<ReleaseFiles> for FakeOwner {
    type Result = ();

    fn handle(&mut self, ReleaseFiles { task }: ReleaseFiles, _: &mut Context<Self>) {
        self.0.said.say(format!("let go {task}"));
    }
}

impl Handler<FindExport> for FakeOwner {
    type Result = MessageResult<FindExport>;

    fn handle(&mut self, FindExport { export }: FindExport, _: &mut Context<Self>) -> Self::Result {
        MessageResult(Ok(self.0.db.lock().unwrap().export(&export).unwrap()))
    }
}

impl Handler<FindSurplusExports> for FakeOwner {
    type Result = MessageResult<FindSurplusExports>;

    fn handle(&mut self, message: FindSurplusExports, _: &mut Context<Self>) -> Self::Result {
        let mut db = self.0.db.lock().unwrap();
        MessageResult(Ok(db.surplus_exports(self.0.max_exports, &message.besides).unwrap()))
    }
}

impl Handler<SaveChanges> for FakeOwner {
    type Result = ResponseFuture<Result<(), Failure>>;

    fn handle(&mut self, SaveChanges(changes): SaveChanges, _: &mut Context<Self>) -> Self::Result {
        let office = Arc::clone(&self.0);
        Box::pin(async move { office.save(&changes).await })
    }
}

impl Handler<Diagnose> for FakeOwner {
    type Result = ();

    fn handle(&mut self, Diagnose { level, message }: Diagnose, _: &mut Context<Self>) {
        self.0.said.say(format!("{level:?} {message}"));
    }
}

impl Handler<Call<Shutdown>> for FakeOwner {
    type Result = ();

    fn handle(&mut self, Call { reply, .. }: Call<Shutdown>, _: &mut Context<Self>) {
        self.0.said.say("shutdown");
        reply.send(Ok(Done { ok: true }));
    }
}

/// `exp-1`, `exp-2`, …
#[derive(Default)]
struct Counted(AtomicUsize);

impl IdGen for Counted {
    fn fresh(&self) -> String {
        (self.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }
}

struct Fixture {
    dir: TempDir,
    office: Arc<Office>,
    said: Said,
    exports: Addr<ExportActor>,
}

type Answer<M> = oneshot::Receiver<Result<<M as Method>::Result, Failure>>;

impl Fixture {
    /// Task `a` has made the files `f` and `g`.
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Office)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (root, said, panics) = (dir.path().join("root"), Said::default(), Arc::<Panics>::default());
        std::fs::create_dir_all(root.join("a")).unwrap();
        for name in ["f", "g"] {
            std::fs::write(root.join("a").join(name), name).unwrap();
        }
        let file = dir.path().join("db/pod.db");
        let opened = PodDb::open(&Disk::default(), &file, None, &Protected::default(), 0).unwrap();
        let task = serde_json::from_value(json!({
            "id": "a", "sessionId": "s", "mainSessionId": "m", "label": "l", "description": "d",
            "status": "completed", "subdir": "", "taskDir": root.join("a"), "sandboxRoot": root,
            "createdAt": 1, "queuedAt": 0, "startedAt": 0, "endedAt": 1, "turns": 0, "timeoutMs": 30_000,
            "allow": [], "availableTools": [], "presetId": "", "model": {}, "sandboxMode": "",
            "sandboxProbe": "", "fsDenied": false, "lastText": "", "error": "", "legacy": false,
            "turnDeadline": 0, "queuedPosition": 0,
        }));
        let mut office = Office {
            db: Mutex::new(opened.db),
            task: task.unwrap(),
            said: said.clone(),
            saving: RwLock::new(()),
            saves: Mutex::new(None),
            max_exports: 200,
            remembers: false,
            wants_progress: false,
            panics_next: Arc::clone(&panics),
        };
        change(&mut office);
        let office = Arc::new(office);
        let parts = Parts {
            disk: Disk::with_faults(panics),
            clock: VirtualClock::new(),
            ids: Arc::new(Counted::default()),
            tick: Duration::from_secs(1),
            events: Arc::new(said.clone()),
            surroundings: Surroundings::default(),
            logs: Arc::new(said.clone()),
        };
        let owner = FakeOwner(Arc::clone(&office)).start();
        let exports = ExportActor::new(parts, owner.into()).start();
        Self { dir, office, said, exports }
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("target")
    }

    /// Sends a request; that it was answered, and how, is said, too.
    fn send<M: Method>(&self, name: &str, params: Value) -> Answer<M>
    where
        ExportActor: Handler<Call<M>>,
    {
        let (sender, answer) = oneshot::channel();
        let (said, name) = (self.said.clone(), name.to_owned());
        let reply = Reply::new(move |answer: Result<M::Result, Failure>| {
            said.say(match &answer {
                Ok(_) => format!("{name} ok"),
                Err(failure) => format!("{name} {}", json!(failure.code).as_str().unwrap()),
            });
            drop(sender.send(answer));
        });
        self.exports.do_send(Call { request: serde_json::from_value(params).unwrap(), reply });
        answer
    }

    fn send_create(&self, entry: &str) -> Answer<ExportCreate> {
        let params =
            json!({"taskId": "a", "entries": [entry], "targetDir": self.target(), "remember": false});
        self.send::<ExportCreate>(entry, params)
    }

    async fn create(&self, entry: &str) -> Result<ExportCreated, Failure> {
        self.send_create(entry).await.unwrap()
    }

    async fn undo(&self, export: &str) -> Result<ExportUndone, Failure> {
        self.send::<ExportUndo>("undo", json!({"exportId": export})).await.unwrap()
    }

    async fn delete(&self, export: &str) -> Result<Done, Failure> {
        self.send::<ExportDeleteRecord>("delete", json!({"exportId": export})).await.unwrap()
    }

    fn status(&self, export: &str) -> Option<ExportStatus> {
        self.office.db.lock().unwrap().export(export).unwrap().map(|kept| kept.record.status)
    }

    fn in_target(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.target()).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[actix::test]
async fn an_export_is_recorded_carried_out_undone_and_forgotten_and_the_files_are_held_meanwhile() {
    let fixture = Fixture::new();
    let created = fixture.create("f").await.unwrap();
    assert_eq!((created.export.id.as_str(), created.message), ("exp-1", None));
    assert_eq!(fixture.said.take(), ["hold a", "let go a", "f ok"]);
    assert_eq!(
        (fixture.status("exp-1"), fixture.in_target()),
        (Some(ExportStatus::Completed), vec!["f".to_owned()])
    );

    let undone = fixture.undo("exp-1").await.unwrap();
    assert_eq!(undone.removed.len(), 1);
    assert_eq!(fixture.said.take(), ["hold a", "let go a", "undo ok"]);

    fixture.delete("exp-1").await.unwrap();
    assert_eq!(fixture.status("exp-1"), None);
    assert_eq!(fixture.undo("exp-1").await.unwrap_err().code, Code::ExportNotFound);
    assert_eq!(fixture.delete("exp-1").await.unwrap_err().code, Code::ExportNotFound);
}

#[actix::test]
async fn one_thing_is_done_at_a_time_in_the_order_of_asking_and_shutdown_comes_last() {
    let fixture = Fixture::new();
    let saving = fixture.office.saving.write().await;
    let first = fixture.send_create("f");
    // Until its record is about to be saved.
    while fixture.said.take() != ["hold a"] {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.undo("exp-1").await.unwrap_err().data, json!({"reason": "RUNNING"}));
    assert_eq!(fixture.delete("exp-1").await.unwrap_err().code, Code::TaskBusy);
    fixture.said.take();
    let others = (fixture.send_create("g"), fixture.send_create("nothing"));
    let ended = fixture.send::<Shutdown>("end", json!({}));
    drop(saving);
    first.await.unwrap().unwrap();
    others.0.await.unwrap().unwrap();
    assert_eq!(others.1.await.unwrap().unwrap_err().code, Code::FileNotFound);
    ended.await.unwrap().unwrap();
    let expected = [
        "let go a",
        "f ok",
        "hold a",
        "let go a",
        "g ok",
        "hold a",
        "let go a",
        "nothing FILE_NOT_FOUND",
        "shutdown",
        "end ok",
    ];
    assert_eq!(fixture.said.take(), expected);
}

#[actix::test]
async fn shutdown_does_not_wait_for_more_than_a_second() {
    tokio::time::pause();
    let fixture = Fixture::new();
    let saving = fixture.office.saving.write().await;
    let created = fixture.send_create("f");
    while fixture.said.take() != ["hold a"] {
        tokio::task::yield_now().await;
    }
    let began = Instant::now();
    let mut ended = fixture.send::<Shutdown>("end", json!({}));
    // A thread that works keeps time from going on by itself.
    while ended.try_recv().is_err() {
        tokio::time::advance(LAST_WAIT / 10).await;
        tokio::task::yield_now().await;
    }
    assert!((LAST_WAIT..LAST_WAIT * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(fixture.said.take(), ["shutdown", "end ok"]);
    drop(saving);
    created.await.unwrap().unwrap();
}

#[actix::test]
async fn a_bug_is_an_internal_error_the_record_says_what_is_so_and_work_goes_on() {
    let fixture = Fixture::new();
    fixture.office.panics_next.wanted.store(true, Ordering::Relaxed);
    assert_eq!(fixture.create("f").await.unwrap_err().code, Code::Internal);
    assert_eq!(fixture.said.take(), ["hold a", "let go a", "f INTERNAL"]);
    assert_eq!(fixture.status("exp-1"), Some(ExportStatus::Interrupted));
    fixture.create("g").await.unwrap();
    fixture.undo("exp-1").await.unwrap();
    assert_eq!(fixture.in_target(), ["g"]);
}

#[actix::test]
async fn whichever_change_cannot_be_saved_is_what_the_answer_says_and_the_record_says_what_is_so() {
    for saves in 0.. {
        let fixture = Fixture::with(|office| office.saves = Mutex::new(Some(saves)));
        let answer = fixture.create("f").await;
        let failed = fixture.office.saves.lock().unwrap().is_none();
        let status = fixture.status("exp-1");
        assert!(fixture.said.take().contains(&"let go a".to_owned()));
        if !failed {
            assert!(saves > 1 && answer.is_ok(), "{answer:?}");
            return;
        }
        let failure = answer.unwrap_err();
        assert_eq!((failure.code, failure.message.contains("the disk is full")), (Code::DbError, true));
        let expected = (saves > 0).then_some(ExportStatus::Interrupted);
        assert_eq!(status, expected, "after {saves}");
        if status.is_some() {
            let undone = fixture.undo("exp-1").await.unwrap();
            assert!(undone.conflicts.is_empty(), "{undone:?}");
        }
        let left = std::fs::read_dir(fixture.target()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "after {saves}");
    }
}

#[actix::test]
async fn a_record_that_says_it_runs_though_nobody_works_on_it_is_put_right_first() {
    let fixture = Fixture::new();
    fixture.create("f").await.unwrap();
    let runs =
        Change::SettleExport { export: "exp-1".to_owned(), status: ExportStatus::Running, undone_at: 0 };
    fixture.office.save(&[runs]).await.unwrap();
    assert_eq!(fixture.undo("exp-1").await.unwrap().removed.len(), 1);
    assert_eq!(fixture.status("exp-1"), Some(ExportStatus::Interrupted));
}

#[actix::test]
async fn a_refused_export_holds_nothing() {
    let fixture = Fixture::new();
    let params = json!({"taskId": "b", "entries": ["f"], "targetDir": "/t"});
    let answer = fixture.send::<ExportCreate>("b", params).await.unwrap();
    assert_eq!(answer.unwrap_err().code, Code::TaskNotFound);
    assert_eq!(fixture.said.take(), ["b TASK_NOT_FOUND"]);
    fixture.create("f").await.unwrap();
}

#[actix::test]
async fn records_that_are_too_many_go_before_the_answer_and_the_new_one_never_does() {
    let fixture = Fixture::with(|office| office.max_exports = 1);
    for (entry, gone) in [("f", None), ("g", Some("exp-1"))] {
        fixture.create(entry).await.unwrap();
        assert!(gone.is_none_or(|id| fixture.status(id).is_none()));
    }
    assert_eq!(fixture.status("exp-2"), Some(ExportStatus::Completed));
}

#[actix::test]
async fn how_far_it_is_is_told_to_a_host_that_asked_and_before_the_answer() {
    let fixture = Fixture::with(|office| office.wants_progress = true);
    fixture.create("f").await.unwrap();
    let said = fixture.said.take();
    assert!(said[1].starts_with("progress a "), "{said:?}");
    assert_eq!(said.last().map(String::as_str), Some("f ok"));
}

#[actix::test]
async fn a_target_is_remembered_if_that_is_allowed_and_otherwise_a_message_says_so() {
    for allowed in [true, false] {
        let fixture = Fixture::with(|office| office.remembers = allowed);
        let params =
            json!({"taskId": "a", "entries": ["f"], "targetDir": fixture.target(), "remember": true});
        let created = fixture.send::<ExportCreate>("f", params).await.unwrap().unwrap();
        let message = "the target is not remembered: allowRememberChoice is off";
        assert_eq!(created.message, (!allowed).then(|| message.to_owned()));
        let remembered = fixture.office.db.lock().unwrap().remembered_targets().unwrap();
        assert_eq!(remembered.contains_key("m"), allowed);
    }
}
