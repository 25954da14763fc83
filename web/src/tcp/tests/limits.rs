//! How much a client may send, how slowly, and how many there may be.

use serde_json::json;

use super::*;

fn call(server: &Running, framing: &str) -> String {
    format!("POST /isolation-pod/api HTTP/1.1\r\n{}{}{framing}\r\n", server.host(), server.shown_token())
}

/// A request of so many bytes.
fn padded(length: usize) -> String {
    let (before, after) = (r#"{"method": "listExports", "args": {"x": ""#, r#""}}"#);
    format!("{before}{}{after}", "x".repeat(length - before.len() - after.len()))
}

fn chunks(body: &str, of: usize) -> String {
    let chunk = |part: &[u8]| format!("{:x}\r\n{}\r\n", part.len(), str::from_utf8(part).unwrap());
    body.as_bytes().chunks(of).map(chunk).collect::<String>() + "0\r\n\r\n"
}

const LIMIT: usize = cofferdam_protocol::host::MAX_BODY;

#[actix_web::test]
async fn a_body_has_exactly_the_limit_at_most_however_its_length_is_told() {
    let server = start().await;
    for (length, status) in [(LIMIT, 200), (LIMIT + 1, 413)] {
        let body = padded(length);
        let told = call(&server, &format!("Connection: close\r\nContent-Length: {length}\r\n"));
        let answer = Answer::of(&server.raw(told + &body).await);
        assert_eq!(answer.status, status, "{length}");
        for of in [1000, 65536, length] {
            let head = call(&server, "Connection: close\r\nTransfer-Encoding: chunked\r\n");
            let answer = Answer::of(&server.raw(head + &chunks(&body, of)).await);
            assert_eq!(answer.status, status, "{length} in chunks of {of}");
            assert_eq!(answer.json()["ok"], json!(status == 200));
        }
    }
}

#[actix_web::test]
async fn a_body_that_says_it_is_too_long_is_not_waited_for() {
    let server = start().await;
    for length in [LIMIT as u64 + 1, 1 << 40, u64::MAX] {
        let answer = server.raw(call(&server, &format!("Content-Length: {length}\r\n"))).await;
        assert_eq!(Answer::of(&answer).refusal(), (413, "BAD_REQUEST".to_owned()), "{length}");
    }
    // Nor is it where the token is missing.
    let head =
        format!("POST /isolation-pod/api HTTP/1.1\r\n{}Content-Length: {LIMIT}\r\n\r\n", server.host());
    assert_eq!(Answer::of(&server.raw(head).await).refusal(), (403, "FORBIDDEN".to_owned()));
}

#[actix_web::test]
async fn a_chunked_body_without_an_end_is_cut_off() {
    let server = start().await;
    let mut stream = server.connect().await;
    stream.write_all(call(&server, "Transfer-Encoding: chunked\r\n").as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65536));
    let until_it_is_closed = async { while stream.write_all(chunk.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(60), until_it_is_closed).await.expect("it goes on reading");
}

#[actix_web::test]
async fn heads_and_bodies_that_come_slowly_are_given_up() {
    let server = start_with(Limits { head: SHORT, ..Limits::default() }, SHORT);
    for head in ["", "GET /isolation", "GET /isolation-pod/status HTTP/1.1\r\nHost: 127"] {
        let answer = server.raw(head).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{head}: {answer}");
    }
    for framing in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let answer = server.raw(call(&server, framing) + "1").await;
        assert_eq!(Answer::of(&answer).refusal(), (408, "BAD_REQUEST".to_owned()), "{framing}");
        let control = call(&server, framing).replace("/isolation-pod/api", "/api/v1/pod/getState");
        let answer = server.raw(control + "1").await;
        assert_eq!(Answer::of(&answer).refusal(), (408, "BadRequest".to_owned()), "{framing}");
    }
}

#[actix_web::test]
async fn bytes_that_are_no_request_end_the_connection() {
    let server = start().await;
    let status = format!("GET /isolation-pod/status HTTP/1.1\r\n{}", server.host());
    let api = call(&server, "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n");
    for bytes in [
        "\u{16}\u{3}\u{1}\u{2}".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
        format!("{status}Content-Length: -1\r\n\r\n"),
        format!("{status}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        format!("{status}no colon\r\n\r\n"),
        format!("{status}X: {}\r\n\r\n", "x".repeat(1 << 20)),
        api + "0\r\n\r\n",
    ] {
        let answer = server.raw(&bytes).await;
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(refused, "{:.60}: {answer}", bytes);
    }
    assert_eq!(server.get("/isolation-pod/status", "").await.status, 200);
}

#[actix_web::test]
async fn a_broken_chunk_is_a_bad_request() {
    let server = start().await;
    let answer = server.raw(call(&server, "Transfer-Encoding: chunked\r\n") + "zz\r\n{}\r\n").await;
    assert_eq!(Answer::of(&answer).status, 400);
}

#[actix_web::test]
async fn requests_that_come_at_once_are_answered_in_order() {
    let server = start().await;
    let status = format!("GET /isolation-pod/status HTTP/1.1\r\n{}\r\n", server.host());
    let body = r#"{"method": "openTask", "args": {"taskId": "a"}}"#;
    let open = call(&server, &format!("Content-Length: {}\r\n", body.len())) + body;
    let last = format!("GET /isolation-pod/last HTTP/1.1\r\n{}Connection: close\r\n\r\n", server.host());
    let answers = server.raw(status + &open + &last).await;
    let wanted = ["\"tokenPrefix\"", "\"resumeError\"", "\"NOT_FOUND\""];
    let places: Vec<_> =
        wanted.iter().map(|text| answers.find(text).unwrap_or_else(|| panic!("{answers}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 3);
}

#[actix_web::test]
async fn a_crowd_that_says_nothing_only_makes_others_wait() {
    let limits = Limits { connections: 4, head: SHORT, ..Limits::default() };
    let server = start_with(limits, SHORT);
    let mut idle = Vec::new();
    for _ in 0..16 {
        idle.push(server.connect().await);
    }
    assert_eq!(server.get("/isolation-pod/status", "").await.status, 200);
    drop(idle);
}
