//! The scope in an application, before actors that only say what they were asked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;

use actix::{Actor, Context, Handler};
use actix_web::body::MessageBody;
use actix_web::dev::Service;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, HttpMessage};
use cofferdam_actors::ckpt::*;
use cofferdam_protocol::ckpt::{SnapshotId, WorkspaceId, WsCkptErrorCode as Code};
use cofferdam_storage::ckpt::{
    self, CheckReport, PastRollback, RollbackKind, RolledBack, Trashed, TrashedTree, Warning, WarningKind,
    Workspace,
};
use cofferdam_storage::clock::WallTime;
use cofferdam_storage::path::RelPath;
use cofferdam_storage::peer::Peer;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;

mod pods;
mod sessions;

/// Whom the API asks: stubs, and a host if one is given.
pub(crate) fn services(host: Option<Host>) -> Services {
    Services {
        ckpt: ckpt(Stub { refusal: None, lost: None }),
        sessions: sessions::Stub { refusal: None }.start().into(),
        host,
        streams: EventStreams::new(CancellationToken::new()),
        console: None,
    }
}

fn ckpt(stub: Stub) -> Ckpt {
    let stub = stub.start();
    Ckpt::from((stub.clone(), stub))
}

/// Answers with what it was asked, or refuses.
struct Stub {
    refusal: Option<Failure>,
    /// The undo whose answer was lost.
    lost: Option<mpsc::UnboundedSender<Undelivered<UndoRollback>>>,
}

impl Actor for Stub {
    type Context = Context<Self>;
}

macro_rules! stub {
    ($($message:ident => $answer:expr;)+) => {$(
        impl Handler<$message> for Stub {
            type Result = <$message as actix::Message>::Result;
            fn handle(&mut self, request: $message, _: &mut Context<Self>) -> Self::Result {
                match self.refusal.clone() {
                    Some(refusal) => Err(refusal),
                    None => Ok($answer(request)),
                }
            }
        }
    )+};
}
// It uses the macro above.
mod snapshots;

stub! {
    SnapshotWarnings => |request: SnapshotWarnings| vec![Warning {
        path: RelPath::new(format!("{}|{}", request.workspace.replace('/', ":"), request.snapshot).as_bytes()).unwrap(),
        kind: WarningKind::Unreadable,
    }];
    UndoRollback => |request: UndoRollback| UndoDone {
        workspace: WorkspaceId::new("ws-000001").unwrap(),
        path: PathBuf::from(request.workspace),
        rollback: PastRollback {
            operation: request.expected.unwrap_or_else(|| "0a1b".to_owned()),
            ..past(RollbackKind::To(SnapshotId::new("one").unwrap()))
        },
        outcome: RolledBack { changed: 4, warnings: Vec::new() },
    };
    GetLastRollback => |request: GetLastRollback| Arc::new(LastRollback {
        done: match request.workspace == "/p" {
            true => LastDone::To(SnapshotId::new("one").unwrap()),
            false => LastDone::Undone(past(RollbackKind::Undo)),
        },
        changed: 3,
        warnings: vec![Warning { path: RelPath::new(b"a").unwrap(), kind: WarningKind::LateWrite }],
        omitted: 7,
    });
    NewestRollback => |request: NewestRollback| {
        (request.workspace != "/none").then(|| past(RollbackKind::To(SnapshotId::new("one").unwrap())))
    };
    InitWorkspace => |request: InitWorkspace| match request.workspace.as_str() {
        "/p" => WorkspaceId::new("ws-000001").unwrap(),
        other => panic!("{other}"),
    };
    CheckStore => |request: CheckStore| CheckReport {
        snapshots: 12,
        objects: 3,
        bytes_read: u64::from(request.read_data),
        damage: vec!["a pack".to_owned()],
    };
    ListTrash => |request: ListTrash| {
        let path = format!("/home/{}", request.peer.uid).into();
        let workspace = Workspace { id: WorkspaceId::new("ws-000001").unwrap(), path, owner: 1001 };
        let snapshot = TrashedTree::Snapshot {
            id: SnapshotId::new("one").unwrap(),
            message: Some("why".to_owned()),
        };
        let before = TrashedTree::Before(RollbackKind::To(SnapshotId::new("two").unwrap()));
        [(4, snapshot), (5, before)].map(|(item, tree)| Trashed {
            item,
            workspace: workspace.clone(),
            tree,
            created_at: WallTime(1_000_000_000),
            until: WallTime(2_000_000_000),
            missing: item == 5,
        }).to_vec()
    };
    RestoreTrashed => |RestoreTrashed { workspace, item, id, pin, .. }| {
        SnapshotId::new(format!("{} {item} {id:?} {pin}", workspace.replace('/', ":"))).unwrap()
    };
    StoreSize => |_| ckpt::StoreSize { pack_bytes: 1, packs: 2, index_bytes: 3, objects: 4 };
}

