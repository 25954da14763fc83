//! List tasks.

use clap::Args;
use cofferdam_protocol::host::{GetState, TaskRow};
use cofferdam_protocol::pod::TaskStatus;
use jiff::tz::Offset;

use crate::client::arguments::Shown;
use crate::client::host::Run;
use crate::client::host::failure::Failure;
use crate::client::host::follow::status;
use crate::client::moment::{local_offset, local_time, zone};
use crate::client::shown::{excerpt, one_line};
use crate::client::table::table;
use crate::terminal::Terminal;

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only tasks of this status; may be given more than once
    #[arg(long, value_name = "STATUS", value_parser = parse_status, value_delimiter = ',')]
    status: Vec<TaskStatus>,
    #[command(flatten)]
    shown: Shown,
}

impl List {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let state = run.control.host(&GetState::default())?;
        mention_core(&state.core, &mut run.terminal);
        let wanted = |row: &TaskRow| self.status.is_empty() || self.status.contains(&row.task.status);
        let tasks: Vec<_> = state.tasks.into_iter().filter(wanted).collect();
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&tasks)?);
        }
        Ok(run.terminal.print(as_table(&tasks, local_offset()))?)
    }
}

/// Says that what is shown may be old, or missing, since the core is not there.
pub(super) fn mention_core(core: &cofferdam_protocol::host::CoreState, terminal: &mut Terminal) {
    if !core.message.is_empty() {
        terminal.warn(format_args!("Warning: {}", one_line(&core.message)));
    }
}

/// A status by its word.
pub(super) fn parse_status(word: &str) -> Result<TaskStatus, String> {
    let words = || TaskStatus::ALL.map(TaskStatus::as_str).join(", ");
    TaskStatus::parse(word).ok_or_else(|| format!("write one of {}", words()))
}

/// A moment in milliseconds since the epoch; 0 is none.
pub(in crate::client::host) fn moment(ms: i64, offset: Offset) -> String {
    match ms {
        0 => "-".to_owned(),
        ms => local_time(i128::from(ms) * 1_000_000, offset).unwrap_or_else(|| "?".to_owned()),
    }
}

fn as_table(tasks: &[TaskRow], offset: Offset) -> String {
    if tasks.is_empty() {
        return "No tasks found.".to_owned();
    }
    let created = format!("CREATED({})", zone(offset));
    let mut rows = vec![["TASK", "STATUS", "AGENT", "TURNS", &created, "LABEL"].map(str::to_owned)];
    rows.extend(tasks.iter().map(|row| {
        let agent = match (row.live, row.can_resume) {
            (true, _) => "live",
            (false, true) => "resumable",
            (false, false) => "-",
        };
        [
            one_line(&row.task.id),
            status(row),
            agent.to_owned(),
            row.task.turns.to_string(),
            moment(row.task.created_at, offset),
            excerpt(&row.task.label),
        ]
    }));
    format!("{}\n\nTotal: {} task(s)", table(&rows), tasks.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::host::testing::row;

    #[test]
    fn the_table_says_where_each_task_is_and_whether_its_agent_can_be_told_more() {
        let mut waiting = row("pod-2", TaskStatus::Queued);
        waiting.task.queued_position = 1;
        waiting.task.label = "second\x1b[2J".to_owned();
        let mut done = row("pod-1", TaskStatus::Completed);
        (done.live, done.task.turns, done.task.label) = (true, 2, "first".to_owned());
        let mut old = row("pod-0", TaskStatus::Interrupted);
        old.can_resume = true;
        assert_eq!(
            as_table(&[waiting, done, old], Offset::constant(8)),
            "TASK   STATUS           AGENT      TURNS  CREATED(UTC+8)       LABEL\n\
             pod-2  queued, place 1  -          0      2026-01-02 11:04:05  second\\u{1b}[2J\n\
             pod-1  completed        live       2      2026-01-02 11:04:05  first\n\
             pod-0  interrupted      resumable  0      2026-01-02 11:04:05\n\
             \n\
             Total: 3 task(s)"
        );
        assert_eq!(as_table(&[], Offset::UTC), "No tasks found.");
    }

    #[test]
    fn a_status_is_one_of_the_contracts_words() {
        for status in TaskStatus::ALL {
            assert_eq!(parse_status(status.as_str()), Ok(status));
        }
        assert!(parse_status("done").unwrap_err().starts_with("write one of queued, starting"));
    }

    #[test]
    fn a_moment_that_never_came_is_a_dash_and_one_beyond_the_calendar_no_time() {
        assert_eq!([0, 1, i64::MAX].map(|ms| moment(ms, Offset::UTC)), ["-", "1970-01-01 00:00:00", "?"]);
    }
}
