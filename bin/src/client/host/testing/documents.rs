//! Documents to answer with.

use cofferdam_protocol::host::*;
use cofferdam_protocol::pod::*;

/// A moment for tests: 2026-01-02 03:04:05 UTC, in milliseconds.
pub(in crate::client::host) const NOW: i64 = 1_767_323_045_000;

/// A task of no distinction.
pub(in crate::client::host) fn row(id: &str, status: TaskStatus) -> TaskRow {
    let task = TaskSummary {
        id: id.to_owned(),
        session_id: "pod-session-1".to_owned(),
        main_session_id: String::new(),
        label: String::new(),
        description: String::new(),
        status,
        subdir: String::new(),
        task_dir: format!("/pods/{id}"),
        sandbox_root: "/pods".to_owned(),
        created_at: NOW,
        queued_at: 0,
        started_at: 0,
        ended_at: 0,
        turns: 0,
        timeout_ms: 600_000,
        allow: Vec::new(),
        available_tools: Vec::new(),
        preset_id: "fake".to_owned(),
        model: ModelChoice::default(),
        sandbox_mode: "workspace-write".to_owned(),
        sandbox_probe: "denied".to_owned(),
        fs_denied: true,
        last_text: String::new(),
        error: String::new(),
        legacy: false,
        turn_deadline: 0,
        queued_position: 0,
    };
    TaskRow { task, live: false, can_resume: false }
}

/// The files of a task.
pub(in crate::client::host) fn files(entries: &[(&str, FileType, u64)]) -> FileRows {
    let row = |(path, kind, size): &(&str, FileType, u64)| FileRow {
        rel_path: (*path).to_owned(),
        kind: *kind,
        size: *size,
        mtime: NOW,
        lossy: false,
    };
    let entries = entries.iter().map(row).collect();
    FileRows { root: "/pods/pod-1".to_owned(), entries, truncated: false, missing: false }
}

/// An export of files of 5 bytes each: how each stands, where it went, and what is to be said of it.
pub(in crate::client::host) fn export(id: &str, items: &[(ExportItemStatus, &str, &str)]) -> ExportRecord {
    let item = |(status, dst, message): &(ExportItemStatus, &str, &str)| ExportItem {
        status: *status,
        src: "/pods/pod-1/a".to_owned(),
        dst: (*dst).to_owned(),
        bytes: 5,
        hash: String::new(),
        existed: false,
        backup_path: String::new(),
        message: (*message).to_owned(),
    };
    ExportRecord {
        id: id.to_owned(),
        task_id: "pod-1".to_owned(),
        label: String::new(),
        at: NOW,
        target_dir: "/out".to_owned(),
        mode: ExportMode::Copy,
        conflict: ConflictMode::Overwrite,
        status: ExportStatus::Completed,
        undone_at: 0,
        legacy: false,
        items: items.iter().map(item).collect(),
        items_total: None,
        items_truncated: false,
    }
}

/// The state of a host whose core is there, with these tasks.
pub(in crate::client::host) fn state(tasks: &[TaskRow]) -> State {
    State {
        build: HOST_BUILD,
        plugin_version: String::new(),
        revision: 1,
        core: CoreState {
            status: CoreStatus::Ready,
            message: String::new(),
            code: None,
            embedded: true,
            version: String::new(),
            protocol: 1,
            schema_version: 1,
            pid: 0,
            starts: 1,
        },
        config: Some(Config::default()),
        tool_choices: Vec::new(),
        preset_choices: Vec::new(),
        sandbox: SandboxVerdict::default(),
        tasks: tasks.to_vec(),
        exports: Vec::new(),
        remembered_target: String::new(),
        diagnostics: Vec::new(),
        compat: Compat::default(),
        store_path: String::new(),
    }
}

/// An entry of a transcript.
pub(in crate::client::host) fn entry(seq: u64, kind: EntryKind, text: &str) -> TranscriptEntry {
    TranscriptEntry { seq, kind, time: NOW, text: text.to_owned() }
}

/// A whole transcript, from a number on.
pub(in crate::client::host) fn transcript(entries: &[TranscriptEntry], from: u64) -> Transcript {
    let next = entries.last().map_or(1, |last| last.seq + 1);
    let entries = entries.iter().filter(|entry| entry.seq >= from).cloned().collect();
    Transcript { entries, next, truncated: false }
}
