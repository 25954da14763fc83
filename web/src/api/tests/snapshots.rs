//! The routes of workspaces, their snapshots, and what differs between them.

use cofferdam_protocol::ckpt::{DiffEntry, DiffKind};
use cofferdam_storage::ckpt::{FileKind, FsUsage, Seen, Snapshot};

use super::*;

stub! {
    ListSnapshots => |request: ListSnapshots| {
        let workspace = Workspace {
            id: WorkspaceId::new("ws-000001").unwrap(),
            path: request.workspace.unwrap_or_else(|| format!("/home/{}", request.peer.uid)).into(),
            owner: request.peer.uid,
        };
        SnapshotList { workspaces: vec![ListedWorkspace {
            workspace: Arc::new(workspace),
            snapshots: [snapshot("one", 2, false), snapshot("two", 1, true)].into(),
        }] }
    };
    HealthAdvisory => |_| Advisory {
        over_limit_workspaces: 1,
        usage: FsUsage { total: 100, used: 30 },
    };
    CreateCheckpoint => |CreateCheckpoint { workspace, id, message, pin, .. }| match id.as_str() {
        "same" => CheckpointOutcome::Skipped { reason: "nothing changed".to_owned() },
        _ => CheckpointOutcome::Created(SnapshotId::new(format!("{id} {message:?} {pin} {}", workspace.len())).unwrap()),
    };
    Rollback => |Rollback { to, exact, .. }| RollbackDone {
        workspace: WorkspaceId::new("ws-000001").unwrap(),
        to: SnapshotId::new(if exact { to } else { format!("{to}…") }).unwrap(),
        outcome: RolledBack { changed: 5, warnings: Vec::new() },
    };
    DeleteSnapshot => |DeleteSnapshot { workspace, snapshot, exact, force, .. }| {
        SnapshotId::new(format!("{} {snapshot} {exact} {force}", workspace.unwrap().len())).unwrap()
    };
    DiffSnapshots => |DiffSnapshots { from, to, .. }| {
        let entry = |path: &str, change_type, detail: Option<&str>| DiffEntry {
            path: path.to_owned(),
            change_type,
            detail: detail.map(str::to_owned),
        };
        vec![
            entry(&from, DiffKind::Added, Some("directory")),
            entry(&to, DiffKind::Deleted, None),
            entry("c", DiffKind::Modified, None),
            entry("d", DiffKind::Renamed, Some("old \u{2192} d")),
        ]
    };
    CompareFile => |CompareFile { from, to, path, old_path, .. }| {
        let text = |line: String| Seen {
            kind: FileKind::File,
            size: 3,
            bytes: Some(format!("same\n{line}\n").into_bytes()),
        };
        let old = text(format!("{from} {}", old_path.as_deref().unwrap_or(&path)));
        ComparedFile { old: Some(old), new: (to != "none").then(|| text(format!("{to} {path}"))) }
    };
}

fn snapshot(id: &str, second: i64, missing: bool) -> Snapshot {
    Snapshot {
        id: SnapshotId::new(id).unwrap(),
        message: Some("why".into()),
        metadata: None,
        pinned: missing,
        created_at: WallTime(second * 1_000_000_000),
        missing,
        warnings: 3,
    }
}

async fn answer(request: TestRequest) -> Value {
    let (status, _, body) = send(None, somebody(), request).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    body
}

#[actix_web::test]
async fn workspaces_and_snapshots_are_listed_with_their_health() {
    let newest = "1970-01-01T00:00:02Z";
    assert_eq!(
        answer(get("/api/v1/ckpt/workspaces")).await,
        json!({"over_limit": 1, "fs_total_bytes": 100, "fs_used_bytes": 30, "workspaces": [
            {"id": "ws-000001", "path": "/home/1001", "snapshots": 2, "newest": newest, "missing": 1},
        ]}),
    );
    let snapshots = answer(get("/api/v1/ckpt/workspaces/%2Fp/snapshots")).await;
    assert_eq!((&snapshots["id"], &snapshots["path"]), (&json!("ws-000001"), &json!("/p")));
    assert_eq!(
        snapshots["snapshots"][0],
        json!({"id": "one", "message": "why", "metadata": null, "pinned": false, "created_at": newest,
               "missing": false, "warnings": 3}),
    );
    assert_eq!(snapshots["snapshots"][1]["missing"], json!(true));
}

