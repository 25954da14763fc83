//! Signing in, the page, and where the token goes.

use std::io;
use std::sync::{Mutex, OnceLock};

use super::*;
use crate::host::tests::stub::args_of_all;

#[actix_web::test]
async fn a_code_signs_one_browser_in_once() {
    let server = start().await;
    let path = &server.login();
    let answer = server.get(path, "").await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap();
    let (cookie, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "httponly; samesite=strict; path=/; max-age=604800");
    let (name, value) = cookie.split_once('=').unwrap();
    assert_eq!((name, value.len()), (format!("cofferdam-{}", server.address.port()).as_str(), 64));
    let cookie = format!("Cookie: other=1; {cookie}; more=2\r\n");
    assert_eq!(server.get("/", &cookie).await.status, 200);
    for again in [path.as_str(), "/login", "/login?code=", "/login?code=0", "/login?x=1&code=0"] {
        let answer = server.get(again, "").await;
        assert_eq!((answer.status, answer.header("set-cookie")), (401, None), "{again}");
        assert!(answer.body.contains("cofferdam console"), "{}", answer.body);
    }
    for method in ["HEAD", "POST", "PUT", "DELETE"] {
        let path = &server.login();
        let answer = server.ask(&format!("{method} {path}"), &server.host(), "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("get")), "{method}");
        assert_eq!(server.get(path, "").await.status, 303, "it is not spent by {method}");
    }
}

#[actix_web::test]
async fn the_page_is_for_those_who_signed_in_and_carries_the_token_in_one_script() {
    let server = start().await;
    for nobody in [String::new(), format!("Cookie: cofferdam-{}=x\r\n", server.address.port())] {
        let answer = server.get("/", &nobody).await;
        assert_eq!((answer.status, answer.header("content-type")), (401, Some("text/html; charset=utf-8")));
        assert!(!answer.body.contains(&server.token) && answer.body.contains("cofferdam console"));
    }
    let cookie = server.signed_in().await;
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let answer = server.get("/", &cookie).await;
        let policy = answer.header("content-security-policy").unwrap();
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        let script = format!(
            "<script nonce=\"{nonce}\">globalThis.__DSH_IPP__ = {{\"token\":\"{}\"}};</script>",
            server.token
        );
        assert!(answer.body.contains(&script), "{}", answer.body);
        assert_eq!(
            answer.body.matches("<script").count(),
            1 + answer.body.matches("<script type=\"module\"").count()
        );
        nonces.push(nonce.to_owned());
    }
    assert_ne!(nonces[0], nonces[1]);
}

/// The value of the first attribute of that name.
fn attribute<'a>(html: &'a str, name: &str) -> &'a str {
    let (_, value) = html.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name}: {html}"));
    value.split('"').next().unwrap()
}

#[actix_web::test]
async fn the_files_of_the_pages_are_kept_by_browsers_for_as_long_as_they_are_these() {
    let server = start().await;
    let page = server.get("/", &server.signed_in().await).await;
    let (_, script) = page.body.split_once("<script type=\"module\"").unwrap();
    let path = attribute(script, "src");
    let plain = server.get(path, "").await;
    assert_eq!((plain.status, plain.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    assert_eq!(plain.header("cache-control"), Some("private, max-age=31536000, immutable"));
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("accept-encoding")));
    let none = server.get(path, "Accept-Encoding: br, gzip;q=0\r\n").await;
    assert_eq!((none.header("content-encoding"), &none.body), (None, &plain.body));
    let other_release = path.replacen("/assets/", "/assets/0", 1);
    let version = path.split('/').nth(2).unwrap();
    for other in [
        other_release.as_str(),
        "/assets",
        "/assets/",
        &format!("/assets/{version}"),
        &format!("/assets/{version}/"),
        &format!("/assets/{version}/nothing.js"),
        &format!("/assets/{version}/../{version}/app.js"),
        &format!("/assets/{version}//app.js"),
        &format!("/assets/{version}/%61pp.js"),
        &format!("/assets/{version}/index.html"),
        &format!("/assets/{version}/../../Cargo.toml"),
        &format!("/assets/{version}//etc/passwd"),
    ] {
        assert_eq!(server.get(other, "").await.refusal(), (404, "NOT_FOUND".to_owned()), "{other}");
    }
    let posted = server.post(path, "", "").await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("get")));
}

