//! Everything of the isolation pod that touches a disk: the database, the predecessor's file, the sandbox root.

mod db;
mod error;
mod legacy;
mod model;
mod sandbox;

pub use db::{Opened, PodDb, SCHEMA_VERSION};
pub use error::Error;
pub use model::{Change, ExportPage, Loaded, TaskRecord};
pub use sandbox::{MadeDir, Protected, Surroundings, check_root, make_task_dir, policy};
