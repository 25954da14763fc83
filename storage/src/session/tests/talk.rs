//! Conversations made by hand.

use cofferdam_protocol::session::{Content, Envelope, Message, SCHEMA_VERSION, SessionId};
use cofferdam_tests::files::names;

use super::site::Site;

/// What somebody says.
pub(super) fn said(role: &str, text: &str) -> Message {
    Message {
        role: role.to_owned(),
        content: Content::Text(text.to_owned()),
        tool_call_id: None,
        name: None,
        tool_calls: None,
    }
}

/// A conversation that was never written.
pub(super) fn fresh(site: &Site, id: &SessionId) -> Envelope {
    Envelope {
        schema_version: SCHEMA_VERSION,
        session_id: id.to_string(),
        workspace_scope: site.workspace().to_str().unwrap().to_owned(),
        created_at_ms: 1_000,
        updated_at_ms: 0,
        model: "m".to_owned(),
        generation: 0,
        messages: vec![said("user", "hello")],
        compaction: None,
        compaction_revision: 0,
    }
}

/// The texts of a conversation.
pub(super) fn texts(envelope: &Envelope) -> Vec<&str> {
    envelope
        .messages
        .iter()
        .map(|message| match &message.content {
            Content::Text(text) => text.as_str(),
            Content::Blocks(_) => panic!("no text: {message:?}"),
        })
        .collect()
}

/// The temporary files of this workspace's directory.
pub(super) fn temporary(site: &Site) -> Vec<String> {
    names(site.scope()).into_iter().filter(|name| name.ends_with(".tmp")).collect()
}