impl Handler<Undelivered<UndoRollback>> for Stub {
    type Result = ();
    fn handle(&mut self, lost: Undelivered<UndoRollback>, _: &mut Context<Self>) {
        self.lost.as_ref().expect("an answer got lost").send(lost).unwrap();
    }
}

fn past(kind: RollbackKind) -> PastRollback {
    PastRollback { operation: "0a1b".to_owned(), at: WallTime(1_000_000_000), kind }
}

/// What this API never asks.
macro_rules! never {
    ($($message:ty)+) => {$(
        impl Handler<$message> for Stub {
            type Result = <$message as actix::Message>::Result;
            fn handle(&mut self, _: $message, _: &mut Context<Self>) -> Self::Result {
                unreachable!()
            }
        }
    )+};
}
never!(WorkspaceStatus Cleanup GetConfig ReloadConfig RecoverWorkspace);
never!(KeepTree RewindTree ListKept ForgetTree);
never!(Undelivered<CreateCheckpoint> Undelivered<DeleteSnapshot> Undelivered<RecoverWorkspace>);

/// Sends one request in the name of user 1001, or of nobody.
async fn send(
    refusal: Option<Failure>,
    peer: Option<Peer>,
    request: TestRequest,
) -> (StatusCode, String, Value) {
    let ckpt = ckpt(Stub { refusal, lost: None });
    ask(scope(Services { ckpt, ..services(None) }), peer, request).await
}

async fn ask(scope: Scope, peer: Option<Peer>, request: TestRequest) -> (StatusCode, String, Value) {
    let app = App::new().service(scope).wrap_fn(move |request, next| {
        if let Some(peer) = &peer {
            request.extensions_mut().insert(peer.clone());
        }
        next.call(request)
    });
    let response = call_service(&init_service(app).await, request.to_request()).await;
    let status = response.status();
    let content_type = response.headers().get(CONTENT_TYPE).unwrap().to_str().unwrap().to_owned();
    let body = read_body(response).await.try_into_bytes().unwrap();
    (status, content_type, serde_json::from_slice(&body).unwrap())
}

fn somebody() -> Option<Peer> {
    Some(Peer { uid: 1001, gid: 1001, groups: Vec::new() })
}

#[track_caller]
fn assert_json((status, content_type, body): (StatusCode, String, Value), expected: u16, value: &Value) {
    assert_eq!((status.as_u16(), &body), (expected, value));
    assert_eq!(content_type, "application/json");
}

fn get(path: &str) -> TestRequest {
    TestRequest::get().uri(path)
}

fn post(path: &str, body: &Value) -> TestRequest {
    TestRequest::post().uri(path).set_json(body)
}

#[actix_web::test]
async fn each_route_asks_the_actors_and_shows_their_answer() {
    let ask = |request| send(None, somebody(), request);
    assert_json(
        ask(post("/api/v1/ckpt/undo", &json!({"workspace": "/p"}))).await,
        200,
        &json!({"workspace": "ws-000001", "path": "/p", "changed": 4, "warnings": [], "rollback": {
            "operation": "0a1b", "at": "1970-01-01T00:00:01Z", "snapshot": "one", "undo": false,
        }}),
    );
    let (created_at, until) = ("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z");
    assert_json(
        ask(get("/api/v1/ckpt/trash")).await,
        200,
        &json!({"items": [
            {"item": 4, "path": "/home/1001", "snapshot": "one", "message": "why",
             "created_at": created_at, "until": until, "missing": false},
            {"item": 5, "path": "/home/1001", "snapshot": null,
             "message": "the tree before the rollback to two",
             "created_at": created_at, "until": until, "missing": true},
        ]}),
    );
    let restore = |body| ask(post("/api/v1/ckpt/trash/restore", &body));
    let restored = restore(json!({"workspace": "/p", "item": 7})).await;
    assert_json(restored, 200, &json!({"snapshot": ":p 7 None false"}));
    let restored = restore(json!({"workspace": "/p", "item": 7, "id": "x", "pin": true})).await;
    assert_json(restored, 200, &json!({"snapshot": ":p 7 Some(\"x\") true"}));
    assert_json(
        ask(get("/api/v1/ckpt/workspaces/%2Fp/last-rollback")).await,
        200,
        &json!({"snapshot": "one", "undone": null, "changed": 3, "omitted": 7, "warnings": [{
            "path": "a",
            "kind": "late-write",
            "text": "was written to during the rollback; undo brings the newer content back",
        }], "rollback": {"operation": "0a1b", "at": created_at, "snapshot": "one", "undo": false}}),
    );
    assert_json(ask(get("/api/v1/ckpt/workspaces/%2Fnone/last-rollback")).await, 200, &Value::Null);
    assert_json(
        ask(post("/api/v1/ckpt/init", &json!({"path": "/p"}))).await,
        200,
        &json!({"workspace": "ws-000001"}),
    );
    let meant = ask(post("/api/v1/ckpt/undo", &json!({"workspace": "/p", "operation": "0c"}))).await;
    assert_eq!(meant.2["rollback"]["operation"], "0c");
    let undone = ask(get("/api/v1/ckpt/workspaces/ws-000001/last-rollback")).await;
    assert_eq!(undone.2["snapshot"], Value::Null);
    assert_eq!(undone.2["undone"]["undo"], Value::Bool(true));
    assert_json(
        ask(post("/api/v1/ckpt/check", &json!({"read_data": true}))).await,
        200,
        &json!({"snapshots": 12, "objects": 3, "bytes_read": 1, "damage": ["a pack"]}),
    );
    assert_json(
        ask(post("/api/v1/ckpt/check", &json!({}))).await,
        200,
        &json!({"snapshots": 12, "objects": 3, "bytes_read": 0, "damage": ["a pack"]}),
    );
    assert_json(
        ask(get("/api/v1/ckpt/store")).await,
        200,
        &json!({"pack_bytes": 1, "packs": 2, "index_bytes": 3, "objects": 4}),
    );
}

