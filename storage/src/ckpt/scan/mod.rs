//! Walking a live tree and capturing what changed since it was last read.

mod cache;
mod capture;

pub use cache::StatCache;
pub use capture::{Capture, Captured, capture, capture_entry};
