//! The methods: for each a type with its args, its name, and its answer.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::envelope::{args_of, success_body};
use super::shown::{DiagnosticsPage, State, TaskRow, Transcript, TurnList, WayBack};
use crate::pod::{
    BulkCleanupResult, ConflictMode, ExportMode, ExportRecord, ExportUndone, FileRows, FileText, LegacyLog,
    PatchedConfig, TaskStatus, lenient,
};

/// A method of the host. Its value is the args; keys it does not know are ignored.
pub trait HostMethod: Serialize + DeserializeOwned + std::fmt::Debug + Send + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What a client reads of the answer.
    type Document: DeserializeOwned + std::fmt::Debug;
    /// What the actors answer: the document, or its body ready made.
    type Answer: HostAnswer;

    /// Reads the args of a body that holds nothing else, as the control API takes them. The error is a text for people.
    fn parse(body: &[u8]) -> Result<Self, String> {
        args_of(str::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?)
    }
}

/// What a method answers.
pub trait HostAnswer: std::fmt::Debug + Send + 'static {
    /// The body of the success: one JSON object with `ok` and the fields of the answer.
    fn body(&self) -> bytes::Bytes;
}

impl<T: Serialize + std::fmt::Debug + Send + 'static> HostAnswer for T {
    fn body(&self) -> bytes::Bytes {
        success_body(self)
    }
}

/// An answer whose body was made before, since it is asked for far more often than it changes.
#[derive(Clone, Debug)]
pub struct Prepared(pub bytes::Bytes);

impl HostAnswer for Prepared {
    fn body(&self) -> bytes::Bytes {
        self.0.clone()
    }
}

/// Ties args to their method's name, to what a client reads, and to what the actors answer where that is not the same.
macro_rules! methods {
    ($list:ident { $($args:ident: $name:literal -> $document:ty $(as $answer:ty)?,)+ }) => {
        $(
            impl HostMethod for $args {
                const NAME: &'static str = $name;
                type Document = $document;
                type Answer = methods!(@answer $document $(, $answer)?);
            }
        )+

        /// The names of these methods.
        pub const $list: &[&str] = &[$($name),+];
    };
    (@answer $document:ty) => { $document };
    (@answer $document:ty, $answer:ty) => { $answer };
}

methods! { METHODS {
    GetState: "getState" -> State as Prepared,
    SetConfig: "setConfig" -> PatchedConfig,
    StartTask: "startTask" -> StartedTask,
    OpenTask: "openTask" -> OpenedTask,
    ResumeTask: "resumeTask" -> ResumedTask,
    CancelTask: "cancelTask" -> OneTask,
    Cleanup: "cleanup" -> CleanedUp,
    BulkCleanup: "bulkCleanup" -> BulkCleanupResult,
    ListFiles: "listFiles" -> FileRows,
    ReadSandboxFile: "readSandboxFile" -> FileText,
    PreviewReturn: "previewReturn" -> ReturnPreview,
    ReturnToMain: "returnToMain" -> Returned,
    ExportEntries: "exportEntries" -> Exported,
    ListExports: "listExports" -> ExportList,
    UndoExport: "undoExport" -> ExportUndone,
    GetDiagnostics: "getDiagnostics" -> DiagnosticsPage,
    RestartCore: "restartCore" -> RestartedCore,
    GetLegacyTask: "getLegacyTask" -> LegacyLog,
} }

methods! { OWN_METHODS {
    FollowUp: "followUp" -> OneTask,
    GetTranscript: "getTranscript" -> Transcript,
    ListTurns: "listTurns" -> TurnList,
    RewindTask: "rewindTask" -> Rewound,
    UndoRewind: "undoRewind" -> Rewound,
} }

/// Asks for everything a panel shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetState {
    /// The conversation that the user is in; the sandbox verdict compares with its directory.
    #[serde(default, deserialize_with = "lenient::name_or_empty")]
    pub main_session_id: String,
}

/// Applies a patch to the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetConfig {
    /// Some keys of the configuration.
    pub patch: Map<String, Value>,
}

/// Starts a task, or queues it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartTask {
    /// The conversation it is started from; empty: none.
    #[serde(default, deserialize_with = "lenient::name_or_empty")]
    pub main_session_id: String,
    /// What it is asked to do; not blank, at most 64 KiB.
    #[serde(deserialize_with = "lenient::description")]
    pub description: String,
    /// Below the sandbox root.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub subdir: String,
    /// A short name; without one, the beginning of the description.
    #[serde(default)]
    pub label: Option<String>,
    /// The preset; without it, that of the configuration. An addition to the contract.
    #[serde(default, deserialize_with = "lenient::optional_name")]
    pub preset_id: Option<String>,
}

/// A task that was started or queued.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartedTask {
    /// The record's id.
    pub task_id: String,
    /// The agent's session.
    pub session_id: String,
    /// All of it.
    pub task: TaskRow,
}

/// Asks for a task that somebody looks at; resumes it if the configuration says so.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenTask {
    /// Which.
    pub task_id: String,
}

/// A task that somebody looks at.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenedTask {
    /// The agent's session.
    pub session_id: String,
    /// All of it.
    pub task: TaskRow,
    /// Whether an agent is there.
    pub live: bool,
    /// Why it could not be resumed; `null` if it was, or was not to be.
    pub resume_error: Option<String>,
}

/// Gives an ended task an agent again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumeTask {
    /// Which.
    pub task_id: String,
}

/// A task with an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumedTask {
    /// The agent's session.
    pub session_id: String,
    /// All of it.
    pub task: TaskRow,
    /// Whether an agent is there.
    pub live: bool,
}

