//! Who answers in a conversation.
//!
//! A [`Provider`] gets the conversation so far and gives an [`Answer`], which comes piece by piece. There are `mock`,
//! whose answers can be foretold, and `command`, which asks a program.

mod command;
mod draft;
mod mock;

use std::sync::Arc;

use cofferdam_protocol::session::Message;
use cofferdam_protocol::session::headless::StreamEvent;
use cofferdam_storage::session::config::Provider as Settings;
use serde::Serialize;
use tokio::sync::mpsc;

use super::process::Processes;
use super::tool::Description;
use command::CommandProvider;
pub(crate) use draft::{Call, Draft};
use mock::MockProvider;

/// Answers in a conversation.
pub(crate) trait Provider: Send + Sync + 'static {
    /// Begins an answer.
    fn answer(&self, request: Request) -> Answer;
}

/// What an answer is wanted to.
#[derive(Debug, Serialize)]
pub(crate) struct Request {
    /// The model's name.
    pub(crate) model: String,
    /// The conversation, oldest first, without secrets.
    pub(crate) messages: Vec<Message>,
    /// What the answer may call.
    pub(crate) tools: Vec<Description>,
}

/// Why there is no whole answer. For people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ProviderError(pub String);

/// An answer on its way. Dropped, it is not wanted any more, and whatever works on it ends.
pub(crate) struct Answer {
    /// Its pieces; complete after the message's stop, and not to be continued after an error.
    pub(crate) pieces: mpsc::Receiver<Result<StreamEvent, ProviderError>>,
    /// What ends the work when it is dropped.
    _work: Box<dyn Send>,
}

/// Where an answer's pieces are put.
pub(crate) type Pieces = mpsc::Sender<Result<StreamEvent, ProviderError>>;

impl Answer {
    /// An answer of which at most `ahead` pieces wait to be taken. Dropping `work` must end the work.
    pub(crate) fn new(ahead: usize, work: impl Send + 'static) -> (Pieces, Self) {
        let (sender, pieces) = mpsc::channel(ahead);
        (sender, Self { pieces, _work: Box::new(work) })
    }

    /// An answer that is there already.
    fn ready(pieces: Vec<Result<StreamEvent, ProviderError>>) -> Self {
        let (sender, answer) = Self::new(pieces.len().max(1), ());
        for piece in pieces {
            // There is room for all of them.
            let _ = sender.try_send(piece);
        }
        answer
    }
}

/// The provider that the settings choose. One that cannot be had says so in each of its answers, since a conversation
/// can be looked at without it.
pub(crate) fn of(settings: Option<&Settings>, model: &str, processes: &Processes) -> Arc<dyn Provider> {
    let Some(settings) = settings else {
        return Arc::new(Missing(
            "no provider is configured; name one as active_provider in [ai] of the configuration \
             (~/.copilot-shell/config.toml) and describe it in [ai.providers.NAME]"
                .to_owned(),
        ));
    };
    match settings.kind.as_str() {
        "mock" => Arc::new(MockProvider::new(model)),
        "command" => match CommandProvider::new(settings, processes.clone()) {
            Ok(provider) => Arc::new(provider),
            Err(ProviderError(why)) => Arc::new(Missing(why)),
        },
        other => Arc::new(Missing(format!(
            "a provider of type \"{other}\" is not known; use \"command\" with a program that speaks to it"
        ))),
    }
}

/// Stands for a provider that cannot be had.
struct Missing(String);

impl Provider for Missing {
    fn answer(&self, _: Request) -> Answer {
        Answer::ready(vec![Err(ProviderError(self.0.clone()))])
    }
}
