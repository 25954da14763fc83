//! Which of several errors is reported. What stores do is tested where they are.

use std::path::PathBuf;

use cofferdam_protocol::session::{ListRequest, SessionErrorCode as Code, limits};
use cofferdam_storage::session::config::Places;
use tempfile::TempDir;

use super::*;

const ID: &str = "00000000-0000-4000-8000-000000000001";

/// A home with an empty workspace.
struct Bench {
    dir: TempDir,
    parts: Parts,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("w")).unwrap();
        let parts = Parts::new(Places { home: Some(dir.path().to_owned()), ..Places::default() });
        Self { dir, parts }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn code<O: Operation>(&self, operation: O) -> Option<Code> {
        operation.run(&self.parts).err().map(|error| error_of(&error).code)
    }
}

fn many() -> Vec<String> {
    vec!["BAD".to_owned(); limits::IDS + 1]
}

fn list(workspace_scope: String, cursor: &str) -> ListSessions {
    let cursor = Some(cursor.to_owned());
    ListSessions(ListRequest { workspace_scope, limit: 1, cursor, all_workspaces: false })
}

fn plan(workspace_scope: String, protected: Vec<String>, cursor: Option<&str>) -> PrepareClearAll {
    let (limit, cursor) = (None, cursor.map(str::to_owned));
    PrepareClearAll(
        PrepareClearAllRequest { workspace_scope, protected_session_ids: protected, limit, cursor },
        Vec::new(),
    )
}

fn clear(workspace_scope: String, session_ids: Vec<String>, protected: Vec<String>) -> ClearSessions {
    ClearSessions(ClearRequest { workspace_scope, session_ids, protected_session_ids: protected }, Vec::new())
}

#[test]
fn arrays_out_of_bounds_come_before_the_workspace() {
    let bench = Bench::new();
    for workspace in [bench.path("w"), bench.path("missing")] {
        let within = vec!["BAD".to_owned(); limits::IDS];
        for (operation, array) in [
            (clear(workspace.clone(), many(), many()), "session_ids has 129"),
            (clear(workspace.clone(), within, many()), "protected_session_ids has 129"),
        ] {
            let error = operation.run(&bench.parts).unwrap_err();
            assert!(matches!(&error, Error::InvalidRequest(detail) if detail.starts_with(array)), "{error}");
        }
        assert_eq!(bench.code(plan(workspace, many(), None)), Some(Code::InvalidRequest));
    }
}

#[test]
fn the_workspace_comes_before_ids_and_cursors() {
    let bench = Bench::new();
    let bad = || vec!["BAD".to_owned()];
    for (workspace, id, cursor) in
        [("missing", Code::Io, Code::Io), ("w", Code::InvalidId, Code::InvalidCursor)]
    {
        let workspace = || bench.path(workspace);
        let session_id = || "BAD".to_owned();
        let inspect = InspectRequest { workspace_scope: workspace(), session_id: session_id() };
        let validate = ValidateRequest { workspace_scope: workspace(), session_id: session_id() };
        assert_eq!(bench.code(InspectSession(inspect)), Some(id));
        assert_eq!(bench.code(ValidateSession(validate)), Some(id));
        assert_eq!(bench.code(list(workspace(), "nope")), Some(cursor));
        assert_eq!(bench.code(plan(workspace(), bad(), Some("nope"))), Some(id));
        assert_eq!(bench.code(plan(workspace(), Vec::new(), Some("nope"))), Some(cursor));
        assert_eq!(bench.code(clear(workspace(), vec![ID.to_owned()], bad())), Some(id));
    }
}

#[test]
fn a_store_that_cannot_be_opened_comes_with_the_settings_all_the_same() {
    let bench = Bench::new();
    let open = |workspace: &str| {
        let workspace = PathBuf::from(bench.path(workspace));
        OpenStore { workspace, project_settings: true }.run(&bench.parts).unwrap()
    };
    assert!(open("w").store.is_ok());
    let opened = open("missing");
    assert!(opened.config.auto_persist);
    assert_eq!(opened.store.err().unwrap().code, Code::Io);
}

#[test]
fn what_is_loaded_is_named_by_a_canonical_id() {
    let bench = Bench::new();
    let opened = OpenStore { workspace: PathBuf::from(bench.path("w")), project_settings: false };
    let store = opened.run(&bench.parts).unwrap().store.unwrap();
    let load =
        |session_id: &str| LoadSession { store: Arc::clone(&store), session_id: session_id.to_owned() };
    assert_eq!(bench.code(load("BAD")), Some(Code::InvalidId));
    assert_eq!(bench.code(load(ID)), Some(Code::NotFound));
}
