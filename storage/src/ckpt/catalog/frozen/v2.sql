CREATE TABLE objects (
    id     BLOB    PRIMARY KEY NOT NULL CHECK (length(id) = 32),
    pack   INTEGER NOT NULL,
    block  INTEGER NOT NULL,
    start  INTEGER NOT NULL,
    length INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE packs (
    key     INTEGER PRIMARY KEY NOT NULL,
    id      BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    -- 'pending': a name for a pack to come; a file of that name is a leftover.
    -- 'live': holds objects.
    -- 'suspect': holds objects, some damaged; not relied on by anything new.
    -- 'condemned': no snapshot needs it; the file goes when nothing reads it any more.
    state   TEXT    NOT NULL CHECK (state IN ('pending', 'live', 'suspect', 'condemned')),
    bytes   INTEGER NOT NULL,
    objects INTEGER NOT NULL
) STRICT;
CREATE TABLE snapshots (
    key        INTEGER PRIMARY KEY NOT NULL,
    workspace  INTEGER NOT NULL REFERENCES workspaces (key),
    -- 'user': List shows it. 'safety': the tree before a rollback, named after the operation.
    kind       TEXT    NOT NULL CHECK (kind IN ('user', 'safety')),
    name       TEXT    NOT NULL,
    message    TEXT,
    metadata   TEXT,
    pinned     INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    created_at INTEGER NOT NULL,
    manifest   BLOB    NOT NULL CHECK (length(manifest) = 32),
    warnings   INTEGER NOT NULL,
    missing    INTEGER NOT NULL CHECK (missing IN (0, 1)),
    -- Of a safety snapshot: when its rollback was done. Undo goes back to the newest of these.
    applied_at INTEGER,
    trashed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX snapshots_by_name ON snapshots (workspace, kind, name) WHERE trashed_at IS NULL;
CREATE INDEX snapshots_by_trash ON snapshots (trashed_at) WHERE trashed_at IS NOT NULL;
sqlite_autoindex_packs_1;
CREATE TABLE workspaces (
    key           INTEGER PRIMARY KEY NOT NULL,
    id            TEXT    NOT NULL,
    path          BLOB    NOT NULL,
    owner         INTEGER NOT NULL,
    identity      BLOB    NOT NULL,
    registered_at INTEGER NOT NULL,
    forgotten_at  INTEGER,
    -- The manifest for which the stat cache was last committed; protected from collection.
    last_capture  BLOB
, kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1))) STRICT;
CREATE UNIQUE INDEX workspaces_by_id ON workspaces (id) WHERE forgotten_at IS NULL;
CREATE UNIQUE INDEX workspaces_by_path ON workspaces (path, kept) WHERE forgotten_at IS NULL;
