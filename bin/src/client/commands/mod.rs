//! The verbs, a file each.

pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod cleanup;
pub(crate) mod config;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod recover;
pub(crate) mod reload;
pub(crate) mod rollback;
pub(crate) mod status;
pub(crate) mod trash;
pub(crate) mod undo;