#[actix_web::test]
async fn an_undo_whose_client_goes_away_is_carried_out_and_its_answer_called_undelivered() {
    let (sender, mut lost) = mpsc::unbounded_channel();
    let ckpt = ckpt(Stub { refusal: None, lost: Some(sender) });
    let scope = scope(Services { ckpt, ..services(None) });
    let mut asked = Box::pin(ask(scope, somebody(), post("/api/v1/ckpt/undo", &json!({"workspace": "/p"}))));
    // As far as it gets without the actors.
    for _ in 0..8 {
        assert!(std::future::poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await.is_pending());
    }
    drop(asked);
    let Undelivered { request, answer } = lost.recv().await.unwrap();
    assert_eq!((request.workspace.as_str(), answer.outcome.changed), ("/p", 4));
}

#[actix_web::test]
async fn names_in_a_path_are_decoded_once_and_only_if_they_are_text() {
    for (workspace, snapshot, shown) in [
        ("ws-000001", "one", "ws-000001|one"),
        ("%2Fhome%2Fme%2Fproject", "before%20the%20refactor", ":home:me:project|before the refactor"),
        ("%2Fgr%C3%B6%C3%9Fe", "%E2%9C%93", ":größe|✓"),
        ("%2Fa%2541", "a+b%2Bc", ":a%41|a+b+c"),
    ] {
        let path = format!("/api/v1/ckpt/workspaces/{workspace}/snapshots/{snapshot}/warnings");
        let (status, _, body) = send(None, somebody(), get(&path)).await;
        assert_eq!((status, &body["warnings"][0]["path"]), (StatusCode::OK, &json!(shown)), "{path}");
        assert_eq!(body["warnings"][0]["kind"], "unreadable");
    }
    for bad in ["%2Fa%FF/snapshots/one", "ws-000001/snapshots/%C3"] {
        let (status, _, body) =
            send(None, somebody(), get(&format!("/api/v1/ckpt/workspaces/{bad}/warnings"))).await;
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")), "{bad}");
    }
}

#[actix_web::test]
async fn a_request_of_nobody_is_forbidden_on_every_route() {
    for Endpoint { method, path, .. } in endpoints() {
        let request = TestRequest::default().method(method).uri(&format!("/api/v1{path}"));
        let (status, _, body) = send(None, None, request.set_json(json!({"workspace": "/p"}))).await;
        assert_eq!((status, &body["code"]), (StatusCode::FORBIDDEN, &json!("Forbidden")), "{path}");
    }
}

