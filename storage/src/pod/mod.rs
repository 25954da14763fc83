//! Everything of the isolation pod that touches a disk: the database, the predecessor's file, the sandbox root.

mod agents;
mod cleanup;
mod db;
mod error;
pub mod export;
pub mod files;
mod legacy;
mod model;
mod place;
pub mod presets;
mod sandbox;

pub use agents::{AgentDirs, AgentFile};
pub use cleanup::remove_task_dir;
pub use db::{Opened, PodDb, SCHEMA_VERSION, StillLocked, discard_backups};
pub use error::{Error, ExportLimit};
pub use model::{Change, ExportPage, KeptExport, Loaded, TaskRecord};
pub use place::{TaskPlace, leads_into};
pub use sandbox::{MadeDir, Protected, Surroundings, check_root, make_task_dir, policy};
