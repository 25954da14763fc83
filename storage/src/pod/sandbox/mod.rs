//! The sandbox root and the directories of tasks in it.

mod policy;
mod protected;
mod root;
mod task_dir;

#[cfg(test)]
mod tests;

pub(super) use policy::is_windows;
pub use policy::policy;
pub(super) use protected::identity;
pub use protected::{Protected, Surroundings};
pub(super) use root::Resolved;
pub use root::check_root;
pub use task_dir::{MadeDir, make_task_dir};
