//! List conversations.

use clap::Args;
use cofferdam_protocol::session::{Health, ListRequest, Summary, limits};
use jiff::tz::Offset;
use serde::Serialize;

use super::Run;
use super::failure::Failure;
use super::management;
use crate::client::arguments::Shown;
use crate::client::moment::{local_offset, local_time, zone};
use crate::client::shown::{excerpt, one_line};
use crate::client::table::table;
use crate::session::SessionCore;

#[derive(Args, Debug)]
pub(super) struct List {
    /// Also the conversations of other workspaces
    #[arg(long)]
    all_workspaces: bool,
    /// How many at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = limits::LIST_PAGE_DEFAULT)]
    limit: usize,
    /// Go on where a list with --format json ended: its next_cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Listed {
    sessions: Vec<Summary>,
    next_cursor: Option<String>,
}

impl List {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let (workspace_scope, core) = (run.workspace()?, management::program());
        let mut listed = Listed { sessions: Vec::new(), next_cursor: self.cursor.clone() };
        while listed.sessions.len() < self.limit {
            let page = core.list(ListRequest {
                workspace_scope: workspace_scope.clone(),
                limit: (self.limit - listed.sessions.len()).min(limits::LIST_PAGE),
                cursor: listed.next_cursor,
                all_workspaces: self.all_workspaces,
            })?;
            listed.sessions.extend(page.sessions);
            listed.next_cursor = page.next_cursor;
            if listed.next_cursor.is_none() {
                break;
            }
        }
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&listed)?);
        }
        run.terminal.print(as_table(&listed.sessions, self.all_workspaces, local_offset()))?;
        if listed.next_cursor.is_some() {
            run.terminal.say(format_args!(
                "There are more; --limit {} shows more of them.",
                self.limit.saturating_mul(5)
            ));
        }
        Ok(())
    }
}

fn as_table(sessions: &[Summary], all_workspaces: bool, offset: Offset) -> String {
    if sessions.is_empty() {
        return "No conversations found.".to_owned();
    }
    let updated = format!("UPDATED({})", zone(offset));
    let heading = ["SESSION", &updated, "MESSAGES", "HEALTH", "FIRST PROMPT"].map(str::to_owned);
    let row = |session: &Summary| {
        [
            one_line(&session.session_id),
            moment(session.updated_at_ms, offset),
            session.message_count.to_string(),
            health(session.health).to_owned(),
            excerpt(session.first_prompt.as_deref().unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = sessions.iter().map(row).collect();
    let text = if all_workspaces {
        let mut with_workspaces = vec![with(heading, "WORKSPACE".to_owned())];
        with_workspaces.extend(
            rows.into_iter()
                .zip(sessions)
                .map(|(row, session)| with(row, one_line(&session.workspace_scope))),
        );
        table(&with_workspaces)
    } else {
        table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>())
    };
    format!("{text}\n\nTotal: {} conversation(s)", sessions.len())
}

/// A row with the workspace before the prompt, which is as long as it likes.
fn with([session, updated, messages, health, prompt]: [String; 5], workspace: String) -> [String; 6] {
    [session, updated, messages, health, workspace, prompt]
}

/// A time in milliseconds since 1970.
pub(super) fn moment(ms: u64, offset: Offset) -> String {
    local_time(i128::from(ms) * 1_000_000, offset).unwrap_or_else(|| "?".to_owned())
}

/// The word for what can be done with a conversation.
pub(super) fn health(health: Health) -> &'static str {
    match health {
        Health::Ready => "ready",
        Health::Corrupt => "corrupt",
        Health::Incompatible => "incompatible",
        Health::ScopeMismatch => "scope mismatch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn summary(id: &str, health: Health, prompt: Option<&str>) -> Summary {
        Summary {
            session_id: id.to_owned(),
            workspace_scope: "/home/you/project".to_owned(),
            created_at_ms: 1_767_323_045_123,
            updated_at_ms: 1_767_323_045_123,
            model: Some("m".to_owned()),
            message_count: 2,
            first_prompt: prompt.map(str::to_owned),
            schema_version: Some(1),
            health,
        }
    }

    #[test]
    fn the_table_shows_what_a_person_chooses_by() {
        let sessions = [
            summary("1ee09edb-bafc-4a5d-b520-c2c9e19daef4", Health::Ready, Some("fix the test")),
            summary("98581ea8-aeb9-4a71-90ba-4ef4cd4f7fd5", Health::Corrupt, None),
        ];
        assert_eq!(
            as_table(&sessions, false, Offset::constant(8)),
            "SESSION                               UPDATED(UTC+8)       MESSAGES  HEALTH   FIRST PROMPT\n\
             1ee09edb-bafc-4a5d-b520-c2c9e19daef4  2026-01-02 11:04:05  2         ready    fix the test\n\
             98581ea8-aeb9-4a71-90ba-4ef4cd4f7fd5  2026-01-02 11:04:05  2         corrupt\n\
             \n\
             Total: 2 conversation(s)"
        );
        assert!(as_table(&sessions, true, Offset::UTC).contains("  /home/you/project  fix the test"));
        assert_eq!(as_table(&[], false, Offset::UTC), "No conversations found.");
    }

    #[test]
    fn a_time_beyond_the_calendar_is_no_time() {
        assert_eq!(moment(u64::MAX, Offset::UTC), "?");
    }
}
