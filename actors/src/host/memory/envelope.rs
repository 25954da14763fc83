//! What a conversation becomes: by what was heard, by what an agent says it is, and when it is too long.

use std::sync::Arc;

use cofferdam_protocol::session::{Content, Envelope, Message, SCHEMA_VERSION, bounded, limits};
use cofferdam_storage::session::redact;

use super::heard::message;

/// The most bytes of a conversation's file; beyond that its beginning goes.
const MOST: usize = 24 << 20;
/// How many bytes are left then.
const LESS: usize = 12 << 20;
/// Stands for a beginning that is gone.
const GONE: &str = "(The beginning of this conversation is left out, since it was too long to be kept.)";
/// By how much the count of its summaries may grow in a turn; whoever says more makes it up.
const SUMMARIES: u64 = 1000;

/// Whose conversation it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The session's id.
    pub(super) session_id: String,
    /// The canonical path of the workspace.
    pub(super) scope: String,
}

/// A conversation in which nothing was said yet.
pub(super) fn empty(identity: &Identity, now_ms: u64) -> Envelope {
    Envelope {
        schema_version: SCHEMA_VERSION,
        session_id: identity.session_id.clone(),
        workspace_scope: identity.scope.clone(),
        created_at_ms: now_ms,
        updated_at_ms: 0,
        model: String::new(),
        generation: 0,
        messages: Vec::new(),
        compaction: None,
        compaction_revision: 0,
    }
}

/// Whether the one conversation is the other and more.
pub(super) fn extends(longer: &[Message], shorter: &[Message]) -> bool {
    longer.starts_with(shorter)
}

/// What a turn adds to a conversation.
#[derive(Debug)]
pub(super) struct Added {
    /// The conversation that the agent was given; nothing: an empty one, or nobody knows.
    pub(super) given: Option<Arc<Envelope>>,
    /// What the agent says the conversation is.
    pub(super) own: Option<Envelope>,
    /// What was heard of it.
    pub(super) said: Vec<Message>,
    /// The task's model.
    pub(super) model: String,
}

impl Added {
    /// What a conversation becomes by it, and what people should know of that.
    pub(super) fn onto(&self, base: Envelope) -> (Envelope, Vec<String>) {
        let mut notes = Vec::new();
        let given = match &self.given {
            Some(given) => given.as_ref().clone(),
            None => Envelope { messages: Vec::new(), ..base.clone() },
        };
        let mut next = match self.own.clone().and_then(|own| of_agent(own, &given)) {
            None => {
                let mut said = self.said.clone();
                said.iter_mut().for_each(redact::message);
                with(base, said)
            }
            Some(mut own) => {
                let follows = extends(&own.messages, &given.messages);
                if !follows {
                    notes.push(
                        "the conversation that the agent has does not begin with the one it was given; it is kept as \
                         the agent has it"
                            .to_owned(),
                    );
                }
                redact::envelope(&mut own);
                match follows && base.messages != given.messages {
                    // Somebody else wrote to it meanwhile.
                    true => with(base, own.messages.split_off(given.messages.len())),
                    false => {
                        Envelope { generation: base.generation, updated_at_ms: base.updated_at_ms, ..own }
                    }
                }
            }
        };
        if next.model.is_empty() {
            next.model = bounded(&self.model, limits::MODEL);
        }
        if shorten(&mut next) {
            notes
                .push("the conversation was too long to be kept whole; its beginning is left out".to_owned());
        }
        (next, notes)
    }
}

/// A conversation with more at its end.
fn with(mut conversation: Envelope, more: Vec<Message>) -> Envelope {
    conversation.messages.extend(more);
    conversation
}

/// What an agent says the conversation is, made into what can be stored in the place of `given`: everything that says whose
/// and which it is comes from there, whatever the agent says. Nothing if it says no more than that.
pub(super) fn of_agent(own: Envelope, given: &Envelope) -> Option<Envelope> {
    if own.messages.len() <= given.messages.len() && extends(&given.messages, &own.messages) {
        return None;
    }
    let known = given.compaction_revision;
    let claimed =
        own.compaction_revision.max(own.compaction.as_ref().map_or(0, |compaction| compaction.revision));
    let believable = (known..=known.saturating_add(SUMMARIES)).contains(&claimed);
    let compaction = own.compaction.filter(|compaction| believable && compaction.is_usable(&own.messages));
    Some(Envelope {
        model: bounded(&own.model, limits::MODEL),
        compaction_revision: if compaction.is_some() { claimed } else { known },
        compaction,
        messages: own.messages,
        ..given.clone()
    })
}

/// Shortens a conversation whose file would be too large, from its beginning, up to something that the user said. Says whether
/// it did.
pub(super) fn shorten(envelope: &mut Envelope) -> bool {
    if envelope.write().is_ok_and(|bytes| bytes.len() <= MOST) {
        return false;
    }
    let mut left = LESS;
    let mut first = envelope.messages.len();
    while first > 0 {
        match left.checked_sub(size(&envelope.messages[first - 1])) {
            Some(rest) => (left, first) = (rest, first - 1),
            None => break,
        }
    }
    let user = |message: &Message| message.role == "user";
    let first =
        first + envelope.messages[first..].iter().position(user).unwrap_or(envelope.messages.len() - first);
    envelope.messages.drain(..first);
    envelope.messages.insert(0, message("system", GONE.to_owned()));
    // It stood for what is gone.
    envelope.compaction = None;
    true
}

/// How many bytes a message takes in a file, about.
fn size(message: &Message) -> usize {
    serde_json::to_vec_pretty(message).map_or(usize::MAX, |bytes| bytes.len() + bytes.len() / 8 + 64)
}

/// What is said in a message, as one text.
pub(super) fn text(content: &Content) -> String {
    content.pieces().collect::<Vec<_>>().join("\n")
}
