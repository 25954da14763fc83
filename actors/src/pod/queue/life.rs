//! What begins and what ends in a task's life.

use cofferdam_protocol::pod::TaskStatus;
use cofferdam_storage::pod::TaskRecord;

/// A turn begins, whatever was open before. What went wrong in an earlier one is past.
pub(super) fn begin_turn(task: &mut TaskRecord, turn: u64, at: i64) {
    task.open_turn = Some(turn);
    task.last_turn = Some(turn);
    task.deadline_passed = false;
    task.reattached_from = None;
    let summary = &mut task.summary;
    summary.status = TaskStatus::Running;
    summary.turns = summary.turns.saturating_add(1);
    summary.started_at = at;
    summary.turn_deadline = at.saturating_add(summary.timeout_ms);
    summary.error.clear();
}

/// No turn is open any more.
pub(super) fn close_turn(task: &mut TaskRecord) {
    task.open_turn = None;
    task.deadline_passed = false;
    task.summary.turn_deadline = 0;
}

/// The task has a terminal status from now on.
pub(super) fn end(task: &mut TaskRecord, status: TaskStatus, at: i64) {
    settle(task, status);
    task.summary.ended_at = at;
}

/// The same for a task that was only looked at: it ended when it did.
pub(super) fn end_as_before(task: &mut TaskRecord, status: TaskStatus, at: i64) {
    settle(task, status);
    if task.summary.ended_at == 0 {
        task.summary.ended_at = at;
    }
}

fn settle(task: &mut TaskRecord, status: TaskStatus) {
    close_turn(task);
    task.cancel_requested = false;
    task.reattached_from = None;
    task.summary.status = status;
}

/// The turn took longer than it may; says what to do about it.
pub(super) fn time_out(task: &mut TaskRecord, at: i64) {
    end(task, TaskStatus::Timeout, at);
    let seconds = task.summary.timeout_ms / 1000;
    explain(task, || {
        format!(
            "the turn took longer than {seconds} s, and was ended; give tasks more time (timeoutMs), or less to do"
        )
    });
}

/// Says why, where nothing says it yet.
pub(super) fn explain(task: &mut TaskRecord, why: impl FnOnce() -> String) {
    if task.summary.error.is_empty() {
        task.summary.error = why();
    }
}
