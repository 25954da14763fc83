//! Where settings come from, and what only the command line decides.

use std::path::PathBuf;

use cofferdam_storage::ckpt::config::{Config, ConfigError};

/// Where settings come from. Asked at the start and again by every ReloadConfig.
pub trait ConfigSource: Send + Sync + 'static {
    /// The settings as they are now. May block.
    fn load(&self) -> Result<Config, ConfigError>;
}

/// The configuration file at this path; without a path, the defaults.
#[derive(Clone, Debug, Default)]
pub struct ConfigFile(pub Option<PathBuf>);

impl ConfigSource for ConfigFile {
    fn load(&self) -> Result<Config, ConfigError> {
        match &self.0 {
            Some(path) => Config::load(path),
            None => Ok(Config::default()),
        }
    }
}

/// What only the command line decides; Config reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// The absolute state directory.
    pub state_dir: PathBuf,
    /// The ws-ckpt socket.
    pub socket: PathBuf,
    /// The log level.
    pub log_level: String,
}
