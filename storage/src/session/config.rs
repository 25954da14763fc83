//! Settings, from up to three files; a later one wins key by key.

use std::path::{Path, PathBuf};

/// What the files say, and what is in effect where they do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether conversations are written at all. Reading, resuming and removing work in any case.
    pub auto_persist: bool,
    /// Where the store is, as written: `~`, absolute, or relative to the workspace.
    pub persist_dir: String,
    /// What answers (headless only).
    pub ai: Ai,
}

/// Who answers in a conversation. The project's file does not choose the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ai {
    /// The name of the provider in effect.
    pub active_provider: Option<String>,
    /// The model, if it is not the provider's own.
    pub active_model: Option<String>,
    /// The table of the provider in effect.
    pub provider: Option<Provider>,
}

/// One provider's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provider {
    /// `mock` or `command`.
    pub kind: String,
    /// Its model.
    pub model: Option<String>,
    /// The program and its arguments (`command` only).
    pub command: Vec<String>,
}

/// Where the files are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The system's file, `/etc/copilot-shell/config.toml`.
    pub system: Option<PathBuf>,
    /// The home directory; the user's file is `.copilot-shell/config.toml` in it.
    pub home: Option<PathBuf>,
}

impl Config {
    /// The store's directory if no file names one.
    pub const DEFAULT_DIR: &str = "~/.copilot-shell/cosh-core/sessions";

    /// Reads the files, the project's being `.copilot-shell/config.toml` in `workspace` (none for `None`). One that
    /// cannot be used is left out as a whole, and a warning says so. Writes nothing.
    pub fn load(places: &Places, workspace: Option<&Path>) -> (Self, Vec<String>) {
        todo!("{places:?} {workspace:?}")
    }
}
