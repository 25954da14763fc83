//! A home, a workspace, and sessions put there by hand.

use std::path::{Path, PathBuf};

use cofferdam_protocol::session::SessionId;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::files::{mkdir, read, remove, set_mtime, write};

/// A home, a workspace, and a directory that is neither.
#[derive(Debug)]
pub struct Place {
    dir: TempDir,
}

impl Place {
    /// An empty home and an empty workspace.
    #[allow(clippy::new_without_default, reason = "it makes directories")]
    pub fn new() -> Self {
        let place = Self { dir: tempfile::Builder::new().prefix("cofferdam-session-").tempdir().unwrap() };
        for dir in [place.home(), place.workspace(), place.path("elsewhere")] {
            mkdir(dir);
        }
        place
    }

    /// A canonical path in this place.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The workspace.
    pub fn workspace(&self) -> PathBuf {
        self.path("ws")
    }

    /// The default root of the store.
    pub fn root(&self) -> PathBuf {
        self.path("home/.copilot-shell/cosh-core/sessions")
    }

    /// The directory of the workspace's sessions.
    pub fn scope(&self) -> PathBuf {
        self.scope_of(&self.workspace())
    }

    /// The directory of a workspace's sessions.
    pub fn scope_of(&self, workspace: &Path) -> PathBuf {
        self.root().join(directory_name(workspace))
    }

    /// The workspace's flat directory.
    pub fn legacy(&self) -> PathBuf {
        self.workspace().join("sessions")
    }

    /// Where the file of session number `n` of the workspace is.
    pub fn file(&self, n: u32) -> PathBuf {
        self.scope().join(format!("{}.json", id(n)))
    }

    /// Makes another workspace.
    pub fn other(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        mkdir(&path);
        path
    }

    /// Puts a file of the workspace there, last written `seconds` after 1970.
    pub fn put(&self, id: &SessionId, bytes: impl AsRef<[u8]>, seconds: i64) {
        put(&self.scope(), id, bytes, seconds);
    }

    /// Puts a healthy session of the workspace there.
    pub fn put_ready(&self, id: &SessionId, seconds: i64) {
        self.put(id, envelope(id, &self.workspace()), seconds);
    }

    /// Writes the user's configuration file.
    pub fn configure(&self, text: &str) {
        write(self.home().join(".copilot-shell/config.toml"), text);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A sealed directory would outlive its test.
        if !std::thread::panicking() {
            remove(self.dir.path());
        }
    }
}

/// Puts a session's file into a directory.
pub fn put(dir: &Path, id: &SessionId, bytes: impl AsRef<[u8]>, seconds: i64) {
    let path = dir.join(format!("{id}.json"));
    write(&path, bytes);
    set_mtime(&path, seconds, 0);
}

/// The name of the directory of a workspace, whose path is canonical.
pub fn directory_name(workspace: &Path) -> String {
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    digest[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Session number `n`.
pub fn id(n: u32) -> SessionId {
    SessionId::new(format!("00000000-0000-4000-8000-{n:012}")).unwrap()
}

/// A healthy envelope of two messages, as text.
pub fn envelope(id: &SessionId, workspace: &Path) -> String {
    format!(
        r#"{{"schema_version": 1, "session_id": "{id}", "workspace_scope": "{}", "created_at_ms": 1000,
            "updated_at_ms": 2000, "model": "m", "generation": 3, "messages":
            [{{"role": "user", "content": "hello"}}, {{"role": "assistant", "content": "yes"}}],
            "compaction_revision": 0}}"#,
        workspace.display()
    )
}

/// An array of messages, as text.
pub const ARRAY: &str = r#"[{"role": "user", "content": "long ago"}]"#;

/// A recorded file, as if it had been recorded in another workspace than `/w/demo`.
pub fn recorded(name: &str, workspace: &Path) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/sessions").join(name);
    // One of them ends in NULs; none has bytes that are not UTF-8.
    String::from_utf8(read(path)).unwrap().replace("/w/demo", workspace.to_str().unwrap()).into()
}