#[actix_web::test]
async fn what_is_not_exactly_a_request_is_refused_in_json() {
    let long = "x".repeat(MAX_BODY);
    let bodies = [
        "",
        "{",
        "[]",
        "{}",
        "null",
        r#"{"workspace": 1}"#,
        r#"{"workspace": "/p", "force": true}"#,
        r#"{"workspace": "/p"} trailing"#,
        &format!(r#"{{"workspace": "{long}"}}"#),
    ];
    for body in bodies {
        let request = TestRequest::post()
            .uri("/api/v1/ckpt/undo")
            .insert_header((CONTENT_TYPE, "application/json"))
            .set_payload(body.to_owned());
        let (status, _, report) = send(None, somebody(), request).await;
        assert_eq!((status, &report["code"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")), "{body:.40}");
    }
    let as_text = TestRequest::post().uri("/api/v1/ckpt/undo").set_payload(r#"{"workspace": "/p"}"#);
    assert_eq!(send(None, somebody(), as_text).await.0, StatusCode::BAD_REQUEST);
}

#[actix_web::test]
async fn where_there_is_no_route_the_answer_says_so_in_json() {
    for path in
        ["/api/v1", "/api/v1/", "/api/v1/ckpt", "/api/v1/ckpt/undo/", "/api/v1/ckpt/workspaces/a//warnings"]
    {
        let (status, _, body) = send(None, somebody(), get(path)).await;
        assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!("NotFound")), "{path}");
    }
    let (status, _, body) = send(None, somebody(), get("/api/v1/ckpt/undo")).await;
    assert_eq!((status, &body["code"]), (StatusCode::METHOD_NOT_ALLOWED, &json!("MethodNotAllowed")));
}

#[actix_web::test]
async fn every_error_code_has_its_status_and_keeps_its_text() {
    for code in Code::ALL {
        let status = match code {
            Code::WorkspaceNotFound | Code::SnapshotNotFound => 404,
            Code::InvalidPath => 400,
            Code::BtrfsError | Code::IoError | Code::InternalError => 500,
            Code::DiskSpaceInsufficient => 507,
            _ => 409,
        };
        let failure = Failure { code, message: "what happened".to_owned() };
        let answer = send(Some(failure), somebody(), get("/api/v1/ckpt/store")).await;
        assert_json(answer, status, &json!({"code": code.to_string(), "message": "what happened"}));
    }
}

#[actix_web::test]
async fn the_document_describes_exactly_the_routes_that_exist() {
    let (status, _, document) = send(None, somebody(), get("/api/v1/openapi.json")).await;
    assert_eq!(status, StatusCode::OK);
    let described: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let existing = endpoints().iter().map(|one| (one.path.to_string(), one.method.to_string())).collect();
    assert_eq!(described, existing);
    assert_eq!(document["servers"], json!([{"url": "/api/v1"}]));
}

#[actix_web::test]
async fn the_document_describes_every_field_of_every_answer() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let check = |schema: &str, value: &Value| {
        let described = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        let described: BTreeSet<_> = described.keys().collect();
        assert_eq!(described, value.as_object().unwrap().keys().collect(), "{schema}");
    };
    let ask = async |request| send(None, somebody(), request).await.2;
    snapshots::described(check).await;
    let warnings = ask(get("/api/v1/ckpt/workspaces/a/snapshots/b/warnings")).await;
    check("WarningsReport", &warnings);
    check("WarningReport", &warnings["warnings"][0]);
    let undone = ask(post("/api/v1/ckpt/undo", &json!({"workspace": "/p"}))).await;
    check("UndoReport", &undone);
    check("RollbackReport", &undone["rollback"]);
    let trash = ask(get("/api/v1/ckpt/trash")).await;
    check("TrashReport", &trash);
    check("TrashedReport", &trash["items"][0]);
    let restore = crate::ckpt::RestoreRequest { workspace: "/p".to_owned(), item: 1, id: None, pin: false };
    check("RestoreRequest", &json!(restore));
    check("RestoredReport", &ask(post("/api/v1/ckpt/trash/restore", &json!(restore))).await);
    check("LastRollbackReport", &ask(get("/api/v1/ckpt/workspaces/a/last-rollback")).await);
    check("CheckSummary", &ask(post("/api/v1/ckpt/check", &json!({}))).await);
    check("SizeReport", &ask(get("/api/v1/ckpt/store")).await);
    check("ErrorReport", &ask(get("/api/v1/nothing")).await);
    sessions::described(check).await;
    check("DirectoriesRequest", &json!(directories::DirectoriesRequest::default()));
    let request = post("/api/v1/directories", &json!({"path": "/"}));
    check("DirectoriesReport", &send(None, Some(Peer::own()), request).await.2);
    check("UndoRequest", &json!(ckpt_requests().0));
    let registered = crate::ckpt::InitRequest { path: "/p".to_owned() };
    check("InitRequest", &json!(registered));
    check("InitReport", &ask(post("/api/v1/ckpt/init", &json!(registered))).await);
    check("CheckRequest", &json!(ckpt_requests().1));
}

fn ckpt_requests() -> (crate::ckpt::UndoRequest, crate::ckpt::CheckRequest) {
    (
        crate::ckpt::UndoRequest { workspace: String::new(), operation: Some(String::new()) },
        crate::ckpt::CheckRequest::default(),
    )
}
