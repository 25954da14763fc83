//! What an answer may call: tools, each call of which a person allows first.

mod shell;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::process::Processes;
use shell::Shell;

/// Something that an answer may call.
pub(crate) trait Tool: Send + Sync + 'static {
    /// What it is called by.
    fn name(&self) -> &'static str;
    /// What a provider is told about it.
    fn description(&self) -> Description;
    /// Begins a call.
    fn call(&self, arguments: &Map<String, Value>, place: &Place) -> Running;
}

/// What a provider is told about a tool.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Description {
    /// What it is called by.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) description: &'static str,
    /// Its arguments: a JSON schema.
    pub(crate) parameters: Value,
}

/// Where a call happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The directory; that of this process if there is none.
    pub(crate) cwd: Option<PathBuf>,
    /// Variables beside those of this process.
    pub(crate) variables: BTreeMap<String, String>,
}

/// A call that is being carried out. Dropped, it is not wanted any more, and whatever works on it ends.
pub(crate) struct Running {
    /// What it gives.
    pub(crate) outcome: oneshot::Receiver<Outcome>,
    /// What ends the work when it is dropped.
    _work: Box<dyn Send>,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// For the model.
    pub(crate) content: String,
    /// Whether it failed.
    pub(crate) is_error: bool,
}

impl Running {
    /// A call whose outcome is still to come. Dropping `work` must end the work.
    pub(crate) fn new(work: impl Send + 'static) -> (oneshot::Sender<Outcome>, Self) {
        let (sender, outcome) = oneshot::channel();
        (sender, Self { outcome, _work: Box::new(work) })
    }
}

impl Outcome {
    /// What went wrong.
    pub(crate) fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true }
    }
}

/// The name of the tool whose calls a client may carry out itself.
pub(crate) const SHELL: &str = "shell";

/// The tools there are, sorted by name.
pub(crate) fn all(processes: &Processes) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Shell::new(processes.clone()))]
}
