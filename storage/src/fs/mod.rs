//! Reading and removing files beneath a held descriptor, following no link and entering no mount.

mod directories;
mod held;
mod identity;
mod remove;
mod root;
mod stat;

pub use directories::{Directories, directories};
pub use held::Held;
pub use identity::FileIdentity;
pub use remove::remove_tree;
pub use root::{Root, open_for_reading};
pub use stat::{Attributes, Stat, stat, stat_fd};
