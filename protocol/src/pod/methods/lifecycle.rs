//! `initialize`, `shutdown`, `health`, `diagnostics.get`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient;
use super::{Answer, drop_last};
use crate::pod::{Config, ExportRecord, LogLevel, TaskSummary};

/// Opens the database and takes up work (spec §2). Idempotent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// The protocol the host speaks; must be 1.
    pub protocol: i64,
    /// The host's version; a difference is a diagnostic.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub plugin_version: String,
    /// The database, an absolute path.
    pub db_path: String,
    /// The predecessor's file, if it may have to be migrated.
    #[serde(default)]
    pub legacy_json_path: Option<String>,
    /// The host's process; if it is the parent, its end is the end of the sidecar.
    #[serde(default, deserialize_with = "lenient::pid")]
    pub host_pid: Option<u32>,
    /// What the host runs on.
    #[serde(default)]
    pub platform: Option<Value>,
    /// What the host understands beyond the contract, such as `export.progress`.
    #[serde(default, deserialize_with = "lenient::strings")]
    pub features: Option<Vec<String>>,
}

/// What is there after `initialize`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialized {
    /// The protocol spoken.
    pub protocol: i64,
    /// The sidecar's version.
    pub core_version: String,
    /// The database's schema version.
    pub schema_version: i64,
    /// The database, as it was asked for.
    pub db_path: String,
    /// The configuration.
    pub config: Config,
    /// All tasks, newest first.
    pub tasks: Vec<TaskSummary>,
    /// All export records, newest first.
    pub exports: Vec<ExportRecord>,
    /// What happened so far that a person should know.
    pub diagnostics: Vec<Diagnostic>,
    /// `true` if older tasks or exports were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Something a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// When, in milliseconds since the epoch.
    pub at: i64,
    /// How grave: `info`, `warn` or `error`.
    pub level: LogLevel,
    /// What.
    pub message: String,
}

/// Ends the sidecar.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shutdown {}

/// It is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// Always `true`.
    pub ok: bool,
}

/// Asks whether the sidecar lives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Health {}

/// That it does, and what it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthReport {
    /// The protocol spoken.
    pub protocol: i64,
    /// The database schema this program knows.
    pub schema_version: i64,
    /// The sidecar's version.
    pub core_version: String,
    /// Its process.
    pub pid: u32,
    /// Whether `initialize` succeeded.
    pub initialized: bool,
}

/// Asks how the sidecar is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiagnosticsGet {}

/// How the sidecar is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsReport {
    /// What `health` says.
    #[serde(flatten)]
    pub health: HealthReport,
    /// The database; empty before `initialize`.
    pub db_path: String,
    /// Its size with its log.
    pub db_size_bytes: u64,
    /// How many there are of what.
    pub counts: Counts,
    /// The queue.
    pub queue: QueueCounts,
    /// The configuration; `null` before `initialize`.
    pub config: Option<Config>,
    /// Since the process began.
    pub uptime_ms: u64,
    /// Where the log is; empty before `initialize`.
    pub log_path: String,
    /// The last 50, oldest first.
    pub diagnostics: Vec<Diagnostic>,
}

/// How many there are of what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Tasks by status; every status is there.
    pub tasks: BTreeMap<String, usize>,
    /// Export records.
    pub exports: usize,
    /// Leases that somebody holds.
    pub leases: usize,
}

/// How full the queue is.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct QueueCounts {
    /// Tasks that wait.
    pub length: usize,
    /// Tasks that have a slot.
    pub running: usize,
    /// How many slots there are.
    pub max: usize,
}

impl Answer for Initialized {
    fn shorten(&mut self, excess: usize) -> bool {
        self.truncated = true;
        // Tasks stay longest: a host cannot do without those that are new.
        drop_last(&mut self.exports, excess) || drop_last(&mut self.tasks, excess)
    }
}

impl Answer for Done {}
impl Answer for HealthReport {}
impl Answer for DiagnosticsReport {}
