-- Which program's file this is ("Cofp"), and how many of these migrations it has seen.
PRAGMA application_id = 0x436f6670;
PRAGMA user_version = 1;

-- Times are milliseconds since the epoch, 0 if it never came to that. Lists and the model are JSON.
CREATE TABLE tasks (
    -- The order of insertion, which is also the order of the queue.
    "row"             INTEGER PRIMARY KEY NOT NULL,
    id                TEXT    NOT NULL UNIQUE,
    session_id        TEXT    NOT NULL,
    main_session_id   TEXT    NOT NULL,
    label             TEXT    NOT NULL,
    description       TEXT    NOT NULL,
    status            TEXT    NOT NULL CHECK (status IN ('queued', 'starting', 'running', 'completed', 'failed',
                                                         'timeout', 'cancelled', 'interrupted')),
    subdir            TEXT    NOT NULL,
    task_dir          TEXT    NOT NULL,
    sandbox_root      TEXT    NOT NULL,
    created_at        INTEGER NOT NULL,
    queued_at         INTEGER NOT NULL,
    started_at        INTEGER NOT NULL,
    ended_at          INTEGER NOT NULL,
    turns             INTEGER NOT NULL,
    timeout_ms        INTEGER NOT NULL,
    allow             TEXT    NOT NULL,
    available_tools   TEXT    NOT NULL,
    preset_id         TEXT    NOT NULL,
    model             TEXT    NOT NULL,
    sandbox_mode      TEXT    NOT NULL,
    sandbox_probe     TEXT    NOT NULL,
    fs_denied         INTEGER NOT NULL CHECK (fs_denied IN (0, 1)),
    last_text         TEXT    NOT NULL,
    error             TEXT    NOT NULL,
    -- Migrated from the predecessor's file.
    legacy            INTEGER NOT NULL CHECK (legacy IN (0, 1)),
    turn_deadline     INTEGER NOT NULL,
    -- What the wire does not show. Numbers of turns are unsigned, stored as the signed number of the same bits.
    open_turn         INTEGER,
    last_turn         INTEGER,
    deadline_passed   INTEGER NOT NULL CHECK (deadline_passed IN (0, 1)),
    cancel_requested  INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
    reattached_from   TEXT
) STRICT;

-- What happened to a task; the last 200 of each.
CREATE TABLE audit (
    key  INTEGER PRIMARY KEY NOT NULL,
    task TEXT    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    at   INTEGER NOT NULL,
    what TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_by_task ON audit (task, key);

-- What the predecessor's file said of a task that has no place in `tasks`, as a JSON object.
CREATE TABLE legacy_notes (
    task  TEXT PRIMARY KEY NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    notes TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Transcripts of migrated tasks.
CREATE TABLE legacy_log (
    task     TEXT    NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    event    TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    time     INTEGER NOT NULL,
    text     TEXT    NOT NULL,
    think    TEXT    NOT NULL,
    PRIMARY KEY (task, position)
) STRICT;

-- One row for each key that was ever set; the value is JSON.
CREATE TABLE config (
    key   TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Exports outlive their tasks: no foreign key.
CREATE TABLE exports (
    key        INTEGER PRIMARY KEY NOT NULL,
    id         TEXT    NOT NULL UNIQUE,
    task       TEXT    NOT NULL,
    label      TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    target_dir TEXT    NOT NULL,
    mode       TEXT    NOT NULL CHECK (mode IN ('copy', 'move')),
    conflict   TEXT    NOT NULL CHECK (conflict IN ('overwrite', 'skip', 'rename')),
    status     TEXT    NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'interrupted')),
    undone_at  INTEGER NOT NULL,
    legacy     INTEGER NOT NULL CHECK (legacy IN (0, 1)),
    -- What its undo must know and the wire does not show.
    notes      TEXT    NOT NULL DEFAULT ''
) STRICT;

-- The files of an export, counted from 0 without gaps.
CREATE TABLE export_items (
    export      INTEGER NOT NULL REFERENCES exports (key) ON DELETE CASCADE,
    position    INTEGER NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('OK', 'SKIP', 'FAIL', 'UNDO', 'UNDO_CONFLICT')),
    src         TEXT    NOT NULL,
    dst         TEXT    NOT NULL,
    bytes       INTEGER NOT NULL,
    hash        TEXT    NOT NULL,
    existed     INTEGER NOT NULL CHECK (existed IN (0, 1)),
    backup_path TEXT    NOT NULL,
    message     TEXT    NOT NULL,
    PRIMARY KEY (export, position)
) STRICT;

-- Where to the exports of a main session's tasks went last, where that was to be remembered; the last 200.
CREATE TABLE remembered_targets (
    session    TEXT PRIMARY KEY NOT NULL,
    target_dir TEXT NOT NULL,
    at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Facts about the database itself. 'legacy.imported': the BLAKE3 of the predecessor's file, once it is imported.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
