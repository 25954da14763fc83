//! A task as a row.

use cofferdam_protocol::pod::{TaskStatus, TaskSummary};
use diesel::prelude::*;
use serde::de::DeserializeOwned;

use super::schema::tasks;
use crate::pod::error::{Error, Result};
use crate::pod::model::TaskRecord;

/// All columns of a task.
#[derive(Queryable, Insertable, AsChangeset)]
#[diesel(table_name = tasks, primary_key(id), treat_none_as_null = true)]
pub(super) struct TaskRow {
    pub(super) row: i64,
    pub(super) id: String,
    session_id: String,
    main_session_id: String,
    label: String,
    description: String,
    status: String,
    subdir: String,
    task_dir: String,
    sandbox_root: String,
    created_at: i64,
    queued_at: i64,
    started_at: i64,
    ended_at: i64,
    turns: i64,
    timeout_ms: i64,
    allow: String,
    available_tools: String,
    preset_id: String,
    model: String,
    sandbox_mode: String,
    sandbox_probe: String,
    fs_denied: bool,
    last_text: String,
    error: String,
    legacy: bool,
    turn_deadline: i64,
    open_turn: Option<i64>,
    last_turn: Option<i64>,
    deadline_passed: bool,
    cancel_requested: bool,
    reattached_from: Option<String>,
}

impl TaskRow {
    /// The row of a task.
    pub(super) fn of(task: &TaskRecord) -> Result<Self> {
        let TaskSummary {
            id,
            session_id,
            main_session_id,
            label,
            description,
            status,
            subdir,
            task_dir,
            sandbox_root,
            created_at,
            queued_at,
            started_at,
            ended_at,
            turns,
            timeout_ms,
            allow,
            available_tools,
            preset_id,
            model,
            sandbox_mode,
            sandbox_probe,
            fs_denied,
            last_text,
            error,
            legacy,
            turn_deadline,
            // The queue says it.
            queued_position: _,
        } = task.summary.clone();
        Ok(Self {
            row: task.row,
            id,
            session_id,
            main_session_id,
            label,
            description,
            status: status.as_str().to_owned(),
            subdir,
            task_dir,
            sandbox_root,
            created_at,
            queued_at,
            started_at,
            ended_at,
            turns,
            timeout_ms,
            allow: json(&allow)?,
            available_tools: json(&available_tools)?,
            preset_id,
            model: json(&model)?,
            sandbox_mode,
            sandbox_probe,
            fs_denied,
            last_text,
            error,
            legacy,
            turn_deadline,
            open_turn: task.open_turn.map(u64::cast_signed),
            last_turn: task.last_turn.map(u64::cast_signed),
            deadline_passed: task.deadline_passed,
            cancel_requested: task.cancel_requested,
            reattached_from: task.reattached_from.map(|status| status.as_str().to_owned()),
        })
    }

    /// The task of a row. The error says what no code of ours has written.
    pub(super) fn record(self) -> std::result::Result<TaskRecord, String> {
        Ok(TaskRecord {
            row: self.row,
            summary: TaskSummary {
                id: self.id,
                session_id: self.session_id,
                main_session_id: self.main_session_id,
                label: self.label,
                description: self.description,
                status: status(&self.status)?,
                subdir: self.subdir,
                task_dir: self.task_dir,
                sandbox_root: self.sandbox_root,
                created_at: self.created_at,
                queued_at: self.queued_at,
                started_at: self.started_at,
                ended_at: self.ended_at,
                turns: self.turns,
                timeout_ms: self.timeout_ms,
                allow: parse("allow", &self.allow)?,
                available_tools: parse("available_tools", &self.available_tools)?,
                preset_id: self.preset_id,
                model: parse("model", &self.model)?,
                sandbox_mode: self.sandbox_mode,
                sandbox_probe: self.sandbox_probe,
                fs_denied: self.fs_denied,
                last_text: self.last_text,
                error: self.error,
                legacy: self.legacy,
                turn_deadline: self.turn_deadline,
                queued_position: 0,
            },
            open_turn: self.open_turn.map(i64::cast_unsigned),
            last_turn: self.last_turn.map(i64::cast_unsigned),
            deadline_passed: self.deadline_passed,
            cancel_requested: self.cancel_requested,
            reattached_from: self.reattached_from.as_deref().map(status).transpose()?,
        })
    }
}

fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Database(error.to_string()))
}

fn parse<T: DeserializeOwned>(column: &str, text: &str) -> std::result::Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{column}: {error}"))
}

fn status(word: &str) -> std::result::Result<TaskStatus, String> {
    TaskStatus::parse(word).ok_or_else(|| format!("{word:?} is no status"))
}
