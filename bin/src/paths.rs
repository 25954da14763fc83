//! Where things are when the command line does not say.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::socket::{Audience, Place};

/// The socket of a daemon of root, and of the contract.
pub(crate) const SYSTEM_SOCKET: &str = "/run/ws-ckpt/ws-ckpt.sock";

/// What of a process's surroundings decides where things are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    root: bool,
    ws_ckpt_socket: Option<PathBuf>,
    cosh_core: Option<PathBuf>,
    cofferdam_state_dir: Option<PathBuf>,
    xdg_state_home: Option<PathBuf>,
    xdg_runtime_dir: Option<PathBuf>,
    config_file: Option<PathBuf>,
    home: Option<PathBuf>,
}

/// There is no home directory to put the state into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no home directory is known; say where to keep the state with --state-dir")]
pub(crate) struct NoHome;

impl Environment {
    /// That of this process.
    pub(crate) fn of_process() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let var = |name: &str| match name {
            // `su` and `sudo` can leave that of another user behind.
            "XDG_RUNTIME_DIR" => {
                std::env::var_os(name).filter(|dir| std::fs::metadata(dir).is_ok_and(|dir| dir.uid() == uid))
            }
            _ => std::env::var_os(name),
        };
        Self::new(uid, var, std::env::home_dir())
    }

    /// `var` gives the variables; `home` the home directory, however it was found.
    fn new(uid: u32, var: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Self {
        let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute());
        let config_var = |name: &str| match (name, &home) {
            ("HOME", Some(home)) => Some(home.clone().into_os_string()),
            _ => var(name),
        };
        Self {
            root: uid == 0,
            ws_ckpt_socket: set("WS_CKPT_SOCKET"),
            cosh_core: set("COSH_CORE_PATH"),
            cofferdam_state_dir: set("COFFERDAM_STATE_DIR"),
            // A relative one is to be ignored, says the XDG specification.
            xdg_state_home: set("XDG_STATE_HOME").filter(|path| path.is_absolute()),
            xdg_runtime_dir: set("XDG_RUNTIME_DIR").filter(|path| path.is_absolute()),
            config_file: cofferdam_storage::ckpt::config::default_path(uid, config_var),
            home,
        }
    }

    /// `$WS_CKPT_SOCKET`.
    pub(crate) fn ws_ckpt_socket(&self) -> Option<PathBuf> {
        self.ws_ckpt_socket.clone()
    }

    /// `$COSH_CORE_PATH`.
    pub(crate) fn cosh_core(&self) -> Option<PathBuf> {
        self.cosh_core.clone()
    }

    /// Where the configuration file is.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        self.config_file.clone()
    }

    /// Where the state is.
    pub(crate) fn state_dir(&self) -> Result<PathBuf, NoHome> {
        if let Some(dir) = &self.cofferdam_state_dir {
            return Ok(dir.clone());
        }
        if self.root {
            return Ok("/var/lib/cofferdam".into());
        }
        match (&self.xdg_state_home, &self.home) {
            (Some(state), _) => Ok(state.join("cofferdam")),
            (None, Some(home)) => Ok(home.join(".local/state/cofferdam")),
            (None, None) => Err(NoHome),
        }
    }

    /// Where a daemon with that state directory listens, unless `given` says where.
    pub(crate) fn daemon_socket(&self, given: Option<&Path>, state_dir: &Path) -> Place {
        let audience = if self.root { Audience::Everybody } else { Audience::Owner };
        let chosen = given.or(self.ws_ckpt_socket.as_deref());
        let path = match (chosen, &self.xdg_runtime_dir) {
            (Some(path), _) => path.to_owned(),
            (None, _) if self.root => SYSTEM_SOCKET.into(),
            (None, Some(runtime)) => runtime.join("ws-ckpt/ws-ckpt.sock"),
            (None, None) => state_socket(state_dir),
        };
        Place { path, ours: chosen.is_none(), audience }
    }

    /// Where a client looks for a daemon, best place first. A daemon started in other surroundings (by a timer, say,
    /// without a runtime directory) is found as well.
    pub(crate) fn client_sockets(&self) -> Vec<PathBuf> {
        if let Some(path) = &self.ws_ckpt_socket {
            return vec![path.clone()];
        }
        let mut sockets = Vec::new();
        if !self.root {
            sockets.extend(self.xdg_runtime_dir.as_ref().map(|dir| dir.join("ws-ckpt/ws-ckpt.sock")));
            sockets.extend(self.state_dir().ok().map(|dir| state_socket(&dir)));
        }
        sockets.push(SYSTEM_SOCKET.into());
        sockets
    }
}

