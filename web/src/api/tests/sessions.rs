//! The routes of sessions.

use cofferdam_actors::session::*;
use cofferdam_protocol::session::{
    ClearRequest, Health, InspectRequest, ListRequest, PrepareClearAllRequest, SessionData, SessionError,
    SessionErrorCode, Skipped, Summary, ValidateRequest,
};

use super::*;
use crate::session::shown::{MessageReport, PreviewReport, PreviewRequest};

/// Answers with what it was asked, or refuses.
pub(super) struct Stub {
    pub(super) refusal: Option<SessionError>,
}

impl Actor for Stub {
    type Context = Context<Self>;
}

macro_rules! stub {
    ($($message:ident => $answer:expr;)+) => {$(
        impl Handler<$message> for Stub {
            type Result = Managed;
            fn handle(&mut self, request: $message, _: &mut Context<Self>) -> Managed {
                match self.refusal.clone() {
                    Some(refusal) => Err(refusal),
                    None => Ok($answer(request.0)),
                }
            }
        }
    )+};
    (never $($message:ty)+) => {$(
        impl Handler<$message> for Stub {
            type Result = <$message as actix::Message>::Result;
            fn handle(&mut self, _: $message, _: &mut Context<Self>) -> Self::Result {
                unreachable!()
            }
        }
    )+};
}
stub! {
    ListSessions => |request: ListRequest| SessionData::List {
        sessions: vec![summary(request.workspace_scope, "a".to_owned())],
        next_cursor: request.cursor,
    };
    InspectSession => |request: InspectRequest| {
        SessionData::Inspect { session: summary(request.workspace_scope, request.session_id) }
    };
    ValidateSession => |request: ValidateRequest| {
        SessionData::Validate { session: summary(request.workspace_scope, request.session_id) }
    };
    PrepareClearAll => |request: PrepareClearAllRequest| SessionData::PrepareClearAll {
        session_ids: vec![request.limit.unwrap_or(0).to_string()],
        protected_session_ids: request.protected_session_ids,
        next_cursor: request.cursor,
    };
    ClearSessions => |request: ClearRequest| SessionData::Clear {
        deleted: request.session_ids,
        skipped: request.protected_session_ids.into_iter().map(|session_id| {
            let error = SessionError::new(SessionErrorCode::ActiveSession, "protected");
            Skipped { session_id, error }
        }).collect(),
    };
}
stub!(never OpenStore LoadSession PersistSession);

fn summary(workspace_scope: String, session_id: String) -> Summary {
    Summary {
        session_id,
        workspace_scope,
        created_at_ms: 1,
        updated_at_ms: 2,
        model: None,
        message_count: 3,
        first_prompt: Some("hello".to_owned()),
        schema_version: Some(1),
        health: Health::Ready,
    }
}

async fn send(
    refusal: Option<SessionError>,
    peer: Option<Peer>,
    request: TestRequest,
) -> (StatusCode, String, Value) {
    let sessions = Stub { refusal }.start().into();
    ask(scope(Services { sessions, ..services(None) }), peer, request).await
}

async fn of_owner(path: &str, body: Value) -> (StatusCode, String, Value) {
    send(None, Some(Peer::own()), post(&format!("/api/v1/session/{path}"), &body)).await
}

fn summary_of(id: &str) -> Value {
    json!({
        "session_id": id, "workspace_scope": "/w", "created_at_ms": 1, "updated_at_ms": 2, "model": null,
        "message_count": 3, "first_prompt": "hello", "schema_version": 1, "health": "ready",
    })
}

#[actix_web::test]
async fn each_route_takes_the_protocols_request_and_answers_with_its_data() {
    assert_json(
        of_owner("list", json!({"action": "list", "workspace_scope": "/w", "limit": 5, "cursor": "c"})).await,
        200,
        &json!({"action": "list", "sessions": [summary_of("a")], "next_cursor": "c"}),
    );
    for action in ["inspect", "validate"] {
        assert_json(
            of_owner(action, json!({"workspace_scope": "/w", "session_id": "b"})).await,
            200,
            &json!({"action": action, "session": summary_of("b")}),
        );
    }
    let plan = json!({"workspace_scope": "/w", "protected_session_ids": ["p"], "limit": 7, "cursor": null});
    assert_json(
        of_owner("prepare-clear-all", plan).await,
        200,
        &json!({
            "action": "prepare_clear_all", "session_ids": ["7"], "protected_session_ids": ["p"],
            "next_cursor": null,
        }),
    );
    let clear = json!({"workspace_scope": "/w", "session_ids": ["a"], "protected_session_ids": ["p"]});
    let (status, _, body) = of_owner("clear", clear).await;
    assert_eq!((status, &body["action"], &body["deleted"]), (StatusCode::OK, &json!("clear"), &json!(["a"])));
    let skipped = &body["skipped"][0];
    assert_eq!((&skipped["session_id"], &skipped["error"]["code"]), (&json!("p"), &json!("active_session")));
}

