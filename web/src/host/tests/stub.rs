//! A host that answers with everything an answer can hold, or refuses, and remembers what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use actix::{Actor, Context, Handler, MessageResult};
use cofferdam_actors::host::{Ask, EndAgents, GetStatus, HostFailure, HostRefusal, Subscribe};
use cofferdam_protocol::host::{ExportList, *};
use cofferdam_protocol::pod::*;
use serde_json::{Value, json};

/// The actor.
#[derive(Default)]
pub(crate) struct HostStub {
    pub(crate) refusal: Option<HostFailure>,
    pub(crate) heard: Heard,
}

/// What it was asked.
#[derive(Clone, Default)]
pub(crate) struct Heard {
    /// Each request, as it is shown for debugging.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// Who listens.
    pub(crate) listeners: Arc<Mutex<Vec<Subscribe>>>,
}

impl Actor for HostStub {
    type Context = Context<Self>;
}

macro_rules! stub {
    ($($method:ident => $answer:expr;)+) => {$(
        impl Handler<Ask<$method>> for HostStub {
            type Result = Result<<$method as HostMethod>::Answer, HostFailure>;
            fn handle(&mut self, Ask(request): Ask<$method>, _: &mut Context<Self>) -> Self::Result {
                self.heard.asked.lock().unwrap().push(format!("{request:?}"));
                match self.refusal.clone() {
                    Some(refusal) => Err(refusal),
                    None => Ok($answer),
                }
            }
        }
    )+};
}
stub! {
    GetState => Prepared(success_body(&state()));
    SetConfig => PatchedConfig { config: Config::default(), messages: vec!["timeoutMs: 30000".to_owned()] };
    StartTask => StartedTask { task_id: ID.to_owned(), session_id: SESSION.to_owned(), task: task() };
    OpenTask => OpenedTask { session_id: SESSION.to_owned(), task: task(), live: true, resume_error: None };
    ResumeTask => ResumedTask { session_id: SESSION.to_owned(), task: task(), live: true };
    CancelTask => OneTask { task: task() };
    Cleanup => CleanedUp { task_id: ID.to_owned(), removed_files: true, removed_record: false };
    BulkCleanup => BulkCleanupResult {
        results: vec![BulkCleanupRow {
            task_id: ID.to_owned(),
            ok: false,
            code: "TASK_RUNNING".to_owned(),
            message: "it runs".to_owned(),
        }],
        deleted: 0,
        more: true,
    };
    ListFiles => FileRows {
        root: "/sandbox/pod-1".to_owned(),
        entries: vec![FileRow {
            rel_path: "a/b".to_owned(),
            kind: FileType::File,
            size: 3,
            mtime: 4,
            lossy: true,
        }],
        truncated: false,
        missing: true,
    };
    ReadSandboxFile => FileText {
        text: "text".to_owned(),
        truncated: true,
        bytes: 10,
        chars: 4,
        encoding: "utf-8".to_owned(),
        binary: false,
    };
    PreviewReturn => ReturnPreview { text: "done".to_owned(), truncated: false };
    ReturnToMain => Returned { id: "ipp-ret-1".to_owned(), truncated: true };
    ExportEntries => Exported { export: export(), message: Some("not on disk yet".to_owned()) };
    ListExports => ExportList {
        exports: vec![export()],
        remembered: BTreeMap::from([("main".to_owned(), "/target".to_owned())]),
        truncated: true,
    };
    UndoExport => ExportUndone {
        export: export(),
        removed: vec!["/target/a".to_owned()],
        restored: Vec::new(),
        conflicts: vec![UndoConflict { path: "/target/b".to_owned(), message: "changed".to_owned() }],
    };
    GetDiagnostics => diagnostics();
    RestartCore => RestartedCore { core: core() };
    GetLegacyTask => LegacyLog {
        entries: vec![LegacyLogEntry {
            seq: 1,
            event: "user/message".to_owned(),
            kind: "user".to_owned(),
            time: 2,
            text: "hello".to_owned(),
            think: String::new(),
        }],
        truncated: true,
        notes: Some(json!({"logCount": 3})),
    };
    FollowUp => OneTask { task: task() };
    GetTranscript => Transcript {
        entries: vec![TranscriptEntry { seq: 1, kind: EntryKind::Assistant, time: 2, text: "hi".to_owned() }],
        next: 2,
        truncated: false,
    };
    ListTurns => TurnList {
        turns: vec![TurnRow {
            turn: 1,
            at: 2,
            asked: "do".to_owned(),
            checkpoint: false,
            note: "the disk was full".to_owned(),
            incomplete: "a could not be read".to_owned(),
            stands: true,
            after: Some(0),
        }],
        undo: Some(Undoable {
            of: WayBack::Rewind,
            turn: 1,
            at: 2,
            brings: vec![1],
            takes: vec![2],
            incomplete: String::new(),
        }),
    };
    RewindTask => Rewound { task: task(), turn: 1, undid: None, changed: 3, notes: vec!["a note".to_owned()] };
    UndoRewind => Rewound { task: task(), turn: 1, undid: Some(WayBack::Rewind), changed: 0, notes: Vec::new() };
}

