//! How a conversation begins: settings and store, the conversation that is to go on, tools, provider.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_protocol::session::headless::{ErrorLine, Phase};
use cofferdam_protocol::session::{Envelope, SCHEMA_VERSION, SessionError};
use cofferdam_storage::session::SessionStore;

use super::{Conversation, Ended, LineSource, Lines, Parts};
use crate::session::tool::{self, Place, Tool};
use crate::session::{LoadSession, OpenStore, Opened, provider};

/// What is wanted of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The workspace's path.
    pub workspace: PathBuf,
    /// The conversation to go on with, as the user wrote its id.
    pub resume: Option<String>,
    /// The model's name, before any other.
    pub model: Option<String>,
    /// The model's name, before that of the settings.
    pub environment_model: Option<String>,
    /// Without the workspace's settings, and without keeping anything.
    pub bare: bool,
    /// The tools that may be called; all if it does not say.
    pub tools: Option<Vec<String>>,
    /// The one turn that is wanted; else turns come in lines.
    pub prompt: Option<String>,
}

/// The model if nothing names one.
const DEFAULT_MODEL: &str = "qwen-max";
/// Stands for the id of a conversation that could not even be begun.
const NEW: &str = "<new>";

/// Holds a conversation to its end.
pub async fn hold(parts: Parts, options: Options, source: LineSource) -> Ended {
    let (mut conversation, prompt) = match begin(parts.clone(), options, source).await {
        Ok(begun) => begun,
        Err(Refused { line, ended }) => {
            parts.sink.put(&line.into());
            return ended;
        }
    };
    match prompt {
        Some(prompt) => {
            conversation.one_shot(&prompt).await;
            Ended::Done
        }
        None => conversation.converse().await,
    }
}

/// Why there is no conversation.
struct Refused {
    line: ErrorLine,
    ended: Ended,
}

impl Refused {
    /// The conversation to go on with cannot be had.
    fn not_loaded(resume: Option<&str>, error: &SessionError) -> Self {
        let text = format!("session recovery failed [{}]: {}", error.code.as_str(), error.message);
        let line = ErrorLine::of_store(resume.unwrap_or(NEW), Phase::Load, error.code, text);
        Self { line, ended: Ended::Done }
    }
}

async fn begin(
    parts: Parts,
    options: Options,
    source: LineSource,
) -> Result<(Conversation, Option<String>), Refused> {
    let Options { workspace, resume, model, environment_model, bare, tools, prompt } = options;
    let not_loaded = |error| Refused::not_loaded(resume.as_deref(), &error);
    let open = OpenStore { workspace, project_settings: !bare };
    let Opened { config, store } = parts.sessions.ask(open).await.map_err(not_loaded)?;

    let provided = config.ai.provider.as_ref().and_then(|provider| provider.model.clone());
    let active_model = model
        .clone()
        .or(environment_model)
        .or(config.ai.active_model)
        .or(provided)
        .unwrap_or_else(|| DEFAULT_MODEL.to_owned());
    let envelope = match (&resume, &store) {
        (None, store) => fresh(&parts, store.as_ref().ok(), active_model.clone()),
        (Some(_), Err(error)) => return Err(not_loaded(error.clone())),
        (Some(id), Ok(store)) => {
            let load = LoadSession { store: Arc::clone(store), session_id: id.clone() };
            let mut envelope = parts.sessions.ask(load).await.map_err(not_loaded)?;
            if model.is_some() || envelope.model.is_empty() {
                envelope.model.clone_from(&active_model);
            }
            envelope
        }
    };
    let tools = selected(tool::all(&parts.processes), tools.as_deref()).map_err(|unknown| {
        let text = format!("unknown tools: {}", unknown.join(", "));
        tracing::error!("{text}");
        let line = ErrorLine::of_client(&envelope.session_id, "InvalidToolSelection", text);
        Refused { line, ended: Ended::UnknownTools }
    })?;
    let provider = provider::of(config.ai.provider.as_ref(), &active_model, &parts.processes);
    let kept = config.auto_persist && !bare;
    if let (true, Err(error)) = (kept, &store) {
        tracing::warn!(%error, "nothing of this conversation will be kept");
    }
    let store = store.ok().filter(|_| kept);
    let (lines, place) = (Lines::new(source), Place::default());
    let conversation = Conversation { parts, store, envelope, provider, tools, lines, place, requests: 0 };
    Ok((conversation, prompt))
}

/// A conversation in which nothing was said.
fn fresh(parts: &Parts, store: Option<&Arc<SessionStore>>, model: String) -> Envelope {
    let now = u64::try_from(parts.clock.wall().0 / 1_000_000).unwrap_or(0);
    Envelope {
        schema_version: SCHEMA_VERSION,
        session_id: hyphenated(&parts.ids.fresh()),
        workspace_scope: store.map_or_else(String::new, |store| store.workspace().to_owned()),
        created_at_ms: now,
        // Never written.
        updated_at_ms: 0,
        model,
        generation: 0,
        messages: Vec::new(),
        compaction: None,
        compaction_revision: 0,
    }
}

/// A UUID of 32 digits in its usual form.
fn hyphenated(digits: &str) -> String {
    let mut text = digits.to_owned();
    for at in [8, 13, 18, 23] {
        text.insert(at, '-');
    }
    text
}

/// The tools that were asked for; or the names of those that there are not.
fn selected(all: Vec<Arc<dyn Tool>>, wanted: Option<&[String]>) -> Result<Vec<Arc<dyn Tool>>, Vec<String>> {
    let Some(wanted) = wanted else { return Ok(all) };
    let unknown = |name: &&String| all.iter().all(|tool| tool.name() != name.as_str());
    let unknown: Vec<String> = wanted.iter().filter(unknown).cloned().collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    Ok(all.into_iter().filter(|tool| wanted.iter().any(|name| name == tool.name())).collect())
}