#[actix_web::test]
async fn a_checkpoint_a_rollback_and_a_removal_say_what_became_of_them() {
    let post = |path: &str, body| answer(post(&format!("/api/v1/ckpt/{path}"), &body));
    assert_eq!(
        post("checkpoint", json!({"workspace": "/p", "id": "x", "message": "m", "pin": true})).await,
        json!({"snapshot": "x Some(\"m\") true 2", "skipped": null}),
    );
    assert_eq!(
        post("checkpoint", json!({"workspace": "/p", "id": "same"})).await,
        json!({"snapshot": null, "skipped": "nothing changed"}),
    );
    assert_eq!(
        post("rollback", json!({"workspace": "/p", "to": "one"})).await,
        json!({"rollback": null, "snapshot": "one", "undone": null, "changed": 5, "warnings": [], "omitted": 0}),
    );
    let deleted = json!({"snapshot": "2 one true false"});
    assert_eq!(post("delete", json!({"workspace": "/p", "snapshot": "one"})).await, deleted);
    let deleted = json!({"snapshot": "2 one true true"});
    assert_eq!(post("delete", json!({"workspace": "/p", "snapshot": "one", "force": true})).await, deleted);
}

#[actix_web::test]
async fn changes_come_by_the_page_and_are_counted_all() {
    let body = |more: Value| {
        let mut body = json!({"workspace": "/p", "from": "a", "to": "b"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let diff = |more| answer(post("/api/v1/ckpt/diff", &body(more)));
    let all = diff(json!({})).await;
    assert_eq!(all["total"], 4);
    for kind in ["added", "deleted", "modified", "renamed"] {
        assert_eq!(all[kind], 1, "{kind}");
    }
    let renamed = json!({"path": "d", "kind": "renamed", "detail": null, "old_path": "old"});
    assert_eq!(all["changes"][3], renamed);
    let page = diff(json!({"offset": 2, "limit": 1})).await;
    let modified = json!({"path": "c", "kind": "modified", "detail": null, "old_path": null});
    assert_eq!((&page["changes"], &page["total"]), (&json!([modified]), &json!(4)));
    assert_eq!(diff(json!({"offset": 9})).await["changes"], json!([]));
}

#[actix_web::test]
async fn the_content_of_a_path_is_compared_line_by_line() {
    let content = |body| answer(post("/api/v1/ckpt/content", &body));
    let both =
        content(json!({"workspace": "/p", "from": "a", "to": "b", "path": "f", "old_path": "o"})).await;
    assert_eq!(
        both["hunks"],
        json!([{"old_start": 1, "new_start": 1, "lines": [
            {"tag": " ", "text": "same"}, {"tag": "-", "text": "a o"}, {"tag": "+", "text": "b f"},
        ]}]),
    );
    let side = json!({"kind": "file", "size": 3, "binary": false, "unreadable": false, "truncated": false,
                      "target": null});
    assert_eq!((&both["old"], &both["truncated"]), (&side, &json!(false)));
    let gone = content(json!({"workspace": "/p", "from": "a", "to": "none", "path": "f"})).await;
    assert_eq!((&gone["new"], &gone["hunks"][0]["lines"][0]["tag"]), (&Value::Null, &json!("-")));
}

/// Compares what is answered with what is described.
pub(super) async fn described(check: impl Fn(&str, &Value)) {
    let workspaces = answer(get("/api/v1/ckpt/workspaces")).await;
    check("WorkspacesReport", &workspaces);
    check("WorkspaceReport", &workspaces["workspaces"][0]);
    let snapshots = answer(get("/api/v1/ckpt/workspaces/a/snapshots")).await;
    check("SnapshotsReport", &snapshots);
    check("SnapshotReport", &snapshots["snapshots"][0]);
    let workspace = || "/p".to_owned();
    let request = crate::ckpt::CheckpointRequest {
        workspace: workspace(),
        id: "x".to_owned(),
        message: None,
        pin: false,
    };
    check("CheckpointRequest", &json!(request));
    check("CheckpointReport", &answer(post("/api/v1/ckpt/checkpoint", &json!(request))).await);
    let request = crate::ckpt::RollbackRequest { workspace: workspace(), to: "x".to_owned() };
    check("RollbackRequest", &json!(request));
    let request =
        crate::ckpt::DeleteRequest { workspace: workspace(), snapshot: "x".to_owned(), force: false };
    check("DeleteRequest", &json!(request));
    check("DeletedReport", &answer(post("/api/v1/ckpt/delete", &json!(request))).await);
    let (from, to) = ("a".to_owned(), "b".to_owned());
    let request = crate::ckpt::DiffRequest {
        workspace: workspace(),
        from: from.clone(),
        to: to.clone(),
        offset: 0,
        limit: None,
    };
    check("DiffRequest", &json!(request));
    let diff = answer(post("/api/v1/ckpt/diff", &json!(request))).await;
    check("DiffReport", &diff);
    check("ChangeReport", &diff["changes"][0]);
    let request = crate::ckpt::ContentRequest {
        workspace: workspace(),
        from,
        to,
        path: "f".to_owned(),
        old_path: None,
    };
    check("ContentRequest", &json!(request));
    let content = answer(post("/api/v1/ckpt/content", &json!(request))).await;
    check("ContentReport", &content);
    check("SideReport", &content["old"]);
    check("HunkReport", &content["hunks"][0]);
    check("LineReport", &content["hunks"][0]["lines"][0]);
}
