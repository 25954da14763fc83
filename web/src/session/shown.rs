//! What the management protocol does not say: which workspaces have sessions, and what was said in one of them.

use std::collections::HashMap;
use std::path::PathBuf;

use actix_web::web::{Data, Json};
use cofferdam_actors::session::{ListSessions, LoadSession, OpenStore, Sessions};
use cofferdam_protocol::session::{ListRequest, Message, SessionData, Summary, limits};
use serde::{Deserialize, Serialize};

use super::check_absolute;
use crate::caller::Owner;
use crate::error::ApiError;

/// The most sessions that are looked at to find their workspaces.
const LOOKED_AT: usize = 5000;
/// Messages of a page, if nothing is said, and the most.
const PAGE: usize = 50;
const LONGEST_PAGE: usize = 200;
/// The most characters of a message.
const TEXT: usize = 4000;
/// The most tools named of one message, and the most characters of a role or a tool's name.
const TOOLS: usize = 32;
const NAME: usize = 128;

/// The workspaces that have sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScopesReport {
    /// Newest first.
    pub(crate) scopes: Vec<ScopeReport>,
    /// Whether there are more sessions than were looked at, so that workspaces may be missing.
    pub(crate) truncated: bool,
}

/// A workspace with sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScopeReport {
    /// Its path, as its sessions say; empty for those whose files do not say.
    pub(crate) workspace_scope: String,
    /// How many there are.
    pub(crate) sessions: usize,
    /// When the newest was written, in milliseconds since 1970.
    pub(crate) updated_at_ms: u64,
}

/// Asks what was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewRequest {
    /// The workspace's absolute path.
    pub(crate) workspace_scope: String,
    /// The session.
    pub(crate) session_id: String,
    /// How many messages are left out.
    #[serde(default)]
    pub(crate) offset: usize,
    /// How many are wanted; 50 if absent, at most 200.
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

/// A page of what was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviewReport {
    /// Oldest first; without secrets.
    pub(crate) messages: Vec<MessageReport>,
    /// How many there are in all.
    pub(crate) total: usize,
    /// How many were left out before these.
    pub(crate) offset: usize,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageReport {
    /// Who says it: user, assistant, tool, system, or any other text.
    pub(crate) role: String,
    /// What; at most 4000 characters.
    pub(crate) text: String,
    /// Whether it was cut.
    pub(crate) truncated: bool,
    /// The names of the tools it calls.
    pub(crate) tools: Vec<String>,
}

pub(super) async fn scopes(_: Owner, sessions: Data<Sessions>) -> Result<Json<ScopesReport>, ApiError> {
    let (mut found, mut looked_at, mut cursor) = (HashMap::new(), 0, None);
    loop {
        let request = ListRequest {
            // Any that is there will do.
            workspace_scope: "/".to_owned(),
            limit: limits::LIST_PAGE,
            cursor: cursor.take(),
            all_workspaces: true,
        };
        let SessionData::List { sessions, next_cursor } = sessions.ask(ListSessions(request)).await? else {
            break;
        };
        looked_at += sessions.len();
        sessions.into_iter().for_each(|summary| note(&mut found, summary));
        cursor = next_cursor;
        if cursor.is_none() || looked_at >= LOOKED_AT {
            break;
        }
    }
    let mut scopes: Vec<ScopeReport> = found.into_values().collect();
    scopes.sort_by(|one, other| {
        (other.updated_at_ms, &one.workspace_scope).cmp(&(one.updated_at_ms, &other.workspace_scope))
    });
    Ok(Json(ScopesReport { scopes, truncated: cursor.is_some() }))
}

fn note(found: &mut HashMap<String, ScopeReport>, summary: Summary) {
    let Summary { workspace_scope, updated_at_ms, .. } = summary;
    let scope = found.entry(workspace_scope).or_insert_with_key(|workspace_scope| ScopeReport {
        workspace_scope: workspace_scope.clone(),
        sessions: 0,
        updated_at_ms: 0,
    });
    scope.sessions += 1;
    scope.updated_at_ms = scope.updated_at_ms.max(updated_at_ms);
}

pub(super) async fn preview(
    _: Owner,
    sessions: Data<Sessions>,
    body: Json<PreviewRequest>,
) -> Result<Json<PreviewReport>, ApiError> {
    let PreviewRequest { workspace_scope, session_id, offset, limit } = body.into_inner();
    check_absolute(&workspace_scope)?;
    let open = OpenStore { workspace: PathBuf::from(workspace_scope), project_settings: true };
    let store = sessions.ask(open).await?.store?;
    let envelope = sessions.ask(LoadSession { store, session_id }).await?;
    let limit = limit.unwrap_or(PAGE).min(LONGEST_PAGE);
    let messages: Vec<_> =
        envelope.messages.iter().skip(offset).take(limit).map(MessageReport::from).collect();
    Ok(Json(PreviewReport { messages, total: envelope.messages.len(), offset }))
}

impl From<&Message> for MessageReport {
    fn from(message: &Message) -> Self {
        let (mut text, mut room, mut truncated) = (String::new(), TEXT, false);
        for piece in message.content.pieces() {
            let line_break = if text.is_empty() { "" } else { "\n" };
            let mut characters = line_break.chars().chain(piece.chars());
            let taken: String = characters.by_ref().take(room).collect();
            room -= taken.chars().count();
            text.push_str(&taken);
            truncated |= characters.next().is_some();
        }
        let short = |name: &str| name.chars().take(NAME).collect::<String>();
        let calls = message.tool_calls.iter().flatten().take(TOOLS);
        Self {
            role: short(&message.role),
            text,
            truncated,
            tools: calls.map(|call| short(&call.function.name)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::session::{Content, Health, ToolCall, ToolFunction};

    use super::*;

    fn message(text: &str) -> Message {
        let content = Content::Text(text.to_owned());
        Message { role: "user".to_owned(), content, tool_call_id: None, name: None, tool_calls: None }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_said_to_be() {
        let exact = MessageReport::from(&message(&"é".repeat(TEXT)));
        assert_eq!((exact.text.chars().count(), exact.truncated), (TEXT, false));
        let long = MessageReport::from(&message(&"é".repeat(TEXT + 1)));
        assert_eq!((long.text.chars().count(), long.truncated), (TEXT, true));
        let short = MessageReport::from(&message("<b>\n"));
        assert_eq!((short.text.as_str(), short.truncated), ("<b>\n", false));
    }

    #[test]
    fn the_tools_a_message_calls_are_named() {
        let call = |name: &str| ToolCall {
            id: "1".to_owned(),
            kind: "function".to_owned(),
            function: ToolFunction { name: name.to_owned(), arguments: "{}".to_owned() },
        };
        let calls = vec![call("bash"), call(&"x".repeat(NAME + 1))];
        let report = MessageReport::from(&Message { tool_calls: Some(calls), ..message("") });
        assert_eq!(report.tools, ["bash".to_owned(), "x".repeat(NAME)]);
    }

    #[test]
    fn sessions_are_counted_by_workspace() {
        let mut found = HashMap::new();
        for (workspace, at) in [("/a", 3), ("/b", 9), ("/a", 1)] {
            note(
                &mut found,
                Summary {
                    session_id: "a".to_owned(),
                    workspace_scope: workspace.to_owned(),
                    created_at_ms: 0,
                    updated_at_ms: at,
                    model: None,
                    message_count: 0,
                    first_prompt: None,
                    schema_version: None,
                    health: Health::Ready,
                },
            );
        }
        assert_eq!((found["/a"].sessions, found["/a"].updated_at_ms, found["/b"].sessions), (2, 3, 1));
    }
}
