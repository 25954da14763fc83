//! What a host asks for on the walk, how it is sent, and what of the answer is compared.

use cofferdam_protocol::pod::*;
use serde_json::json;

use super::model::Model;
use crate::pod::{Failure, Pod, Reply};
use cofferdam_tests::dice::Dice;

/// A request. Tasks, sessions and leases are numbers here: few of each, so that they meet again.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Reserve { task: String, lease: &'static str, timeout: i64 },
    Reattach { task: String, lease: &'static str },
    MarkStarting { task: String, lease: &'static str },
    MarkRunning { task: String, lease: &'static str },
    TurnStarted { task: String, lease: &'static str, turn: u64 },
    TurnEnded { task: String, lease: &'static str, turn: u64, reason: &'static str, timed_out: bool },
    SetLastText { task: String, lease: &'static str, text: String },
    SetTools { task: String, lease: &'static str, tools: usize },
    SetCheck { task: String, lease: &'static str, probe: Probe },
    SetError { task: String, lease: &'static str, message: String },
    Heartbeat { task: String, lease: &'static str },
    Cancel { task: String },
    Delete { task: String },
    BulkCleanup { status: TaskStatus },
    Prepare { task: String },
    Get { task: String },
    BySession { task: String },
    Configure { max: usize, queueing: bool, strict: bool },
}

/// What is compared of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The task, after it.
    Task(Box<TaskSummary>),
    /// No such task, and that is no error.
    Nothing,
    /// These are gone, in this order.
    Gone(Vec<String>),
    /// The configuration's limit of active tasks.
    Limit(usize),
}

/// An answer, or the code of a refusal.
pub(super) type Answered = Result<Answer, PodErrorCode>;

const LEASES: [&str; 3] = ["A", "B", "C"];
const REASONS: [&str; 8] =
    ["completed", "completed", "aborted", "error", "blocked", "max-tokens", "interrupted", "of a plugin"];
const PROBES: [Probe; 8] = [
    Probe::Denied,
    Probe::Denied,
    Probe::Denied,
    Probe::Denied,
    Probe::SkippedNoParent,
    Probe::Ambiguous,
    Probe::Failed,
    Probe::Allowed,
];

impl Op {
    /// What a host may ask for next; mostly what makes sense, so that the walk gets far.
    pub(super) fn any(dice: &mut Dice, model: &Model) -> Self {
        let known: Vec<_> = model.tasks.iter().map(|task| task.id.clone()).collect();
        let task = match dice.pick(&known) {
            Some(task) if !dice.percent(3) => task.clone(),
            _ => "unknown".to_owned(),
        };
        let some_lease = LEASES[dice.below(3) as usize];
        let lease = match model.holder(&task) {
            Some(holder) if !dice.percent(5) => holder,
            _ => some_lease,
        };
        let at = model.find(&task).map(|task| &model.tasks[task]);
        let last = at.as_ref().ok().and_then(|task| task.last_turn).unwrap_or(0);
        // Mostly the next one, or the one that is open; now and then an old one, or one too far.
        let near = |dice: &mut Dice, usual: u64| match dice.below(12) {
            0 => last.saturating_sub(1),
            1 => last + 2,
            2 => last,
            _ => usual,
        };
        match dice.below(100) {
            0..14 => {
                // Sometimes a name that was used before.
                let task = match dice.percent(90) {
                    true => format!("t{}", model.reserved),
                    false => task,
                };
                let timeout = 30_000 + 1000 * dice.below(90) as i64;
                Self::Reserve { task, lease: some_lease, timeout }
            }
            14..20 => Self::Reattach { task, lease: if dice.percent(50) { some_lease } else { lease } },
            20..25 => Self::MarkStarting { task, lease },
            25..33 => Self::MarkRunning { task, lease },
            33..47 => Self::TurnStarted { turn: near(dice, last + 1), task, lease },
            47..60 => Self::TurnEnded {
                turn: near(dice, last),
                task,
                lease,
                reason: REASONS[dice.below(8) as usize],
                timed_out: dice.percent(10),
            },
            60..66 => Self::SetLastText { text: format!("text {}", dice.below(1000)), task, lease },
            66..68 => Self::SetTools { task, lease, tools: dice.below(20) as usize },
            68..72 => Self::SetCheck { task, lease, probe: PROBES[dice.below(8) as usize] },
            72..75 => Self::SetError { message: format!("boom {}", dice.below(10)), task, lease },
            75..82 => Self::Heartbeat { task, lease },
            82..86 => Self::Cancel { task },
            86..90 => Self::Delete { task },
            90..91 => Self::BulkCleanup { status: TaskStatus::ALL[dice.below(8) as usize] },
            91..93 => Self::Prepare { task },
            93..95 => Self::Get { task },
            95..97 => Self::BySession { task },
            _ => Self::Configure {
                max: 1 + dice.below(4) as usize,
                queueing: !dice.percent(20),
                strict: dice.percent(50),
            },
        }
    }

    /// The task it is about, if it is about one.
    pub(super) fn subject(&self) -> Option<&str> {
        match self {
            Self::BulkCleanup { .. } | Self::Configure { .. } => None,
            Self::Reserve { task, .. }
            | Self::Reattach { task, .. }
            | Self::MarkStarting { task, .. }
            | Self::MarkRunning { task, .. }
            | Self::TurnStarted { task, .. }
            | Self::TurnEnded { task, .. }
            | Self::SetLastText { task, .. }
            | Self::SetTools { task, .. }
            | Self::SetCheck { task, .. }
            | Self::SetError { task, .. }
            | Self::Heartbeat { task, .. }
            | Self::Cancel { task }
            | Self::Delete { task }
            | Self::Prepare { task }
            | Self::Get { task }
            | Self::BySession { task } => Some(task),
        }
    }

    /// Sends it, without waiting.
    pub(super) fn send(self, pod: &Pod, answer: impl FnOnce(Answered) + Send + 'static) {
        let lease_id = |lease: &str| LeaseId(lease.to_owned());
        match self {
            Self::Reserve { task, lease, timeout } => {
                let request = TaskReserve {
                    session_id: session(&task),
                    task_id: TaskId::new(task).unwrap(),
                    main_session_id: "main".to_owned(),
                    label: None,
                    description: "walk".to_owned(),
                    subdir: String::new(),
                    timeout_ms: Some(timeout),
                    allow: None,
                    preset_id: None,
                    model: ModelChoice::default(),
                    lease_id: lease_id(lease),
                };
                let reply = reply(answer, |reserved: Reserved| {
                    let starts = reserved.task.status == TaskStatus::Starting;
                    assert_eq!(reserved.start_now, starts);
                    assert_eq!(reserved.policy.is_some(), starts);
                    assert_eq!(reserved.queued_position, reserved.task.queued_position);
                    Answer::Task(Box::new(reserved.task))
                });
                pod.call(request, reply);
            }
            Self::Reattach { task, lease } => {
                pod.call(TaskReattach { task_id: task, lease_id: lease_id(lease) }, reply(answer, of_task));
            }
            Self::MarkStarting { task, lease } => {
                pod.call(
                    TaskMarkStarting { task_id: task, lease_id: lease_id(lease) },
                    reply(answer, of_task),
                );
            }
            Self::MarkRunning { task, lease } => {
                pod.call(
                    TaskMarkRunning { task_id: task, lease_id: lease_id(lease) },
                    reply(answer, of_task),
                );
            }
            Self::TurnStarted { task, lease, turn } => {
                let request = TaskTurnStarted { task_id: task, lease_id: lease_id(lease), turn };
                pod.call(request, reply(answer, of_task));
            }
            Self::TurnEnded { task, lease, turn, reason, timed_out } => {
                let request = TaskTurnEnded {
                    task_id: task,
                    lease_id: lease_id(lease),
                    turn,
                    reason: Some(reason.to_owned()),
                    timed_out,
                    last_text: None,
                };
                pod.call(request, reply(answer, of_task));
            }
            Self::SetLastText { task, lease, text } => {
                let request = TaskSetLastText { task_id: task, lease_id: lease_id(lease), text };
                pod.call(request, reply(answer, of_task));
            }
            Self::SetTools { task, lease, tools } => {
                let tools = (0..tools).map(|n| format!("tool {n}")).collect();
                let request = TaskSetAvailableTools { task_id: task, lease_id: lease_id(lease), tools };
                pod.call(request, reply(answer, of_task));
            }
            Self::SetCheck { task, lease, probe } => {
                let check = SandboxCheck {
                    mode: SandboxMode::WorkspaceWrite,
                    root: String::new(),
                    probe,
                    fs_denied: probe == Probe::Denied,
                    note: String::new(),
                    at: 1,
                };
                let request = TaskSetSandboxCheck { task_id: task, lease_id: lease_id(lease), check };
                pod.call(request, reply(answer, of_task));
            }
            Self::SetError { task, lease, message } => {
                let code = "WALK".to_owned();
                let request = TaskSetError { task_id: task, lease_id: lease_id(lease), code, message };
                pod.call(request, reply(answer, of_task));
            }
            Self::Heartbeat { task, lease } => {
                let request = TaskHeartbeat { task_id: task, lease_id: lease_id(lease) };
                pod.call(request, reply(answer, |heard: HeartbeatResult| Answer::Task(Box::new(heard.task))));
            }
            Self::Cancel { task } => pod.call(TaskCancel { task_id: task }, reply(answer, of_task)),
            Self::Delete { task } => {
                let reply = reply(answer, |deleted: TaskDeleted| Answer::Gone(vec![deleted.task_id]));
                pod.call(TaskDelete { task_id: task }, reply);
            }
            Self::BulkCleanup { status } => {
                let request = TaskBulkCleanup {
                    statuses: Some(vec![status]),
                    older_than_ms: None,
                    delete_files: false,
                };
                let reply = reply(answer, |done: BulkCleanupResult| {
                    assert!(done.results.iter().all(|row| row.ok), "{done:?}");
                    assert_eq!(done.deleted, done.results.len());
                    Answer::Gone(done.results.into_iter().map(|row| row.task_id).collect())
                });
                pod.call(request, reply);
            }
            Self::Prepare { task } => {
                let reply = reply(answer, |done: SandboxPrepared| Answer::Task(Box::new(done.task)));
                pod.call(SandboxPrepare { task_id: task }, reply);
            }
            Self::Get { task } => pod.call(TaskGet { task_id: task }, reply(answer, of_task)),
            Self::BySession { task } => {
                let reply = reply(answer, |found: TaskOrNull| match found.task {
                    Some(task) => Answer::Task(Box::new(task)),
                    None => Answer::Nothing,
                });
                pod.call(TaskBySession { session_id: session(&task) }, reply);
            }
            Self::Configure { max, queueing, strict } => {
                let mode = if strict { "strict" } else { "warn" };
                let patch = json!({"maxConcurrent": max, "queueEnabled": queueing, "sandboxProbeMode": mode});
                let patch = patch.as_object().unwrap().clone();
                let reply = reply(answer, |done: PatchedConfig| {
                    assert_eq!(done.messages, Vec::<String>::new());
                    Answer::Limit(usize::try_from(done.config.max_concurrent).unwrap())
                });
                pod.call(ConfigSet { patch }, reply);
            }
        }
    }
}

/// The session of a task.
pub(super) fn session(task: &str) -> String {
    format!("session of {task}")
}

fn of_task(result: TaskResult) -> Answer {
    Answer::Task(Box::new(result.task))
}

fn reply<T: 'static>(
    answer: impl FnOnce(Answered) + Send + 'static,
    shown: impl FnOnce(T) -> Answer + Send + 'static,
) -> Reply<T> {
    Reply::new(move |result: Result<T, Failure>| answer(result.map(shown).map_err(|failure| failure.code)))
}
