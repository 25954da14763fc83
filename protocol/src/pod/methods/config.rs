//! `config.get`, `config.validate`, `config.set`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Answer;
use crate::pod::Config;

/// Asks for the configuration (spec §4).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfigGet {}

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfigResult {
    /// As it is in effect.
    pub config: Config,
}

/// Asks what the configuration would be with a patch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfigValidate {
    /// Some keys of the configuration.
    pub patch: Map<String, Value>,
}

/// Applies a patch to the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfigSet {
    /// Some keys of the configuration.
    pub patch: Map<String, Value>,
}

/// A configuration with a patch applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchedConfig {
    /// What is, or would be, in effect.
    pub config: Config,
    /// One for each key of the patch that was adjusted or ignored.
    pub messages: Vec<String>,
}

impl Answer for ConfigResult {}
impl Answer for PatchedConfig {}
