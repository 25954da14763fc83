//! The client library: blocking, on the standard library's streams, one connection per call.
//!
//! ```
//! use cofferdam::checkpoint::CkptClient;
//!
//! # fn main() -> Result<(), cofferdam::checkpoint::CkptError> {
//! // Default path /run/ws-ckpt/ws-ckpt.sock
//! let client = CkptClient::default_path();
//! # drop(client);
//!
//! // Or specify path and timeout
//! let client = CkptClient::with_timeout("/custom/path.sock", 10000);
//!
//! // Health check
//! if !client.is_available() {
//!     eprintln!("ws-ckpt daemon not running");
//! #   return Ok(());
//! }
//!
//! // Operation examples
//! let result = client.create("/home/user/project", "snap-001", Some("initial"), None, false)?;
//! let list = client.list(Some("/home/user/project"))?;
//! let restored = client.restore("/home/user/project", "snap-001")?;
//! # drop((result, list, restored));
//! # Ok(())
//! # }
//! ```

mod error;
mod stream;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_protocol::ckpt::{FrameError, read_message, write_message};
use cofferdam_protocol::ckpt::{WsCkptRequest, WsCkptResponse};

pub use cofferdam_protocol::ckpt::{
    ConfigReport, DiffEntry, DiffKind, SnapshotEntry, SnapshotMeta, StatusReport, WorkspaceInfo,
    WsCkptErrorCode,
};
pub use error::{CkptError, Result};

use crate::paths::{self, Environment};
use stream::DeadlineStream;

/// A client of the ws-ckpt daemon. Every call makes one connection, and all of the call together, from connecting to
/// the last byte of the answer, has one deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CkptClient {
    path: PathBuf,
    timeout: Option<Duration>,
}

/// What became of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpointed {
    /// The snapshot is durable.
    Created {
        /// Its id.
        snapshot_id: String,
    },
    /// No snapshot was needed.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// What a rollback did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The workspace's id.
    pub ws_id: String,
    /// The full id of the snapshot it now equals.
    pub snapshot_id: String,
}

/// The figures by which a client warns its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Workspaces with more than 1000 snapshots.
    pub over_limit_workspace_count: u32,
    /// Size of the filesystem that holds the store.
    pub fs_total_bytes: u64,
    /// What of it is in use.
    pub fs_used_bytes: u64,
}

/// Takes the expected variant out of a response; anything else is an error.
macro_rules! expect {
    ($response:expr, $($pattern:pat => $value:expr),+ $(,)?) => {
        match $response {
            $($pattern => Ok($value),)+
            WsCkptResponse::Error { code, message } => Err(CkptError::Daemon { code, message }),
            _ => Err(CkptError::Protocol("the answer is to another request".to_owned())),
        }
    };
}

impl CkptClient {
    /// How long a call may take unless said otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(5000);

    /// The client for `$WS_CKPT_SOCKET`, else for `/run/ws-ckpt/ws-ckpt.sock`.
    pub fn default_path() -> Self {
        Self::new(Environment::of_process().ws_ckpt_socket().unwrap_or(paths::SYSTEM_SOCKET.into()))
    }

    /// The client for the daemon that runs: `$WS_CKPT_SOCKET` if set, else the first place at which a daemon started
    /// by this user would listen and somebody does, else the system's socket.
    pub fn discover() -> Self {
        Self::first_available(Environment::of_process().client_sockets())
    }

    /// The client for the first of these sockets at which somebody listens; for the first of them if nobody does.
    pub(crate) fn first_available(sockets: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut clients = sockets.into_iter().map(Self::new);
        let first = clients.next().unwrap_or_else(Self::default_path);
        if first.is_available() { first } else { clients.find(Self::is_available).unwrap_or(first) }
    }

