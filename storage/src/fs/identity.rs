//! Is it still the same file?

use std::io;
use std::os::fd::AsFd;

/// What tells a file from every other that ever had its name: the filesystem's id with its `name_to_handle_at`
/// handle, or with inode number and birth time where the filesystem gives no handles. Stable over renames,
/// remounts and restarts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FileIdentity(Box<[u8]>);

impl FileIdentity {
    /// The identity of an open (or `O_PATH`) descriptor.
    pub fn of(_file: impl AsFd) -> io::Result<Self> {
        todo!()
    }

    /// As it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From where it was stored.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl std::fmt::Debug for FileIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
