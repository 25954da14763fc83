//! Pages, names and programs of others.

use std::io::{Read, Write};

use cofferdam_storage::peer::Peer;
use serde_json::json;

use super::*;

/// Requests that would be answered with 200 if they came from where they should: a line, header lines, a body.
async fn good(server: &Running) -> Vec<(&'static str, String, &'static str)> {
    let (token, cookie) = (server.shown_token(), server.signed_in().await);
    let state = r#"{"method": "getState"}"#;
    vec![
        ("GET /isolation-pod/status", String::new(), ""),
        ("GET /isolation-pod/bootstrap", cookie.clone(), ""),
        ("POST /isolation-pod/api", token.clone(), state),
        ("POST /isolation-pod/api", format!("{token}Content-Type: text/plain\r\n"), state),
        ("GET /api/v1/openapi.json", cookie.clone(), ""),
        ("GET /api/v1/openapi.json", token.clone(), ""),
        ("POST /api/v1/pod/getState", token, "{}"),
        ("GET /", cookie, ""),
    ]
}

#[actix_web::test]
async fn only_requests_to_our_own_names_are_looked_at() {
    let server = start().await;
    let port = server.address.port();
    for (line, headers, body) in good(&server).await {
        for own in ["127.0.0.1", "localhost", "[::1]"] {
            let answer = server.ask(line, &format!("Host: {own}:{port}\r\n{headers}"), body).await;
            assert_eq!(answer.status, 200, "{line} {own}: {answer:?}");
        }
        for other in [
            format!("evil.example:{port}"),
            format!("127.0.0.1.evil:{port}"),
            format!("127.0.0.1:{}", port - 1),
            "127.0.0.1".to_owned(),
            "localhost".to_owned(),
            String::new(),
        ] {
            let answer = server.ask(line, &format!("Host: {other}\r\n{headers}"), body).await;
            assert_eq!(answer.refusal().0, 403, "{line} {other}");
            assert!(["FORBIDDEN", "Forbidden"].contains(&answer.refusal().1.as_str()), "{line} {other}");
        }
        // HTTP/1.1 demands exactly one: the server itself refuses.
        for none_or_two in
            [String::new(), server.host() + &server.host(), format!("Host: evil\r\n{}", server.host())]
        {
            assert_eq!(server.ask(line, &(none_or_two + &headers), body).await.status, 400, "{line}");
        }
        let old = format!("{line} HTTP/1.0\r\n{headers}Content-Length: 0\r\n\r\n");
        assert_eq!(Answer::of(&server.raw(old).await).refusal().0, 403, "{line}");
    }
    assert!(server.heard.asked.lock().unwrap().iter().all(|asked| asked.starts_with("GetState")));
}

#[actix_web::test]
async fn a_whole_address_in_the_first_line_has_to_be_ours_too() {
    let server = start().await;
    let ask = async |address: &str| {
        let line = format!("GET {address}/isolation-pod/status");
        server.ask(&line, &server.host(), "").await.status
    };
    assert_eq!(ask(&format!("http://{}", server.address)).await, 200);
    for other in ["http://evil.example", "http://127.0.0.1", "http://localhost:1"] {
        assert_eq!(ask(other).await, 403, "{other}");
    }
    let connect = server.ask("CONNECT evil.example:443", &server.host(), "").await;
    assert_eq!(connect.status, 403);
    assert_eq!(server.ask("OPTIONS *", &server.host(), "").await.refusal(), (404, "NOT_FOUND".to_owned()));
}

#[actix_web::test]
async fn pages_of_other_origins_are_refused_whatever_they_show() {
    let server = start().await;
    let port = server.address.port();
    for (line, headers, body) in good(&server).await {
        let headers = server.host() + &headers;
        let own = server.ask(line, &format!("{headers}{}", server.origin()), body).await;
        assert_eq!(own.status, 200, "{line}: {own:?}");
        for other in [
            "Origin: null".to_owned(),
            "Origin: http://evil.example".to_owned(),
            format!("Origin: http://localhost:{port}"),
            format!("Origin: https://127.0.0.1:{port}"),
            "Origin: http://127.0.0.1".to_owned(),
            "Origin: ".to_owned(),
            "Sec-Fetch-Site: cross-site".to_owned(),
            "Sec-Fetch-Site: same-site".to_owned(),
        ] {
            let answer = server.ask(line, &format!("{headers}{other}\r\n"), body).await;
            assert_eq!(answer.refusal().0, 403, "{line} {other}");
        }
    }
}

