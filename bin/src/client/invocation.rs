//! What a verb works with: the daemon, the terminal, and the surroundings.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_protocol::ckpt::WorkspaceId;

use super::arguments::Connection;
use super::failure::Failure;
use crate::checkpoint::CkptClient;
use crate::control::ControlClient;
use crate::paths::{self, Environment};
use crate::socket;
use crate::terminal::Terminal;

/// One run of a client program.
pub(crate) struct Invocation {
    /// What the user typed to get here, such as `cofferdam ckpt`.
    pub(super) program: &'static str,
    pub(super) client: CkptClient,
    pub(super) terminal: Terminal,
    pub(super) environment: Environment,
    /// As given on the command line.
    state_dir: Option<PathBuf>,
}

impl Invocation {
    pub(super) fn new(
        program: &'static str,
        connection: &Connection,
        environment: Environment,
        terminal: Terminal,
    ) -> Self {
        let client = match (&connection.socket, &connection.state_dir) {
            (Some(socket), _) => CkptClient::new(socket),
            (None, Some(state_dir)) => client_of(state_dir, &environment, connection.timeout),
            (None, None) => CkptClient::discover(),
        };
        Self {
            program,
            client: client.deadline(connection.timeout),
            terminal,
            environment,
            state_dir: connection.state_dir.clone(),
        }
    }

    /// The state directory: as the command line says, else the running daemon's, else where a daemon of this user
    /// would have it.
    pub(super) fn state_dir(&self) -> Result<PathBuf, Failure> {
        if let Some(dir) = &self.state_dir {
            return Ok(std::path::absolute(dir)?);
        }
        match self.client.config() {
            // The store's home is what the contract calls the mount path.
            Ok(config) => Ok(config.mount_path.into()),
            Err(_) => Ok(std::path::absolute(self.environment.state_dir()?)?),
        }
    }

    /// The control API of the daemon, for something beside the point: finding it and asking it must each be done
    /// within `budget`, or what the user gives a call if that is less.
    pub(super) fn control_within(&self, budget: Duration) -> Option<ControlClient> {
        let budget = self.client.timeout().map_or(budget, |timeout| timeout.min(budget));
        let config = self.client.clone().deadline(Some(budget)).config().ok()?;
        let socket = paths::control_socket(Path::new(&config.mount_path)).path;
        Some(ControlClient::new(socket, Some(budget)))
    }

    /// The control API of the daemon.
    pub(super) fn control(&self) -> Result<ControlClient, Failure> {
        Ok(ControlClient::new(paths::control_socket(&self.state_dir()?).path, self.client.timeout()))
    }
}

/// The client for the daemon that uses a state directory, wherever it listens; where it would by default, if there is
/// none.
fn client_of(state_dir: &Path, environment: &Environment, timeout: Option<Duration>) -> CkptClient {
    let own = paths::state_socket(state_dir);
    // A daemon that hangs is not found, rather than waited for.
    let patience =
        timeout.map_or(CkptClient::DEFAULT_TIMEOUT, |limit| limit.min(CkptClient::DEFAULT_TIMEOUT));
    let sockets = std::iter::once(own).chain(noted_socket(state_dir)).chain(environment.client_sockets());
    let clients = sockets.map(|socket| CkptClient::new(socket).deadline(Some(patience)));
    let state_dir = std::path::absolute(state_dir).unwrap_or(state_dir.to_owned());
    let mut serving = clients
        .filter(|client| client.config().is_ok_and(|config| Path::new(&config.mount_path) == state_dir));
    serving.next().unwrap_or_else(|| CkptClient::new(paths::state_socket(&state_dir)))
}

/// Where the daemon that uses a state directory says it listens. It must be a socket of the same user: what a killed
/// daemon left may name a place where others can make one.
fn noted_socket(state_dir: &Path) -> Option<PathBuf> {
    let note = paths::socket_note(state_dir);
    let socket = socket::noted(&note).ok()??;
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid());
    (owner(&socket)? == owner(&note)?).then_some(socket)
}

/// A workspace argument as it goes over the wire: an id as it is, a path made absolute without following its links.
pub(super) fn workspace(argument: &str) -> Result<String, Failure> {
    if argument.trim().is_empty() || WorkspaceId::new(argument).is_ok() {
        return Ok(argument.to_owned());
    }
    let path = std::path::absolute(argument)?;
    let text = path.to_str().ok_or_else(|| {
        Failure::Said(format!("{} is not UTF-8; the protocol cannot name it", Path::new(&path).display()))
    })?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_absolute_and_an_id_is_left_alone() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        for (argument, sent) in [
            (".", here.to_owned()),
            ("./a//b/", format!("{here}/a/b/")),
            ("a", format!("{here}/a")),
            ("../a", format!("{here}/../a")),
            ("/x/../y", "/x/../y".to_owned()),
            ("ws-6d5aaa", "ws-6d5aaa".to_owned()),
            ("ws-6d5aaa-2", "ws-6d5aaa-2".to_owned()),
            ("ws-6d5aaa/", format!("{here}/ws-6d5aaa/")),
            ("", String::new()),
        ] {
            assert_eq!(workspace(argument).unwrap(), sent, "{argument}");
        }
    }

    #[test]
    fn a_noted_socket_counts_only_if_it_is_of_who_wrote_the_note() {
        let dir = tempfile::tempdir().unwrap();
        let (note, socket) = (paths::socket_note(dir.path()), dir.path().join("socket"));
        assert_eq!(noted_socket(dir.path()), None);
        std::fs::create_dir(note.parent().unwrap()).unwrap();
        std::fs::write(&note, socket.as_os_str().as_encoded_bytes()).unwrap();
        assert_eq!(noted_socket(dir.path()), None);
        std::fs::write(&socket, "").unwrap();
        assert_eq!(noted_socket(dir.path()), Some(socket.clone()));
        // Root can give it away; others take something of root's.
        let another = std::fs::metadata(&socket).unwrap().uid() + 1;
        if std::os::unix::fs::chown(&socket, Some(another), None).is_err() {
            std::fs::write(&note, "/dev/null").unwrap();
        }
        assert_eq!(noted_socket(dir.path()), None);
    }
}
