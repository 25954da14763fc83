//! What the checkpoint actors can be asked: one message per request of the wire, and what the wire cannot carry.
//!
//! Each but those of [`kept`] says in whose name it is asked. A workspace argument is the text as the client sent it: a workspace id or an
//! absolute path. A snapshot argument is an id or a unique prefix of one.

mod checkpoint;
mod config;
mod delete;
mod diff;
mod init;
mod kept;
mod list;
mod recover;
mod rollback;
mod status;
mod store;
mod trash;
mod undelivered;

pub use checkpoint::{CheckpointOutcome, CreateCheckpoint};
pub use config::{GetConfig, ReloadConfig};
pub use delete::{Cleanup, DeleteSnapshot};
pub use diff::{CompareFile, ComparedFile, DiffSnapshots};
pub use init::InitWorkspace;
pub use kept::{ForgetTree, KeepTree, ListKept, RewindTree};
pub use list::{ListSnapshots, ListedWorkspace, SnapshotList, SnapshotWarnings};
pub use recover::RecoverWorkspace;
pub use rollback::{
    GetLastRollback, LastDone, LastRollback, NewestRollback, Rollback, RollbackDone, UndoDone, UndoRollback,
};
pub use status::{Advisory, HealthAdvisory, WorkspaceStatus};
pub use store::{CheckStore, StoreSize};
pub use trash::{ListTrash, RestoreTrashed};
pub use undelivered::{Repeatable, Undelivered};