#[actix_web::test]
async fn the_control_api_wants_the_token_or_the_cookie_and_to_change_things_the_page_s_origin() {
    let server = start().await;
    let cookie = server.signed_in().await;
    let path = "/api/v1/pod/getState";
    for nothing in ["", "x-ipp-token: x\r\n", "Cookie: a=b\r\n"] {
        let answer = server.post(path, nothing, "{}").await;
        assert_eq!(answer.refusal(), (401, "Unauthorized".to_owned()), "{nothing}");
        assert_eq!(server.get("/api/v1/events", nothing).await.refusal().0, 401);
        assert_eq!(server.get("/api/v1/nothing", nothing).await.refusal().0, 401);
    }
    assert_eq!(server.post(path, &cookie, "{}").await.refusal(), (403, "Forbidden".to_owned()));
    assert_eq!(server.post(path, &(cookie.clone() + &server.origin()), "{}").await.status, 200);
    assert_eq!(server.post(path, &server.shown_token(), "{}").await.status, 200);
    assert_eq!(server.get("/api/v1/nothing", &cookie).await.refusal(), (404, "NotFound".to_owned()));
    // The cookie alone is nothing to the contract's API.
    let api =
        server.post("/isolation-pod/api", &(cookie + &server.origin()), r#"{"method": "getState"}"#).await;
    assert_eq!(api.refusal(), (403, "FORBIDDEN".to_owned()));
}

#[actix_web::test]
async fn requests_over_tcp_have_this_process_own_rights_but_get_no_codes() {
    let server = start().await;
    let list = server.post("/api/v1/pod/listExports", &server.shown_token(), "").await;
    assert_eq!(list.json()["ok"], json!(true));
    for headers in [server.shown_token(), server.signed_in().await + &server.origin()] {
        let answer = server.post("/api/v1/console/code", &headers, "").await;
        assert_eq!(answer.refusal(), (403, "Forbidden".to_owned()));
    }
}

#[actix_web::test]
async fn paths_that_only_resemble_ours_are_not_found() {
    let server = start().await;
    let cookie = server.signed_in().await;
    for path in [
        "/isolation-pod",
        "/isolation-pod/",
        "/isolation-pod/status/",
        "//isolation-pod/status",
        "/isolation-pod//status",
        "/isolation-pod/../isolation-pod/status",
        "/isolation-pod/%73tatus",
        "/isolation-pod%2fstatus",
        "/login/",
        "//",
        "/index.html",
        "/%2F",
        "/.",
        "/..",
        "/api",
        "/api/v1x",
    ] {
        let answer = server.get(path, &cookie).await;
        assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
    // Encoded, it leads to the same routes, and to the same checks before them.
    assert_eq!(server.get("/%61pi/v1/ckpt/store", "").await.status, 401);
}

/// What browsers are told with every answer, whatever it is.
#[actix_web::test]
async fn every_answer_is_for_our_own_pages_alone() {
    let server = start().await;
    let mut answers = Vec::new();
    let bad =
        [("GET /nothing", ""), ("PUT /", ""), ("GET /login?code=x", ""), ("GET /isolation-pod/api", "")];
    let requests = good(&server).await.into_iter();
    let refused = bad.map(|(line, body)| (line, String::new(), body));
    for (line, headers, body) in requests.chain(refused) {
        answers.push(server.ask(line, &format!("{}{headers}", server.host()), body).await);
        answers.push(server.ask(line, &format!("Host: evil\r\n{headers}"), body).await);
        answers.push(
            server.ask(line, &format!("{}{headers}Origin: http://evil\r\n", server.host()), body).await,
        );
    }
    for answer in answers {
        assert!(!answer.head.contains("access-control-"), "{answer:?}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "deny"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}

/// The answer to a request without a body that another user's program sends, read until the server closes.
async fn ask_as_another_user(server: &Running, line: &str, headers: &str) -> Option<Answer> {
    let (address, request) = (server.address, format!("{line} HTTP/1.1\r\n{}{headers}\r\n", server.host()));
    let asked = tokio::task::spawn_blocking(move || {
        let stranger = Peer { uid: 54321, gid: 54321, groups: Vec::new() };
        // A socket is of the user for whom its thread acts when it is made.
        let rights = stranger.enter().ok()?;
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        drop(rights);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // One that resets the connection has closed, too.
        let _ = stream.read_to_string(&mut answer);
        Some(Answer::of(&answer))
    });
    asked.await.unwrap()
}

#[actix_web::test]
async fn programs_of_other_users_get_the_status_and_nothing_else_whatever_they_show() {
    let server = start().await;
    let Some(status) = ask_as_another_user(&server, "GET /isolation-pod/status", "").await else {
        cofferdam_tests::skipped(format_args!("only root may take another user's rights"));
        return;
    };
    assert_eq!((status.status, status.header("connection")), (200, Some("close")));
    let everything = server.shown_token() + &server.signed_in().await + &server.origin();
    let login = server.login();
    for line in [
        "GET /".to_owned(),
        format!("GET {login}"),
        "GET /nothing".to_owned(),
        "GET /isolation-pod/bootstrap".to_owned(),
        "GET /isolation-pod/status/".to_owned(),
        "GET /isolation-pod/%73tatus".to_owned(),
        "POST /isolation-pod/api".to_owned(),
        "GET /api/v1/openapi.json".to_owned(),
        "GET /%61pi/v1/ckpt/store".to_owned(),
        "GET /api/v1/events".to_owned(),
        "POST /api/v1/pod/getState".to_owned(),
    ] {
        let answer = ask_as_another_user(&server, &line, &everything).await.unwrap();
        assert_eq!(answer.refusal().0, 403, "{line}: {answer:?}");
        assert!(
            answer.body.contains("own user") && !answer.body.contains(&server.token),
            "{line}: {answer:?}"
        );
    }
    assert!(
        server.heard.asked.lock().unwrap().is_empty() && server.heard.listeners.lock().unwrap().is_empty()
    );
    assert_eq!(server.get(&login, "").await.status, 303, "the code is not spent");
}

#[actix_web::test]
async fn a_wrong_method_is_answered_with_the_right_ones() {
    let server = start().await;
    let token = server.shown_token();
    for (path, allow) in [("/api/v1/ckpt/undo", "post"), ("/api/v1/events", "get")] {
        let answer = server.ask(&format!("DELETE {path}"), &(server.host() + &token), "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{path}");
    }
}