impl Handler<GetStatus> for HostStub {
    type Result = MessageResult<GetStatus>;
    fn handle(&mut self, _: GetStatus, _: &mut Context<Self>) -> Self::Result {
        MessageResult(Status {
            build: HOST_BUILD,
            plugin_version: "0.2.0".to_owned(),
            token_prefix: String::new(),
            core: core(),
            task_count: 1,
            store_path: "/state/pod/pod.db".to_owned(),
            core_path: String::new(),
            sandbox: StatusSandbox {
                root: ROOT.to_owned(),
                live_sessions: vec![LiveSession {
                    id: SESSION.to_owned(),
                    origin: "pod".to_owned(),
                    cwd: ROOT.to_owned(),
                    inside_sandbox: true,
                }],
            },
            compat: compat(),
            diagnostics: vec![diagnostic()],
        })
    }
}

impl Handler<EndAgents> for HostStub {
    type Result = ();
    fn handle(&mut self, _: EndAgents, _: &mut Context<Self>) {}
}

impl Handler<Subscribe> for HostStub {
    type Result = ();
    fn handle(&mut self, subscribe: Subscribe, _: &mut Context<Self>) {
        self.heard.listeners.lock().unwrap().push(subscribe);
    }
}

const ID: &str = "pod-1";
const SESSION: &str = "pod-session-1";
/// A directory that looks like markup to a careless page.
pub(crate) const ROOT: &str = "/sandbox/<b>\"&";

/// Args for each method, with every key it knows.
pub(crate) fn args_of_all() -> Vec<(&'static str, Value)> {
    let task = json!({"taskId": ID});
    vec![
        ("getState", json!({"mainSessionId": "main"})),
        ("setConfig", json!({"patch": {"timeoutMs": 1}})),
        (
            "startTask",
            json!({"mainSessionId": "main", "description": "do", "subdir": "a", "label": "l", "presetId": "p"}),
        ),
        ("openTask", task.clone()),
        ("resumeTask", task.clone()),
        ("cancelTask", json!({"taskId": ID, "reason": "enough"})),
        ("cleanup", json!({"taskId": ID, "scope": "all"})),
        ("bulkCleanup", json!({"statuses": ["failed"], "olderThanMs": 5, "deleteFiles": true})),
        ("listFiles", task.clone()),
        ("readSandboxFile", json!({"taskId": ID, "relPath": "a/b", "maxChars": 300})),
        (
            "previewReturn",
            json!({"taskId": ID, "parts": {
                "status": false, "conclusion": true, "file": {"relPath": "a"}, "customText": "x",
            }}),
        ),
        ("returnToMain", json!({"mainSessionId": "main", "text": "done", "requestId": "r"})),
        (
            "exportEntries",
            json!({
                "taskId": ID, "entries": ["a"], "targetDir": "/target", "mode": "move", "conflict": "skip",
                "remember": true,
            }),
        ),
        ("listExports", json!({})),
        ("undoExport", json!({"exportId": "exp-1"})),
        ("getDiagnostics", json!({})),
        ("restartCore", json!({})),
        ("getLegacyTask", task.clone()),
        ("followUp", json!({"taskId": ID, "text": "more"})),
        ("getTranscript", json!({"taskId": ID, "from": 1})),
        ("listTurns", task.clone()),
        ("rewindTask", json!({"taskId": ID, "turn": 1})),
        ("undoRewind", task.clone()),
    ]
}

/// A refusal with everything a refusal can hold.
pub(crate) fn failure() -> HostFailure {
    HostFailure { data: json!({"retryAfterMs": 5}), ..HostRefusal::TaskBusy("it is busy".to_owned()).into() }
}

