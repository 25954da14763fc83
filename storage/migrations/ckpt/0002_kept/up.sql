PRAGMA user_version = 2;

-- A directory can be registered a second time, apart from the workspaces that people have (0): for checkpoints that the
-- program takes for itself (1).
ALTER TABLE workspaces ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1));
DROP INDEX workspaces_by_path;
CREATE UNIQUE INDEX workspaces_by_path ON workspaces (path, kept) WHERE forgotten_at IS NULL;