    /// The client for a socket of your own.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), timeout: Some(Self::DEFAULT_TIMEOUT) }
    }

    /// The client for a socket of your own, with a deadline per call in milliseconds.
    pub fn with_timeout(path: impl Into<PathBuf>, timeout_ms: u64) -> Self {
        Self { path: path.into(), timeout: Some(Duration::from_millis(timeout_ms)) }
    }

    /// The same client with another deadline per call; `None` waits as long as it takes.
    #[must_use]
    pub fn deadline(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// How long a call may take; `None` is as long as it takes.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether somebody accepts connections there.
    pub fn is_available(&self) -> bool {
        DeadlineStream::connect(&self.path, self.timeout).is_ok()
    }

    /// Registers a directory, or finds it registered. Returns the workspace's id.
    pub fn init(&self, workspace: &str) -> Result<String> {
        let response = self.call(&WsCkptRequest::Init { workspace: workspace.to_owned() })?;
        expect!(response, WsCkptResponse::InitOk { ws_id } => ws_id)
    }

    /// Takes a snapshot named `id` (1 to 255 bytes without `/` and control characters, unique in the workspace), with
    /// a message, JSON text as metadata, and, if `pin`, protected from clean-up. All of it together has room in 16 MiB.
    pub fn create(
        &self,
        workspace: &str,
        id: &str,
        message: Option<&str>,
        metadata: Option<&str>,
        pin: bool,
    ) -> Result<Checkpointed> {
        let response = self.call(&WsCkptRequest::Checkpoint {
            workspace: workspace.to_owned(),
            id: id.to_owned(),
            message: message.map(str::to_owned),
            metadata: metadata.map(str::to_owned),
            pin,
        })?;
        expect!(
            response,
            WsCkptResponse::CheckpointOk { snapshot_id } => Checkpointed::Created { snapshot_id },
            WsCkptResponse::CheckpointSkipped { reason } => Checkpointed::Skipped { reason },
        )
    }

    /// Gives the directory the tree of the snapshot that `id` names or is the unique beginning of.
    pub fn restore(&self, workspace: &str, id: &str) -> Result<Restored> {
        let response =
            self.call(&WsCkptRequest::Rollback { workspace: workspace.to_owned(), to: id.to_owned() })?;
        expect!(response, WsCkptResponse::RollbackOk { from, to } => Restored { ws_id: from, snapshot_id: to })
    }

    /// Removes a snapshot, a pinned one only by `force`. Returns its full id.
    pub fn delete(&self, workspace: Option<&str>, snapshot: &str, force: bool) -> Result<String> {
        let response = self.call(&WsCkptRequest::Delete {
            workspace: workspace.map(str::to_owned),
            snapshot: snapshot.to_owned(),
            force,
        })?;
        expect!(response, WsCkptResponse::DeleteOk { target } => target)
    }

    /// The snapshots of one workspace or of all, oldest first.
    pub fn list(&self, workspace: Option<&str>) -> Result<Vec<SnapshotEntry>> {
        let workspace = workspace.map(str::to_owned);
        let response = self.call(&WsCkptRequest::List { workspace, format: None })?;
        expect!(response, WsCkptResponse::ListOk { snapshots } => snapshots)
    }

    /// How two snapshots differ; `to` may be `@live`.
    pub fn diff(&self, workspace: &str, from: &str, to: &str) -> Result<Vec<DiffEntry>> {
        let response = self.call(&WsCkptRequest::Diff {
            workspace: workspace.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        })?;
        expect!(response, WsCkptResponse::DiffOk { changes } => changes)
    }

    /// The daemon, and one workspace or all.
    pub fn status(&self, workspace: Option<&str>) -> Result<StatusReport> {
        let response = self.call(&WsCkptRequest::Status { workspace: workspace.map(str::to_owned) })?;
        expect!(response, WsCkptResponse::StatusOk { report } => report)
    }

    /// Removes the oldest snapshots that are not pinned, but `keep` (20 if not said). Returns what it removed, oldest
    /// first.
    pub fn cleanup(&self, workspace: &str, keep: Option<u32>) -> Result<Vec<String>> {
        let response = self.call(&WsCkptRequest::Cleanup { workspace: workspace.to_owned(), keep })?;
        expect!(response, WsCkptResponse::CleanupOk { removed } => removed)
    }

    /// The configuration in effect.
    pub fn config(&self) -> Result<ConfigReport> {
        let response = self.call(&WsCkptRequest::Config)?;
        expect!(response, WsCkptResponse::ConfigOk { config } => config)
    }

    /// Has the daemon read its configuration file again.
    pub fn reload(&self) -> Result<()> {
        let response = self.call(&WsCkptRequest::ReloadConfig)?;
        expect!(response, WsCkptResponse::ReloadConfigOk => ())
    }

    /// Unregisters a workspace; its directory stays as it is. Returns its path.
    pub fn recover(&self, workspace: &str) -> Result<String> {
        let response = self.call(&WsCkptRequest::Recover { workspace: workspace.to_owned() })?;
        expect!(response, WsCkptResponse::RecoverOk { workspace } => workspace)
    }

    /// The figures by which a client warns its user.
    pub fn health(&self) -> Result<Health> {
        let response = self.call(&WsCkptRequest::HealthAdvisory)?;
        expect!(
            response,
            WsCkptResponse::HealthAdvisoryOk { over_limit_workspace_count, fs_total_bytes, fs_used_bytes } =>
                Health { over_limit_workspace_count, fs_total_bytes, fs_used_bytes },
        )
    }

    /// Sends one request and waits for its answer.
    fn call(&self, request: &WsCkptRequest) -> Result<WsCkptResponse> {
        self.exchange(request).map_err(|error| CkptError::of_frame(error, &self.path, self.timeout))
    }

    fn exchange(&self, request: &WsCkptRequest) -> std::result::Result<WsCkptResponse, FrameError> {
        let mut stream = DeadlineStream::connect(&self.path, self.timeout)?;
        let sent = write_message(&mut stream, request);
        match sent {
            // A daemon that refuses a request without reading all of it has said why.
            Err(FrameError::Io(error)) if hung_up(&error) => match read_message(&mut stream) {
                Ok(Some(response)) => return Ok(response),
                _ => return Err(FrameError::Io(error)),
            },
            sent => sent?,
        }
        let closed =
            || io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection without an answer");
        read_message(&mut stream)?.ok_or_else(|| closed().into())
    }
}

fn hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
