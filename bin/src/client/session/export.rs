//! Print a conversation.

use std::fmt::Write;

use clap::{Args, ValueEnum};
use cofferdam_protocol::session::{Block, Content, Envelope, Message, ToolCall};

use super::Run;
use super::failure::Failure;
use super::list::moment;
use super::management;

#[derive(Args, Debug)]
pub(super) struct Export {
    /// The conversation's id
    #[arg(value_name = "ID")]
    session: String,
    /// How to print
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Form,
}

/// The forms of a printed conversation.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Form {
    /// For people
    #[default]
    Markdown,
    /// As it is stored
    Json,
}

impl Export {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let envelope = management::load(run, &self.session)?;
        match self.format {
            Form::Json => Ok(run.terminal.print_json(&envelope)?),
            Form::Markdown => Ok(run.terminal.print(as_markdown(&envelope))?),
        }
    }
}

fn as_markdown(envelope: &Envelope) -> String {
    let utc = jiff::tz::Offset::UTC;
    let mut text = format!("# Conversation {}\n\n", envelope.session_id);
    for (name, value) in [
        ("Workspace", harmless(&envelope.workspace_scope)),
        ("Model", harmless(&envelope.model)),
        ("Created", format!("{} UTC", moment(envelope.created_at_ms, utc))),
        ("Updated", format!("{} UTC", moment(envelope.updated_at_ms, utc))),
    ] {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for message in &envelope.messages {
        write_message(&mut text, message);
    }
    text.truncate(text.trim_end().len());
    text
}

fn write_message(text: &mut String, message: &Message) {
    let of = message.tool_call_id.as_deref().map(|id| format!(" (result of {})", harmless(id)));
    let _ = write!(text, "\n## {}{}\n\n", title(&message.role), of.unwrap_or_default());
    match &message.content {
        // What a tool gave is no Markdown.
        Content::Text(said) if message.role == "tool" => write_fenced(text, "", said),
        Content::Text(said) => write_said(text, said),
        Content::Blocks(blocks) => blocks.iter().for_each(|block| match block {
            Block::Text { text: said } => write_said(text, said),
            Block::ToolResult { content, .. } => write_fenced(text, "", content),
        }),
    }
    for ToolCall { id, function, .. } in message.tool_calls.iter().flatten() {
        let _ = write!(text, "Calls **{}** ({}):\n\n", harmless(&function.name), harmless(id));
        write_fenced(text, "json", &function.arguments);
    }
}

fn write_said(text: &mut String, said: &str) {
    if !said.trim().is_empty() {
        let _ = write!(text, "{}\n\n", harmless(said.trim_end()));
    }
}

/// In a fence that nothing in it can end.
fn write_fenced(text: &mut String, language: &str, content: &str) {
    let content = harmless(content.trim_end_matches('\n'));
    let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = write!(text, "{fence}{language}\n{content}\n{fence}\n\n");
}

fn title(role: &str) -> String {
    let mut letters = role.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    harmless(&(first + letters.as_str())).replace('\n', " ")
}

/// Text that cannot steer a terminal: without control characters, but for ends of lines and tabs.
fn harmless(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::session::ToolFunction;

    use super::*;

    fn message(role: &str, content: &str) -> Message {
        Message {
            role: role.to_owned(),
            content: Content::Text(content.to_owned()),
            tool_call_id: None,
            name: None,
            tool_calls: None,
        }
    }

    #[test]
    fn a_conversation_reads_from_top_to_bottom() {
        let function = ToolFunction { name: "shell".to_owned(), arguments: r#"{"command":"ls"}"#.to_owned() };
        let call = ToolCall { id: "c1".to_owned(), kind: "function".to_owned(), function };
        let messages = vec![
            message("user", "list\nthe files"),
            Message { tool_calls: Some(vec![call]), ..message("assistant", "") },
            Message { tool_call_id: Some("c1".to_owned()), ..message("tool", "a\x1b[2J``\x07`b\n") },
            message("assistant", "Done.\n"),
        ];
        let envelope = Envelope {
            schema_version: 1,
            session_id: "1ee09edb-bafc-4a5d-b520-c2c9e19daef4".to_owned(),
            workspace_scope: "/w".to_owned(),
            created_at_ms: 0,
            updated_at_ms: 1000,
            model: "m".to_owned(),
            generation: 1,
            messages,
            compaction: None,
            compaction_revision: 0,
        };
        assert_eq!(
            as_markdown(&envelope),
            "# Conversation 1ee09edb-bafc-4a5d-b520-c2c9e19daef4\n\n\
             - Workspace: /w\n- Model: m\n- Created: 1970-01-01 00:00:00 UTC\n- Updated: 1970-01-01 00:00:01 UTC\n\n\
             ## User\n\nlist\nthe files\n\n\n\
             ## Assistant\n\nCalls **shell** (c1):\n\n```json\n{\"command\":\"ls\"}\n```\n\n\n\
             ## Tool (result of c1)\n\n````\na[2J```b\n````\n\n\n\
             ## Assistant\n\nDone."
        );
    }
}
