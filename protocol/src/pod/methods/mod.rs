//! The 34 methods: for each a type with its params, its name, and its result.

mod config;
mod export;
mod files;
pub(crate) mod lenient;
mod lifecycle;
mod task;

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use config::*;
pub use export::*;
pub use files::*;
pub use lifecycle::*;
pub use task::*;

/// A method of the contract. Its value is the params; keys it does not know are ignored.
pub trait Method: Serialize + DeserializeOwned + std::fmt::Debug + Send + 'static {
    /// Its name on the wire.
    const NAME: &'static str;
    /// What it answers.
    type Result: Answer + std::fmt::Debug + Send + 'static;
}

/// The result of a method.
pub trait Answer: Serialize + DeserializeOwned {
    /// Leaves out something, the least wanted first, and says so in the result; `false` if nothing can be left out.
    /// Called while the line is too long, by `excess` bytes: what is left out should have about as many.
    fn shorten(&mut self, excess: usize) -> bool {
        let _ = excess;
        false
    }
}

/// How many bytes of JSON a value has.
fn json_size<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).map_or(0, |()| counted.0)
}

/// Counts what is written to it.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Drops the last rows of a list until they made `excess` bytes; `false` if there is none.
fn drop_last<T: Serialize>(rows: &mut Vec<T>, excess: usize) -> bool {
    let mut dropped = 0;
    let mut keep = rows.len();
    while keep > 0 && dropped < excess.max(1) {
        keep -= 1;
        // With its comma.
        dropped += json_size(&rows[keep]) + 1;
    }
    let any = keep < rows.len();
    rows.truncate(keep);
    any
}

/// Ties params to their method's name and result.
macro_rules! methods {
    ($($params:ident: $name:literal -> $result:ty,)+) => {
        $(
            impl Method for $params {
                const NAME: &'static str = $name;
                type Result = $result;
            }
        )+

        /// The names of all methods.
        pub const METHOD_NAMES: &[&str] = &[$($name),+];
    };
}

methods! {
    Initialize: "initialize" -> Initialized,
    Shutdown: "shutdown" -> Done,
    Health: "health" -> HealthReport,
    DiagnosticsGet: "diagnostics.get" -> DiagnosticsReport,
    ConfigGet: "config.get" -> ConfigResult,
    ConfigValidate: "config.validate" -> PatchedConfig,
    ConfigSet: "config.set" -> PatchedConfig,
    TaskList: "task.list" -> TaskRows,
    TaskGet: "task.get" -> TaskResult,
    TaskReserve: "task.reserve" -> Reserved,
    TaskReattach: "task.reattach" -> TaskResult,
    TaskMarkStarting: "task.markStarting" -> TaskResult,
    TaskMarkRunning: "task.markRunning" -> TaskResult,
    TaskTurnStarted: "task.turnStarted" -> TaskResult,
    TaskTurnEnded: "task.turnEnded" -> TaskResult,
    TaskSetLastText: "task.setLastText" -> TaskResult,
    TaskSetSandboxCheck: "task.setSandboxCheck" -> TaskResult,
    TaskSetAvailableTools: "task.setAvailableTools" -> TaskResult,
    TaskSetError: "task.setError" -> TaskResult,
    TaskCancel: "task.cancel" -> TaskResult,
    TaskHeartbeat: "task.heartbeat" -> HeartbeatResult,
    TaskCleanupFiles: "task.cleanupFiles" -> CleanupFilesResult,
    TaskDelete: "task.delete" -> TaskDeleted,
    TaskBySession: "task.bySession" -> TaskOrNull,
    TaskLegacyLog: "task.legacyLog" -> LegacyLog,
    TaskBulkCleanup: "task.bulkCleanup" -> BulkCleanupResult,
    SandboxPrepare: "sandbox.prepare" -> SandboxPrepared,
    FilesList: "files.list" -> FileRows,
    FilesStat: "files.stat" -> FileStat,
    FilesRead: "files.read" -> FileText,
    ExportCreate: "export.create" -> ExportCreated,
    ExportList: "export.list" -> ExportRows,
    ExportUndo: "export.undo" -> ExportUndone,
    ExportDeleteRecord: "export.deleteRecord" -> Done,
}
