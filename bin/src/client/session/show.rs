//! Show what is known of a conversation.

use clap::Args;
use cofferdam_protocol::session::Summary;
use jiff::tz::Offset;

use super::Run;
use super::failure::Failure;
use super::list::{health, moment};
use super::management;
use crate::client::arguments::Shown;
use crate::client::moment::{local_offset, zone};
use crate::client::shown::one_line;
use crate::session::SessionCore;

#[derive(Args, Debug)]
pub(super) struct Show {
    /// The conversation's id
    #[arg(value_name = "ID")]
    session: String,
    #[command(flatten)]
    shown: Shown,
}

impl Show {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let summary = management::program().inspect(&run.workspace()?, &self.session)?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&summary)?);
        }
        Ok(run.terminal.print(as_lines(&summary, local_offset()))?)
    }
}

fn as_lines(summary: &Summary, offset: Offset) -> String {
    let or_none = |text: Option<&str>| text.map_or_else(|| "-".to_owned(), one_line);
    let when = |ms| format!("{} {}", moment(ms, offset), zone(offset));
    [
        ("Session", one_line(&summary.session_id)),
        ("Workspace", one_line(&summary.workspace_scope)),
        ("Health", health(summary.health).to_owned()),
        ("Created", when(summary.created_at_ms)),
        ("Updated", when(summary.updated_at_ms)),
        ("Model", or_none(summary.model.as_deref())),
        ("Messages", summary.message_count.to_string()),
        ("Schema", summary.schema_version.map_or_else(|| "-".to_owned(), |version| version.to_string())),
        ("First prompt", or_none(summary.first_prompt.as_deref())),
    ]
    .map(|(name, value)| format!("{:<14}{value}", format!("{name}:")))
    .join("\n")
}

#[cfg(test)]
mod tests {
    use cofferdam_protocol::session::Health;

    use super::*;

    #[test]
    fn what_the_file_does_not_say_is_a_dash() {
        let summary = Summary {
            session_id: "1ee09edb-bafc-4a5d-b520-c2c9e19daef4".to_owned(),
            workspace_scope: "/w\u{1b}[2J".to_owned(),
            created_at_ms: 0,
            updated_at_ms: 1000,
            model: None,
            message_count: 0,
            first_prompt: None,
            schema_version: None,
            health: Health::Corrupt,
        };
        assert_eq!(
            as_lines(&summary, Offset::UTC),
            "Session:      1ee09edb-bafc-4a5d-b520-c2c9e19daef4\n\
             Workspace:    /w\\u{1b}[2J\n\
             Health:       corrupt\n\
             Created:      1970-01-01 00:00:00 UTC+0\n\
             Updated:      1970-01-01 00:00:01 UTC+0\n\
             Model:        -\n\
             Messages:     0\n\
             Schema:       -\n\
             First prompt: -"
        );
    }
}