pub(crate) fn task() -> TaskRow {
    TaskRow {
        task: TaskSummary {
            id: ID.to_owned(),
            session_id: SESSION.to_owned(),
            main_session_id: "main".to_owned(),
            label: "label".to_owned(),
            description: "do".to_owned(),
            status: TaskStatus::Running,
            subdir: String::new(),
            task_dir: format!("{ROOT}/{ID}"),
            sandbox_root: ROOT.to_owned(),
            created_at: 1,
            queued_at: 2,
            started_at: 3,
            ended_at: 0,
            turns: 1,
            timeout_ms: 600_000,
            allow: vec!["read".to_owned()],
            available_tools: Vec::new(),
            preset_id: String::new(),
            model: ModelChoice::default(),
            sandbox_mode: "workspace-write".to_owned(),
            sandbox_probe: "denied".to_owned(),
            fs_denied: true,
            last_text: "line\nline".to_owned(),
            error: String::new(),
            legacy: false,
            turn_deadline: 0,
            queued_position: 0,
        },
        live: true,
        can_resume: false,
    }
}

fn export() -> ExportRecord {
    ExportRecord {
        id: "exp-1".to_owned(),
        task_id: ID.to_owned(),
        label: "label".to_owned(),
        at: 1,
        target_dir: "/target".to_owned(),
        mode: ExportMode::Copy,
        conflict: ConflictMode::Overwrite,
        status: ExportStatus::Completed,
        undone_at: 0,
        legacy: false,
        items: vec![ExportItem {
            status: ExportItemStatus::Ok,
            src: "a".to_owned(),
            dst: "/target/a".to_owned(),
            bytes: 1,
            hash: String::new(),
            existed: false,
            backup_path: String::new(),
            message: String::new(),
        }],
        items_total: Some(2),
        items_truncated: true,
    }
}

fn core() -> CoreState {
    CoreState {
        status: CoreStatus::Ready,
        message: String::new(),
        code: None,
        embedded: true,
        version: "0.2.0".to_owned(),
        protocol: 1,
        schema_version: 1,
        pid: 7,
        starts: 1,
    }
}

fn compat() -> Compat {
    Compat { bootstrap: true, index_inject: true, events: true, follow_up: true }
}

fn diagnostic() -> Diagnostic {
    Diagnostic { at: 1, level: LogLevel::Warn, message: "something".to_owned() }
}

fn state() -> State {
    State {
        build: HOST_BUILD,
        plugin_version: "0.2.0".to_owned(),
        revision: 1,
        core: core(),
        config: Some(Config::default()),
        tool_choices: vec!["read".to_owned()],
        preset_choices: vec![PresetChoice {
            id: "p".to_owned(),
            name: "P".to_owned(),
            broken: false,
            why: "not found".to_owned(),
            needs: vec!["bash".to_owned()],
            lacks: vec!["bash".to_owned()],
            resumable: true,
        }],
        sandbox: SandboxVerdict::default(),
        tasks: vec![task()],
        exports: vec![export()],
        remembered_target: String::new(),
        diagnostics: vec![diagnostic()],
        compat: compat(),
        store_path: "/state/pod/pod.db".to_owned(),
    }
}

fn diagnostics() -> DiagnosticsPage {
    DiagnosticsPage {
        build: HOST_BUILD,
        plugin_version: "0.2.0".to_owned(),
        core: core(),
        core_report: Some(DiagnosticsReport {
            health: HealthReport {
                protocol: 1,
                schema_version: 1,
                core_version: "0.2.0".to_owned(),
                pid: 7,
                initialized: true,
            },
            db_path: "/state/pod/pod.db".to_owned(),
            db_size_bytes: 1,
            counts: Counts { tasks: BTreeMap::new(), exports: 0, leases: 0 },
            queue: QueueCounts { length: 0, running: 1, max: 3 },
            config: Some(Config::default()),
            uptime_ms: 1,
            log_path: String::new(),
            diagnostics: vec![diagnostic()],
        }),
        core_path: String::new(),
        stderr_tail: vec!["line".to_owned()],
        diagnostics: vec![diagnostic()],
        live_agents: 1,
        main_sessions: 1,
        compat: compat(),
        log_level: Some(LogLevel::Info),
    }
}