#[actix_web::test]
async fn the_files_of_the_pages_are_sent_packed_to_whoever_unpacks() {
    let server = start().await;
    let page = server.get("/", &server.signed_in().await).await;
    let (_, script) = page.body.split_once("<script type=\"module\"").unwrap();
    let request = |encodings: &str| {
        let path = attribute(script, "src");
        let host = server.host();
        format!("GET {path} HTTP/1.1\r\n{host}Accept-Encoding: {encodings}\r\nConnection: close\r\n\r\n")
    };
    for encodings in ["gzip", "gzip, deflate, br, zstd", "br;q=1.0, GZIP;q=0.5"] {
        let mut stream = server.connect().await;
        stream.write_all(request(encodings).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_ascii_lowercase();
        assert!(head.contains("content-encoding: gzip"), "{encodings}: {head}");
        assert_eq!(&answer[end + 4..end + 6], [0x1f, 0x8b], "{encodings}");
    }
}

#[actix_web::test]
async fn a_link_is_good_at_its_own_name_alone_and_the_page_sets_the_cookie_again() {
    let server = start().await;
    let url = server.console.login_url(LinkPlace::Named);
    let host = server.console.host();
    let path = url.strip_prefix(&format!("http://{host}")).unwrap();
    let (label, _) = host.split_once(".localhost:").unwrap();
    assert!(label.len() == 33 && label.starts_with('c'), "{label}");
    let at = async |host: &str, path: &str, more: &str| {
        server.ask(&format!("GET {path}"), &format!("Host: {host}\r\n{more}"), "").await
    };
    assert_eq!(server.get(path, "").await.status, 401, "the plain address");
    assert_eq!(at(&host, &server.login(), "").await.status, 401, "a plain link");
    let answer = at(&host, path, "").await;
    assert_eq!(answer.status, 303);
    let set = answer.header("set-cookie").unwrap().to_owned();
    let cookie = format!("Cookie: {}\r\n", set.split(';').next().unwrap());
    let page = at(&host, "/", &cookie).await;
    assert_eq!((page.status, page.header("set-cookie")), (200, Some(set.as_str())));
    let origin = format!("{cookie}Origin: http://{host}\r\n");
    let line = "POST /api/v1/pod/getState";
    let asked = server.ask(line, &format!("Host: {host}\r\n{origin}"), "{}").await;
    assert_eq!(asked.status, 200);
    let other = format!("Host: {host}\r\n{cookie}{}", server.origin());
    assert_eq!(server.ask(line, &other, "{}").await.status, 403, "a page of the plain address");
}

#[actix_web::test]
async fn whoever_is_in_can_end_all_sign_ins_and_other_pages_cannot() {
    let server = start().await;
    let cookie = server.signed_in().await;
    let path = "/api/v1/console/sign-out";
    assert_eq!(server.post(path, &cookie, "").await.status, 403, "without an origin");
    assert_eq!(server.post(path, "", "").await.status, 401);
    let answer = server.post(path, &(cookie.clone() + &server.origin()), "").await;
    assert_eq!(answer.json()["browsers"], 1);
    assert_eq!(server.get("/", &cookie).await.status, 401);
}

#[actix_web::test]
async fn with_the_sign_ins_the_token_ends_and_what_goes_on_in_its_name() {
    let server = start().await;
    let cookie = server.signed_in().await;
    let mut streams = Vec::new();
    for shown in [server.shown_token(), cookie.clone()] {
        let mut stream = server.connect().await;
        let request = format!("GET /api/v1/events HTTP/1.1\r\n{}{shown}\r\n", server.host());
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 1);
        streams.push(stream);
    }
    // One that was let in and sends the rest of its body only afterwards.
    let mut slow = server.connect().await;
    let request = |line: &str| {
        format!(
            "{line} HTTP/1.1\r\n{}{}Content-Length: 2\r\nConnection: close\r\n\r\n{{",
            server.host(),
            server.shown_token()
        )
    };
    slow.write_all(request("POST /api/v1/pod/getState").as_bytes()).await.unwrap();
    // Another request is answered, so the first one is under way.
    assert_eq!(server.post("/api/v1/pod/getState", &server.shown_token(), "{}").await.status, 200);
    let out = server.post("/api/v1/console/sign-out", &server.shown_token(), "").await;
    assert_eq!(out.status, 200);
    for mut stream in streams {
        rest(&mut stream).await;
    }
    slow.write_all(b"}").await.unwrap();
    assert_eq!(Answer::of(&rest(&mut slow).await).status, 401);
    for shown in [server.shown_token(), cookie.clone() + &server.origin()] {
        assert_eq!(server.post("/api/v1/pod/getState", &shown, "{}").await.status, 401);
        assert_eq!(server.get("/api/v1/events", &shown).await.status, 401);
    }
    let api = server.post("/isolation-pod/api", &server.shown_token(), r#"{"method": "getState"}"#).await;
    assert_eq!(api.refusal(), (403, "FORBIDDEN".to_owned()));
    // Whoever signs in then gets another one.
    let cookie = server.signed_in().await;
    let fresh =
        server.get("/isolation-pod/bootstrap", &cookie).await.json()["token"].as_str().unwrap().to_owned();
    assert_ne!(fresh, server.token);
    let shown = format!("x-ipp-token: {fresh}\r\n");
    assert_eq!(server.post("/api/v1/pod/getState", &shown, "{}").await.status, 200);
    let prefix = server.get("/isolation-pod/status", "").await.json()["tokenPrefix"].clone();
    assert_eq!(prefix, fresh[..8]);
}

#[actix_web::test]
async fn whoever_is_in_is_led_in_by_a_link_that_was_used_already() {
    let server = start().await;
    let link = server.login();
    let set = server.get(&link, "").await.header("set-cookie").unwrap().to_owned();
    let cookie = format!("Cookie: {}\r\n", set.split(';').next().unwrap());
    for old in [link.as_str(), "/login", "/login?code=0"] {
        let answer = server.get(old, &cookie).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{old}");
        assert_eq!(answer.header("set-cookie"), Some(set.as_str()), "{old}");
    }
}

#[actix_web::test]
async fn a_link_of_another_site_s_page_gets_a_page_that_asks_and_nothing_else_does() {
    let server = start().await;
    let cookie = server.signed_in().await;
    let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    for (path, shown) in [("/", cookie.as_str()), ("/", ""), (&*server.login(), "")] {
        let answer = server.get(path, &format!("{shown}{link}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (403, Some("text/html; charset=utf-8")));
        assert!(answer.body.contains("href=\"\"") && !answer.body.contains(&server.token), "{}", answer.body);
        assert_eq!((answer.header("set-cookie"), answer.header("x-frame-options")), (None, Some("deny")));
    }
    for (path, headers) in [
        ("/", link.replace("document", "iframe")),
        ("/", link.replace("navigate", "no-cors")),
        ("/isolation-pod/bootstrap", link.to_owned()),
        ("/api/v1/events", link.to_owned()),
        ("/assets/x/main.js", link.to_owned()),
    ] {
        assert_eq!(server.get(path, &(cookie.clone() + &headers)).await.refusal().0, 403, "{path} {headers}");
    }
    let posted = server.post("/", &(cookie + link), "").await;
    assert_eq!(posted.refusal(), (403, "FORBIDDEN".to_owned()));
}

#[actix_web::test]
async fn a_signed_in_page_gets_the_token_by_bootstrap() {
    let server = start().await;
    assert_eq!(server.get("/isolation-pod/bootstrap", "").await.refusal(), (401, "UNAUTHORIZED".to_owned()));
    let answer = server.get("/isolation-pod/bootstrap", &server.signed_in().await).await;
    assert_eq!(answer.json()["token"], Value::from(server.token.as_str()));
}

/// What all tests of this process log, whoever logs it.
fn log() -> &'static Mutex<Vec<u8>> {
    static LOG: OnceLock<Mutex<Vec<u8>>> = OnceLock::new();
    LOG.get_or_init(|| {
        let subscriber =
            tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE);
        subscriber.with_writer(|| Log).init();
        Mutex::default()
    })
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        log().lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[actix_web::test]
async fn the_token_is_in_no_answer_but_the_page_and_bootstrap_and_no_secret_is_in_a_log() {
    log();
    let server = start().await;
    let url = server.login();
    let code = url.split_once("code=").unwrap().1.to_owned();
    let login = server.get(&format!("/login?code={code}"), "").await;
    let secret = login.header("set-cookie").unwrap().split(['=', ';']).nth(1).unwrap().to_owned();
    let cookie = format!("Cookie: cofferdam-{}={secret}\r\n", server.address.port());
    let both = format!("{cookie}{}{}", server.origin(), server.shown_token());
    let mut answers = vec![login];
    for path in
        ["/isolation-pod/status", "/isolation-pod/nothing", "/login", "/nothing", "/api/v1/openapi.json"]
    {
        answers.push(server.get(path, &both).await);
        answers.push(server.get(path, "").await);
    }
    for (name, args) in args_of_all() {
        let body = serde_json::json!({"method": name, "args": args}).to_string();
        answers.push(server.post("/isolation-pod/api", &both, &body).await);
        answers.push(server.post("/isolation-pod/api", &both, "{").await);
        answers.push(server.post(&format!("/api/v1/pod/{name}"), &both, &args.to_string()).await);
    }
    for answer in answers {
        assert!(!answer.body.contains(&server.token) && !answer.head.contains(&server.token), "{answer:?}");
        assert!(!answer.body.contains(&secret), "{answer:?}");
    }
    assert!(server.get("/", &cookie).await.body.contains(&server.token));
    assert!(server.get("/isolation-pod/bootstrap", &cookie).await.body.contains(&server.token));
    tracing::info!(access = ?server.console, "a line");
    let logged = String::from_utf8_lossy(&log().lock().unwrap()).into_owned();
    assert!(logged.contains("a line"), "nothing was captured");
    for secret in [&server.token, &code, &secret] {
        assert!(!logged.contains(secret));
    }
}
