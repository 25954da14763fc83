//! Walking a live tree and capturing what changed since it was last read.

mod boot;
mod cache;
mod capture;
mod file;
mod filesystem;
mod found;
mod frame;
mod listing;
mod names;
mod record;
mod stack;
#[cfg(test)]
mod tests;
mod walk;
mod xattr;

pub use boot::BootId;
pub use cache::StatCache;
pub use capture::{Capture, Captured, capture, capture_entry};