/// Where a daemon with that state directory listens when nothing else says where.
pub(crate) fn state_socket(state_dir: &Path) -> PathBuf {
    state_dir.join("run/ws-ckpt.sock")
}

/// Where the control API of a daemon with that state directory is.
pub(crate) fn control_socket(state_dir: &Path) -> Place {
    Place { path: state_dir.join("run/control.sock"), ours: true, audience: Audience::Owner }
}

/// Where the presets of agents' programs are when nothing else says where.
pub(crate) fn pods_config(state_dir: &Path) -> PathBuf {
    state_dir.join("pods.toml")
}

/// Where a daemon with that state directory says which socket it listens at.
pub(crate) fn socket_note(state_dir: &Path) -> PathBuf {
    state_dir.join("run/listening-at")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(uid: u32, vars: &[(&str, &str)], home: Option<&str>) -> Environment {
        let vars: Vec<_> = vars.iter().map(|(k, v)| (k.to_string(), OsString::from(v))).collect();
        let var = |name: &str| vars.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone());
        Environment::new(uid, var, home.map(PathBuf::from))
    }

    #[test]
    fn the_state_directory_follows_the_variable_then_root_then_xdg_then_home() {
        let state = |uid, vars: &[(&str, &str)], home| {
            environment(uid, vars, home).state_dir().map(|dir| dir.to_str().unwrap().to_owned())
        };
        assert_eq!(state(0, &[("COFFERDAM_STATE_DIR", "/s")], None).unwrap(), "/s");
        assert_eq!(state(0, &[("XDG_STATE_HOME", "/x")], Some("/root")).unwrap(), "/var/lib/cofferdam");
        assert_eq!(state(7, &[("XDG_STATE_HOME", "/x")], Some("/h")).unwrap(), "/x/cofferdam");
        assert_eq!(state(7, &[("XDG_STATE_HOME", "x")], Some("/h")).unwrap(), "/h/.local/state/cofferdam");
        assert_eq!(
            state(7, &[("COFFERDAM_STATE_DIR", "")], Some("/h")).unwrap(),
            "/h/.local/state/cofferdam"
        );
        assert_eq!(state(7, &[], None), Err(NoHome));
    }

    #[test]
    fn a_daemon_listens_where_the_variable_says_else_by_its_user() {
        let socket = |uid, vars: &[(&str, &str)]| {
            let place = environment(uid, vars, Some("/h")).daemon_socket(None, Path::new("/s"));
            (place.path.to_str().unwrap().to_owned(), place.ours)
        };
        let place = |path: &str, ours| (path.to_owned(), ours);
        assert_eq!(socket(7, &[("WS_CKPT_SOCKET", "/w"), ("XDG_RUNTIME_DIR", "/r")]), place("/w", false));
        assert_eq!(socket(0, &[("XDG_RUNTIME_DIR", "/r")]), place(SYSTEM_SOCKET, true));
        assert_eq!(socket(7, &[("XDG_RUNTIME_DIR", "/r")]), place("/r/ws-ckpt/ws-ckpt.sock", true));
        assert_eq!(socket(7, &[]), place("/s/run/ws-ckpt.sock", true));
        let given = environment(7, &[("WS_CKPT_SOCKET", "/w")], None);
        assert_eq!(given.daemon_socket(Some(Path::new("/g")), Path::new("/s")).path, Path::new("/g"));
    }

    #[test]
    fn a_client_finds_a_daemon_started_without_a_runtime_directory() {
        let sockets = environment(7, &[("XDG_RUNTIME_DIR", "/r")], Some("/h")).client_sockets();
        assert_eq!(
            sockets,
            [
                Path::new("/r/ws-ckpt/ws-ckpt.sock"),
                Path::new("/h/.local/state/cofferdam/run/ws-ckpt.sock"),
                Path::new(SYSTEM_SOCKET),
            ]
        );
        let sockets = environment(7, &[("WS_CKPT_SOCKET", "/w")], Some("/h")).client_sockets();
        assert_eq!(sockets, [Path::new("/w")]);
    }

    #[test]
    fn the_configuration_file_is_found_in_a_home_the_environment_does_not_name() {
        let file = environment(7, &[], Some("/h")).config_file();
        assert_eq!(file, Some("/h/.config/ws-ckpt/config.toml".into()));
    }
}
