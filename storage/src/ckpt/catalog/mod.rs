//! The database that says which workspaces, snapshots, packs and objects there are.
