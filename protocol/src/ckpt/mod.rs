//! The ws-ckpt protocol: a 4-byte little-endian length, then one bincode enum.

mod ids;

pub use ids::{InvalidId, SnapshotId, WorkspaceId};
