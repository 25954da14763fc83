//! A home, a workspace, and sessions put there by hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_protocol::session::{ListCursor, SessionId};
use cofferdam_tests::files::{mkdir, set_mtime, write};

use crate::clock::{RandomIds, SystemClock};
use crate::disk::Disk;
use crate::session::scope::directory_name;
use crate::session::{Config, SessionStore, StoreParts, config};

/// A test's own place.
pub struct Site {
    dir: tempfile::TempDir,
    /// What the store is told of the disk.
    pub disk: Disk,
}

impl Site {
    pub fn new() -> Self {
        let site = Self { dir: tempfile::tempdir().unwrap(), disk: Disk::default() };
        mkdir(site.path("home"));
        mkdir(site.workspace());
        site
    }

    /// A canonical path in this place.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("ws")
    }

    /// The default root.
    pub fn root(&self) -> PathBuf {
        self.path("home/.copilot-shell/cosh-core/sessions")
    }

    /// The directory of this workspace's sessions.
    pub fn scope(&self) -> PathBuf {
        self.scope_of(&self.workspace())
    }

    /// The directory of a workspace's sessions.
    pub fn scope_of(&self, workspace: &Path) -> PathBuf {
        self.root().join(directory_name(workspace.to_str().unwrap()))
    }

    /// The flat directory.
    pub fn legacy(&self) -> PathBuf {
        self.workspace().join("sessions")
    }

    pub fn parts(&self) -> StoreParts {
        StoreParts {
            disk: self.disk.clone(),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(RandomIds),
            home: Some(self.path("home")),
        }
    }

    /// The workspace's store with the default settings.
    pub fn store(&self) -> SessionStore {
        self.open(&self.workspace(), Config::DEFAULT_DIR).unwrap()
    }

    /// The store of a workspace in a root.
    pub fn open(&self, workspace: &Path, persist_dir: &str) -> Result<SessionStore, super::super::Error> {
        let (config, _) = Config::load(&config::Places::default(), None);
        let config = Config { persist_dir: persist_dir.to_owned(), ..config };
        SessionStore::open(self.parts(), &config, workspace)
    }

    /// Puts a file of this workspace there, last written `seconds` after 1970.
    pub fn put(&self, id: &SessionId, bytes: impl AsRef<[u8]>, seconds: i64) {
        put(&self.scope(), id, bytes, seconds);
    }

    /// Puts a healthy session of this workspace there.
    pub fn put_ready(&self, id: &SessionId, seconds: i64) {
        self.put(id, envelope(id, &self.workspace()), seconds);
    }
}

/// Puts a session's file into a directory.
pub fn put(dir: &Path, id: &SessionId, bytes: impl AsRef<[u8]>, seconds: i64) {
    let path = dir.join(format!("{id}.json"));
    write(&path, bytes);
    set_mtime(&path, seconds, 0);
}

/// Session number `n`.
pub fn id(n: u32) -> SessionId {
    SessionId::new(format!("00000000-0000-4000-8000-{n:012}")).unwrap()
}

/// A healthy envelope, as text.
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

/// The ids of a page, and where the next begins.
#[track_caller]
pub fn page(
    store: &SessionStore,
    limit: usize,
    cursor: Option<&ListCursor>,
    all_workspaces: bool,
) -> (Vec<String>, Option<ListCursor>) {
    let page = store.list(limit, cursor, all_workspaces).unwrap();
    (page.sessions.into_iter().map(|row| row.session_id).collect(), page.next)
}

/// The ids that a plan for everything names.
#[track_caller]
pub fn planned(store: &SessionStore) -> Vec<SessionId> {
    store.plan(&[], None, None).unwrap().clearable
}