/// Cancels the turn that runs, or a queued task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelTask {
    /// Which.
    pub task_id: String,
    /// Why, for the agent.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A task after whatever was asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OneTask {
    /// All of it.
    pub task: TaskRow,
}

/// What a clean-up removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CleanupScope {
    /// The record; the files stay.
    #[default]
    Record,
    /// The files; the record stays.
    Files,
    /// Both; the record stays if the files cannot be removed.
    All,
}

/// Cancels a task if it has not ended, and removes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cleanup {
    /// Which.
    pub task_id: String,
    /// What of it.
    #[serde(default)]
    pub scope: CleanupScope,
}

/// What was removed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanedUp {
    /// Of which task.
    pub task_id: String,
    /// Whether its directory was there and is gone.
    pub removed_files: bool,
    /// Whether its record is gone.
    pub removed_record: bool,
}

/// Removes many tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkCleanup {
    /// Of these statuses; completed, if it is missing.
    #[serde(default)]
    pub statuses: Option<Vec<TaskStatus>>,
    /// Only what ended longer ago than that.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub older_than_ms: Option<i64>,
    /// Whether their files go too.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub delete_files: bool,
}

/// Asks for a task's files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListFiles {
    /// Whose.
    pub task_id: String,
}

/// Asks for a file's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadSandboxFile {
    /// Whose.
    pub task_id: String,
    /// Which, below the task's directory.
    pub rel_path: String,
    /// The most characters wanted; clamped to 200..20 000, and to what the configuration allows.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub max_chars: Option<i64>,
}

/// Asks what could be told to the main session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviewReturn {
    /// About which task.
    pub task_id: String,
    /// What of it.
    #[serde(default)]
    pub parts: ReturnParts,
}

/// What is told of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReturnParts {
    /// Its status, with the beginning of its error.
    pub status: bool,
    /// What the agent said last.
    pub conclusion: bool,
    /// The beginning of a file.
    pub file: Option<ReturnedFile>,
    /// What the person adds; 1000 characters at most.
    pub custom_text: String,
}

impl Default for ReturnParts {
    fn default() -> Self {
        Self { status: true, conclusion: true, file: None, custom_text: String::new() }
    }
}

/// A file of which something is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnedFile {
    /// Which, below the task's directory.
    pub rel_path: String,
}

/// What could be told to the main session; for a person to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnPreview {
    /// At most 4000 characters.
    pub text: String,
    /// Whether it was cut.
    pub truncated: bool,
}

/// Tells a main session something, as one message of the user.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnToMain {
    /// Which; its client has to be attached.
    #[serde(deserialize_with = "lenient::name_or_empty")]
    pub main_session_id: String,
    /// What; not blank, cut at 8000 characters.
    pub text: String,
    /// The client's name for the request: one that comes again is not delivered twice. An addition to the contract.
    #[serde(default, deserialize_with = "lenient::optional_name")]
    pub request_id: Option<String>,
}

/// A message that was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Its id, `ipp-ret-…`.
    pub id: String,
    /// Whether it was cut.
    pub truncated: bool,
}

/// Exports files of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportEntries {
    /// Whose.
    pub task_id: String,
    /// Which, below the task's directory.
    pub entries: Vec<String>,
    /// Where to, an absolute path outside of the sandbox.
    pub target_dir: String,
    /// Whether the sources stay; copy unless said otherwise.
    #[serde(default)]
    pub mode: Option<ExportMode>,
    /// What to do about files in the way; overwrite unless said otherwise.
    #[serde(default)]
    pub conflict: Option<ConflictMode>,
    /// Whether the target is to be filled in next time.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub remember: bool,
}

/// A finished export.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Exported {
    /// Its record.
    pub export: ExportRecord,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Asks for the export records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListExports {}

/// The export records.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportList {
    /// Newest first.
    pub exports: Vec<ExportRecord>,
    /// The target that each main session wanted remembered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remembered: BTreeMap<String, String>,
    /// `true` if older ones were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Undoes a copy export.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoExport {
    /// Which one.
    pub export_id: String,
}

/// Asks how host and core are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GetDiagnostics {}

/// Releases all agents and restarts the core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestartCore {}

/// The core after it was restarted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestartedCore {
    /// How it is.
    pub core: super::shown::CoreState,
}

/// Asks for the transcript of a migrated task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetLegacyTask {
    /// Whose.
    pub task_id: String,
}

/// Gives a task's agent something more to do: one more turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FollowUp {
    /// Whose agent; it is resumed if it is not there.
    pub task_id: String,
    /// What; not blank, at most 64 KiB.
    #[serde(deserialize_with = "lenient::description")]
    pub text: String,
}

/// Asks what a task's agent said and did.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTranscript {
    /// Whose agent.
    pub task_id: String,
    /// Leave out entries whose number is lower.
    #[serde(default)]
    pub from: u64,
}

/// Asks which turns a task had, and which of them can be gone back to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTurns {
    /// Whose.
    pub task_id: String,
}

/// Brings a task's files, what its agent keeps, and the conversation back to what they were before a turn. Refused while a turn
/// runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindTask {
    /// Which.
    pub task_id: String,
    /// Before which turn.
    pub turn: u64,
}

/// Takes a task's last rewind back, or the last taking back. Whatever was done since is kept as a rewind keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoRewind {
    /// Which.
    pub task_id: String,
}

/// A task after a rewind, or after one was taken back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    /// All of it.
    pub task: TaskRow,
    /// Before which turn the rewind led.
    pub turn: u64,
    /// What was undone; nothing if the task was rewound.
    pub undid: Option<WayBack>,
    /// How many paths in the task's directory were changed.
    pub changed: u64,
    /// What a person should know.
    pub notes: Vec<String>,
}
