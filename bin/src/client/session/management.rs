//! Who manages conversations: the program that keeps them, or the daemon, whose lease a removal goes through.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use cofferdam_actors::session::{self, LoadSession, OpenStore};
use cofferdam_protocol::session::Envelope;

use super::Run;
use super::failure::Failure;
use crate::checkpoint::CkptClient;
use crate::control::ControlClient;
use crate::paths;
use crate::session::{SessionControlClient, SessionCore, parts};

/// How long finding the daemon, and each request to it, may take.
const BUDGET: Duration = Duration::from_secs(10);

/// The program that keeps conversations: `cosh-core`, else this one in its part.
pub(super) fn program() -> SessionControlClient {
    SessionControlClient::of_cofferdam()
}

/// Who removes conversations: a running daemon of this user, else the program.
pub(super) fn remover(run: &Run) -> Box<dyn SessionCore> {
    match daemon(run) {
        Some(daemon) => Box::new(daemon),
        None => Box::new(program()),
    }
}

/// The daemon of this user, if one runs. Another user's keeps other conversations.
fn daemon(run: &Run) -> Option<ControlClient> {
    let state_dir = match CkptClient::discover().deadline(Some(CkptClient::DEFAULT_TIMEOUT)).config() {
        Ok(config) => config.mount_path.into(),
        Err(_) => run.environment.state_dir().ok()?,
    };
    let socket = paths::control_socket(Path::new(&state_dir)).path;
    let owner = std::fs::symlink_metadata(&socket).ok()?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return None;
    }
    let client = ControlClient::new(socket, Some(BUDGET));
    // What a killed daemon left is no daemon.
    client.is_reachable().then_some(client)
}

/// A whole conversation, read in this process.
pub(super) fn load(run: &Run, session_id: &str) -> Result<Envelope, Failure> {
    let (workspace, session_id) = (run.workspace.clone(), session_id.to_owned());
    let loading = async move {
        let sessions = session::start(parts());
        let opened = sessions.ask(OpenStore { workspace, project_settings: true }).await?;
        sessions.ask(LoadSession { store: opened.store?, session_id }).await
    };
    actix::System::new().block_on(loading).map_err(|error| Failure::Refused(error.into()))
}
