//! The contract's scope in an application, over a host that only says what it was asked.

pub(crate) mod stub;

use std::sync::Arc;

use actix::Actor;
use actix_web::dev::RequestHead;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, HttpMessage};
use serde_json::{Value, json};

use super::*;
use crate::access::{BrowserAuth, NoBrowser, OwnAddress};
use stub::{Heard, HostStub, args_of_all, failure};

/// Every browser is authenticated.
struct AnyBrowser;

impl BrowserAuth for AnyBrowser {
    fn judge(&self, _: &RequestHead) -> Verdict {
        Verdict::Authenticated
    }
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    #[track_caller]
    fn is_refused(&self, status: u16, code: &str) {
        let body = self.json();
        assert_eq!((self.status.as_u16(), &body["ok"], &body["code"]), (status, &json!(false), &json!(code)));
        assert!(body["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    }
}

fn access(browser: impl BrowserAuth) -> Data<Access> {
    Data::new(Access::new(OwnAddress::new("127.0.0.1:4180".parse().unwrap()), Arc::new(browser)))
}

/// Sends a request, from where it should come if it does not say otherwise.
async fn send(stub: HostStub, access: &Data<Access>, request: TestRequest) -> Answer {
    let app = init_service(App::new().service(scope(stub.start().into(), access.clone()))).await;
    let mut request = request.to_request();
    if !request.headers().contains_key("host") {
        request.headers_mut().insert(HeaderName::from_static("host"), "127.0.0.1:4180".parse().unwrap());
    }
    let response = call_service(&app, request).await;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = String::from_utf8(read_body(response).await.to_vec()).unwrap();
    if status != StatusCode::NOT_FOUND || !body.is_empty() {
        assert_eq!(headers.get("content-type").unwrap(), "application/json; charset=utf-8");
        assert_eq!(headers.get("cache-control").unwrap(), "no-store");
    }
    Answer { status, headers, body }
}

fn call(access: &Access, body: impl Into<Bytes>) -> TestRequest {
    let token = ("x-ipp-token", access.token.reveal());
    TestRequest::post().uri("/isolation-pod/api").insert_header(token).set_payload(body)
}

fn request(method: &str, args: &Value) -> String {
    json!({"method": method, "args": args}).to_string()
}

#[actix_web::test]
async fn the_documents_are_those_of_this_build() {
    let access = access(NoBrowser);
    let mut status =
        send(HostStub::default(), &access, TestRequest::get().uri("/isolation-pod/status")).await.body;
    status = status.replace(&access.token.prefix(), "01234567");
    let success =
        send(HostStub::default(), &access, call(&access, request("cancelTask", &json!({"taskId": "a"}))));
    let refusing = HostStub { refusal: Some(failure()), ..HostStub::default() };
    let failed = send(refusing, &access, call(&access, request("listExports", &json!({}))));
    assert_eq!(status, include_str!("../../../tests/vectors/status.json").trim_end());
    assert_eq!(success.await.body, include_str!("../../../tests/vectors/success.json").trim_end());
    assert_eq!(failed.await.body, include_str!("../../../tests/vectors/failure.json").trim_end());
    // Another document is another build.
    assert_eq!(cofferdam_protocol::host::HOST_BUILD, 2);
}

#[actix_web::test]
async fn each_method_of_the_contract_is_asked_with_its_args_and_answers_flat() {
    let access = access(NoBrowser);
    for (name, args) in args_of_all() {
        let heard = Heard::default();
        let stub = HostStub { heard: heard.clone(), ..HostStub::default() };
        let answer = send(stub, &access, call(&access, request(name, &args))).await;
        let body = answer.json();
        let asked = heard.asked.lock().unwrap().clone();
        assert_eq!(answer.status, StatusCode::OK, "{name}");
        if cofferdam_protocol::host::METHODS.contains(&name) {
            assert_eq!(body["ok"], json!(true), "{name}: {body}");
            let what = name[..1].to_uppercase() + &name[1..];
            assert!(asked.len() == 1 && asked[0].starts_with(&what), "{name}: {asked:?}");
        } else {
            assert_eq!((&body["ok"], &body["code"]), (&json!(false), &json!("UNKNOWN_METHOD")), "{name}");
            assert!(asked.is_empty());
        }
    }
}

#[actix_web::test]
async fn what_the_host_refuses_is_a_success_of_http_with_its_code_text_and_data() {
    let access = access(NoBrowser);
    for (name, args) in args_of_all().into_iter().filter(|(name, _)| table::of_contract(name).is_some()) {
        let stub = HostStub { refusal: Some(failure()), ..HostStub::default() };
        let answer = send(stub, &access, call(&access, request(name, &args))).await;
        let expected =
            json!({"ok": false, "code": "TASK_BUSY", "message": "it is busy", "data": {"retryAfterMs": 5}});
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, expected), "{name}");
    }
}

#[actix_web::test]
async fn unknown_methods_and_args_that_are_none_of_a_method_are_business_errors() {
    let access = access(NoBrowser);
    for (body, code) in [
        (r#"{"method": "nothing"}"#, "UNKNOWN_METHOD"),
        (r#"{"method": ""}"#, "UNKNOWN_METHOD"),
        (r#"{"method": "getstate"}"#, "UNKNOWN_METHOD"),
        (r#"{"method": "getTranscript", "args": {"taskId": "a"}}"#, "UNKNOWN_METHOD"),
        (r#"{"method": "openTask"}"#, "BAD_REQUEST"),
        (r#"{"method": "openTask", "args": null}"#, "BAD_REQUEST"),
        (r#"{"method": "openTask", "args": []}"#, "BAD_REQUEST"),
        (r#"{"method": "openTask", "args": "a"}"#, "BAD_REQUEST"),
        (r#"{"method": "openTask", "args": {"taskId": 5}}"#, "BAD_REQUEST"),
        (r#"{"method": "setConfig", "args": {"patch": []}}"#, "BAD_REQUEST"),
        (r#"{"method": "cleanup", "args": {"taskId": "a", "scope": "everything"}}"#, "BAD_REQUEST"),
    ] {
        let answer = send(HostStub::default(), &access, call(&access, body)).await;
        answer.is_refused(200, code);
    }
    for body in [r#"{"method": "getState"}"#, r#"{"method": "listExports", "args": null, "more": 1}"#] {
        assert_eq!(send(HostStub::default(), &access, call(&access, body)).await.json()["ok"], json!(true));
    }
}

#[actix_web::test]
async fn bodies_that_are_no_request_are_refused_by_http() {
    let access = access(NoBrowser);
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"5",
        b"\"getState\"",
        b"{}",
        br#"{"method": 5}"#,
        br#"{"method": null}"#,
        br#"{"args": {}}"#,
        br#"{"method": "getState"} {}"#,
        b"{\"method\": \"getState\", \"x\": \"\xff\"}",
    ] {
        let answer = send(HostStub::default(), &access, call(&access, body.to_vec())).await;
        answer.is_refused(400, "BAD_REQUEST");
    }
}

#[actix_web::test]
async fn a_body_may_have_exactly_the_limit() {
    let access = access(NoBrowser);
    let padded = |length: usize| {
        let body = r#"{"method": "getState", "args": {"x": ""}}"#;
        body.replace(r#""""#, &format!("\"{}\"", "x".repeat(length - body.len())))
    };
    let limit = cofferdam_protocol::host::MAX_BODY;
    let within = send(HostStub::default(), &access, call(&access, padded(limit))).await;
    assert_eq!((within.status.as_u16(), &within.json()["ok"]), (200, &json!(true)));
    send(HostStub::default(), &access, call(&access, padded(limit + 1))).await.is_refused(413, "BAD_REQUEST");
}

#[actix_web::test]
async fn only_the_whole_token_is_the_token() {
    let access = access(NoBrowser);
    let token = access.token.reveal();
    let other = Access::new(access.own.clone(), Arc::new(NoBrowser)).token.reveal();
    let wrong = [
        vec![],
        vec![String::new()],
        vec![token[..8].to_owned()],
        vec![token[..35].to_owned()],
        vec![format!("{token}0")],
        vec![token.to_uppercase()],
        vec![format!("Bearer {token}")],
        vec![other],
        vec![token.clone(), token.clone()],
        vec![token.clone(), "x".to_owned()],
    ];
    for shown in wrong {
        let mut api = TestRequest::post().uri("/isolation-pod/api").set_payload(r#"{"method": "getState"}"#);
        for one in &shown {
            api = api.append_header(("x-ipp-token", one.as_str()));
        }
        send(HostStub::default(), &access, api).await.is_refused(403, "FORBIDDEN");
    }
    // Whatever the page calls what it sends.
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/json"] {
        let api = call(&access, r#"{"method": "getState"}"#).insert_header(("content-type", content_type));
        assert_eq!(send(HostStub::default(), &access, api).await.status, StatusCode::OK);
    }
}

#[actix_web::test]
async fn what_is_asked_first_decides_where_a_request_comes_from_path_method_token_length_body() {
    let access = access(NoBrowser);
    let ask = async |request: TestRequest| send(HostStub::default(), &access, request).await;
    let long = "x".repeat(cofferdam_protocol::host::MAX_BODY + 1);
    let api = || TestRequest::post().uri("/isolation-pod/api");
    let foreign = TestRequest::delete().uri("/isolation-pod/nothing").insert_header(("host", "evil.example"));
    ask(foreign).await.is_refused(403, "FORBIDDEN");
    ask(TestRequest::delete().uri("/isolation-pod/nothing")).await.is_refused(404, "NOT_FOUND");
    ask(TestRequest::put().uri("/isolation-pod/api").set_payload(long.clone()))
        .await
        .is_refused(405, "METHOD_NOT_ALLOWED");
    ask(api().set_payload(long.clone())).await.is_refused(403, "FORBIDDEN");
    ask(call(&access, long)).await.is_refused(413, "BAD_REQUEST");
    ask(call(&access, "{")).await.is_refused(400, "BAD_REQUEST");
}

#[actix_web::test]
async fn each_path_has_one_http_method() {
    let access = access(AnyBrowser);
    for (path, allowed) in [("status", "GET"), ("bootstrap", "GET"), ("api", "POST")] {
        for method in ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "BREW"] {
            let request = TestRequest::default()
                .uri(&format!("/isolation-pod/{path}"))
                .method(Method::from_bytes(method.as_bytes()).unwrap());
            let answer = send(HostStub::default(), &access, request).await;
            if method != allowed {
                answer.is_refused(405, "METHOD_NOT_ALLOWED");
                assert_eq!(answer.headers.get("allow").unwrap(), allowed);
            } else {
                assert_ne!(answer.status.as_u16(), 405, "{method} {path}");
            }
        }
    }
}

#[actix_web::test]
async fn paths_are_compared_as_they_are_sent() {
    let access = access(AnyBrowser);
    for path in [
        "/isolation-pod",
        "/isolation-pod/",
        "/isolation-pod/status/",
        "/isolation-pod//status",
        "//isolation-pod/status",
        "/isolation-pod/./status",
        "/isolation-pod/api/../status",
        "/isolation-pod/%73tatus",
        "/isolation-pod%2Fstatus",
        "/%69solation-pod/status",
        "/isolation-pod/status%00",
        "/isolation-pod/status;x",
        "/isolation-pod/Status",
        "/ISOLATION-POD/status",
        "/isolation-pod/statuses",
        "/isolation-podstatus",
        "/isolation-pod/api/getState",
    ] {
        let answer = send(HostStub::default(), &access, TestRequest::get().uri(path)).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
    let answer =
        send(HostStub::default(), &access, TestRequest::get().uri("/isolation-pod/status?x=y")).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[actix_web::test]
async fn the_token_is_given_to_authenticated_pages_alone() {
    let bootstrap = || TestRequest::get().uri("/isolation-pod/bootstrap");
    let unknown = access(NoBrowser);
    send(HostStub::default(), &unknown, bootstrap()).await.is_refused(401, "UNAUTHORIZED");
    let known = access(AnyBrowser);
    let answer = send(HostStub::default(), &known, bootstrap()).await;
    assert_eq!(answer.json(), json!({"ok": true, "token": known.token.reveal()}));
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("host", "evil.example:4180"),
    ] {
        let answer = send(HostStub::default(), &known, bootstrap().insert_header((name, value))).await;
        answer.is_refused(403, "FORBIDDEN");
        assert!(!answer.body.contains(&known.token.reveal()));
    }
}

#[actix_web::test]
async fn no_other_answer_has_the_token_and_none_invites_other_origins() {
    let access = access(AnyBrowser);
    let refusing = || HostStub { refusal: Some(failure()), ..HostStub::default() };
    let mut answers = vec![
        send(HostStub::default(), &access, TestRequest::get().uri("/isolation-pod/status")).await,
        send(HostStub::default(), &access, TestRequest::post().uri("/isolation-pod/api")).await,
        send(HostStub::default(), &access, TestRequest::put().uri("/isolation-pod/status")).await,
        send(HostStub::default(), &access, TestRequest::get().uri("/isolation-pod/other")).await,
        send(HostStub::default(), &access, call(&access, "{")).await,
    ];
    for (name, args) in args_of_all() {
        answers.push(send(HostStub::default(), &access, call(&access, request(name, &args))).await);
        answers.push(send(refusing(), &access, call(&access, request(name, &args))).await);
    }
    for Answer { headers, body, .. } in answers {
        assert!(!body.contains(&access.token.reveal()), "{body}");
        assert!(headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
    }
}
