//! Remove tasks, their files, or both.

use clap::{ArgGroup, Args, ValueEnum};
use cofferdam_protocol::ckpt::RetentionAge;
use cofferdam_protocol::host::{BulkCleanup, CleanedUp, Cleanup, CleanupScope, GetState, TaskRow};
use cofferdam_protocol::pod::{BulkCleanupResult, TaskStatus};
use cofferdam_storage::clock::{Clock, SystemClock};

use super::list::parse_status;
use crate::client::arguments::Shown;
use crate::client::host::failure::Failure;
use crate::client::host::follow::status;
use crate::client::host::{Run, find};
use crate::client::shown::{excerpt, one_line};

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("which").required(true).args(["task", "status"]))]
#[command(
    after_help = "Either one task, or all that ended in a certain way: task clean --status completed,failed --older-than 7d"
)]
pub(crate) struct Clean {
    /// The beginning of the task's id; one that has not ended is cancelled first
    #[arg(conflicts_with_all = ["older_than", "files"])]
    task: Option<String>,
    /// What of the task
    #[arg(long, value_enum, value_name = "SCOPE", default_value_t, conflicts_with = "status")]
    scope: Scope,
    /// All tasks that ended so; may be given more than once
    #[arg(long, value_name = "STATUS", value_parser = parse_ended, value_delimiter = ',')]
    status: Vec<TaskStatus>,
    /// Only those that ended longer ago than this, such as 7d or 12h
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    older_than: Option<RetentionAge>,
    /// Remove their files, too
    #[arg(long)]
    files: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    shown: Shown,
}

/// What of a task is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Scope {
    /// Its record; the files stay
    #[default]
    Record,
    /// Its files; the record stays
    Files,
    /// Both
    All,
}

impl Clean {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        match &self.task {
            Some(task) => self.one(run, task),
            None => self.many(run),
        }
    }

    fn one(&self, run: &mut Run, task: &str) -> Result<(), Failure> {
        let row = find::task(&run.control, task)?;
        if !self.yes {
            run.terminal.say(plan_of_one(&row, self.scope));
        }
        if !run.consent(self.yes, "Remove this for good?")? {
            run.terminal.say("Nothing was removed.");
            return Ok(());
        }
        let scope = match self.scope {
            Scope::Record => CleanupScope::Record,
            Scope::Files => CleanupScope::Files,
            Scope::All => CleanupScope::All,
        };
        let cleaned = run.control.host(&Cleanup { task_id: row.task.id, scope })?;
        if self.shown.as_json(&mut run.terminal) {
            return Ok(run.terminal.print_json(&cleaned)?);
        }
        Ok(run.terminal.print(told_of_one(&cleaned))?)
    }

    fn many(&self, run: &mut Run) -> Result<(), Failure> {
        let state = run.control.host(&GetState::default())?;
        let age = self.older_than.as_ref().map_or(0, |age| age.seconds().saturating_mul(1000));
        // What ends after this moment was not shown, and is not removed.
        let before = now().saturating_sub(age);
        let matches = |row: &&TaskRow| self.status.contains(&row.task.status) && row.task.ended_at < before;
        let planned: Vec<_> = state.tasks.iter().filter(matches).collect();
        if planned.is_empty() {
            return self.report(run, &BulkCleanupResult { results: Vec::new(), deleted: 0, more: false });
        }
        if !self.yes {
            run.terminal.say(plan_of_many(&planned, self.files));
        }
        if !run.consent(self.yes, &format!("Remove {} task(s) for good?", planned.len()))? {
            run.terminal.say("Nothing was removed.");
            return Ok(());
        }
        let statuses = Some(self.status.clone());
        let older_than_ms = Some(now().saturating_sub(before));
        let cleaned = run.control.host(&BulkCleanup { statuses, older_than_ms, delete_files: self.files })?;
        self.report(run, &cleaned)
    }

    /// Says what became of each. Anything that was not removed is a failure.
    fn report(&self, run: &mut Run, cleaned: &BulkCleanupResult) -> Result<(), Failure> {
        if self.shown.as_json(&mut run.terminal) {
            run.terminal.print_json(cleaned)?;
        } else {
            run.terminal.print(told_of_many(cleaned))?;
        }
        if cleaned.results.iter().all(|row| row.ok) { Ok(()) } else { Err(Failure::Exit(1)) }
    }
}

/// Milliseconds since the epoch.
pub(in crate::client::host) fn now() -> i64 {
    SystemClock::new().wall().0 / 1_000_000
}

/// A status that a task can end with.
fn parse_ended(word: &str) -> Result<TaskStatus, String> {
    match parse_status(word) {
        Ok(status) if !status.is_terminal() => {
            Err(format!("a task that is {word} has not ended; cancel it first, or name it"))
        }
        status => status,
    }
}

fn parse_age(text: &str) -> Result<RetentionAge, String> {
    RetentionAge::new(text).map_err(|error| error.to_string())
}

fn plan_of_one(row: &TaskRow, scope: Scope) -> String {
    let (id, dir) = (one_line(&row.task.id), one_line(&row.task.task_dir));
    let mut lines =
        vec![format!("{id}  {}  {}", status(row), excerpt(&row.task.label)).trim_end().to_owned()];
    if !row.task.status.is_terminal() {
        lines.push("  it has not ended, and is cancelled first".to_owned());
    } else if row.live {
        lines.push("  its agent is there, and is ended first".to_owned());
    }
    let (record, files) = (scope != Scope::Files, scope != Scope::Record);
    let fate = |gone| if gone { "is removed" } else { "stays" };
    lines.push(format!("  its record {}", fate(record)));
    lines.push(format!("  its directory {dir}, with everything in it, {}", fate(files)));
    lines.join("\n")
}

fn plan_of_many(rows: &[&TaskRow], files: bool) -> String {
    let what = if files { "Records, and directories with everything in them," } else { "Records" };
    let mut lines = vec![format!("{what} that are to be removed:")];
    lines.extend(rows.iter().map(|row| {
        let (id, label) = (one_line(&row.task.id), excerpt(&row.task.label));
        match files {
            true => format!("  {id}  {}  {}  {label}", status(row), one_line(&row.task.task_dir)),
            false => format!("  {id}  {}  {label}", status(row)),
        }
    }));
    lines.push(if files { "Exported files stay." } else { "Their files stay." }.to_owned());
    lines.join("\n")
}

fn told_of_one(cleaned: &CleanedUp) -> String {
    let id = one_line(&cleaned.task_id);
    match (cleaned.removed_record, cleaned.removed_files) {
        (true, true) => format!("Removed: {id}, its record and its files"),
        (true, false) => format!("Removed: {id}, its record"),
        (false, true) => format!("Removed: {id}, its files"),
        (false, false) => format!("{id} had nothing to remove"),
    }
}

fn told_of_many(cleaned: &BulkCleanupResult) -> String {
    if cleaned.results.is_empty() {
        return "No tasks to remove.".to_owned();
    }
    let mut lines = vec![format!("Removed {} task(s).", cleaned.deleted)];
    let kept: Vec<_> = cleaned.results.iter().filter(|row| !row.ok).collect();
    if !kept.is_empty() {
        lines.push(format!("Not removed, {}:", kept.len()));
        lines.extend(kept.iter().map(|row| {
            format!("  {}: [{}] {}", one_line(&row.task_id), one_line(&row.code), one_line(&row.message))
        }));
    }
    if cleaned.more {
        lines.push("There are more; clean again.".to_owned());
    }
    lines.join("\n")
}