#[actix_web::test]
async fn they_are_for_this_process_own_user_and_root() {
    let request = || post("/api/v1/session/list", &json!({"workspace_scope": "/w"}));
    let stranger = Peer { uid: Peer::own().uid + 1, gid: 1, groups: Vec::new() };
    let root = Peer { uid: 0, gid: 0, groups: Vec::new() };
    for (peer, status) in [(stranger, 403), (Peer::own(), 200), (root, 200)] {
        assert_eq!(send(None, Some(peer.clone()), request()).await.0.as_u16(), status, "{peer:?}");
    }
}

#[actix_web::test]
async fn a_clear_that_does_not_say_what_is_protected_is_refused() {
    for path in ["clear", "prepare-clear-all"] {
        let (status, _, body) = of_owner(path, json!({"workspace_scope": "/w", "session_ids": ["a"]})).await;
        assert_eq!((status, &body["code"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")), "{path}");
    }
}

#[actix_web::test]
async fn a_workspace_is_named_by_an_absolute_path() {
    let whole = json!({"session_id": "a", "session_ids": [], "protected_session_ids": []});
    for path in ["list", "inspect", "validate", "prepare-clear-all", "clear"] {
        for relative in ["", "w", "./w"] {
            let mut body = whole.clone();
            body["workspace_scope"] = json!(relative);
            let (status, _, body) = of_owner(path, body).await;
            assert_eq!(
                (status, &body["code"]),
                (StatusCode::BAD_REQUEST, &json!("invalid_request")),
                "{path}"
            );
        }
    }
}

#[actix_web::test]
async fn every_code_of_the_protocol_has_its_status_and_keeps_its_text() {
    for code in SessionErrorCode::ALL {
        let status = match code.as_str() {
            "invalid_id" | "invalid_cursor" | "invalid_request" => 400,
            "not_found" => 404,
            "io" => 500,
            _ => 409,
        };
        let request = post("/api/v1/session/list", &json!({"workspace_scope": "/w"}));
        let answer = send(Some(SessionError::new(code, "what happened")), Some(Peer::own()), request).await;
        assert_json(answer, status, &json!({"code": code.as_str(), "message": "what happened"}));
    }
}

/// Compares the document with every request and answer.
pub(super) async fn described(check: impl Fn(&str, &Value)) {
    let ids = || vec!["a".to_owned()];
    let scope = || "/w".to_owned();
    let list = json!(ListRequest { workspace_scope: scope(), limit: 1, cursor: None, all_workspaces: false });
    let one = json!(InspectRequest { workspace_scope: scope(), session_id: "a".to_owned() });
    let plan = json!(PrepareClearAllRequest {
        workspace_scope: scope(),
        protected_session_ids: ids(),
        limit: None,
        cursor: None,
    });
    let clear =
        json!(ClearRequest { workspace_scope: scope(), session_ids: ids(), protected_session_ids: ids() });
    check("ListSessionsRequest", &list);
    check("SessionRequest", &one);
    check("PrepareClearAllRequest", &plan);
    check("ClearSessionsRequest", &clear);
    let listed = of_owner("list", list).await.2;
    check("SessionList", &listed);
    check("SessionSummary", &listed["sessions"][0]);
    check("Session", &of_owner("inspect", one).await.2);
    check("SessionPlan", &of_owner("prepare-clear-all", plan).await.2);
    let cleared = of_owner("clear", clear).await.2;
    check("SessionsCleared", &cleared);
    check("SkippedSession", &cleared["skipped"][0]);
    check("SessionError", &cleared["skipped"][0]["error"]);
    let scopes = of_owner("scopes", json!({})).await.2;
    check("SessionScopes", &scopes);
    check("SessionScope", &scopes["scopes"][0]);
    let request =
        PreviewRequest { workspace_scope: scope(), session_id: "a".to_owned(), offset: 0, limit: None };
    check("SessionPreviewRequest", &json!(request));
    check("SessionPreview", &json!(PreviewReport { messages: Vec::new(), total: 0, offset: 0 }));
    let (role, text, tools) = ("user".to_owned(), String::new(), Vec::new());
    check("SessionMessage", &json!(MessageReport { role, text, truncated: false, tools }));
}
