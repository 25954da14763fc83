//! The pages at `/` and `/login`, and what is said everywhere else.

use actix_web::http::header::{CONTENT_SECURITY_POLICY, LOCATION, SET_COOKIE};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use cofferdam_actors::host::Host;
use serde_json::json;

use super::Console;
use crate::access::{Access, BrowserAuth, Verdict, secret};
use crate::host::Refusal;

/// Where they are.
pub(crate) const PAGES: [&str; 2] = [INDEX, LOGIN];
const INDEX: &str = "/";
const LOGIN: &str = "/login";

/// How one gets in.
const ADVICE: &str = "Sign in with the link that <code>cofferdam serve</code> printed when it started, or get a new one with \
                      <code>cofferdam console</code>. A link can be used once, within ten minutes.";

/// Answers whatever no other route does.
pub(crate) async fn page(
    request: HttpRequest,
    access: Data<Access>,
    console: Data<Console>,
    host: Data<Option<Host>>,
) -> HttpResponse {
    match (request.uri().path(), request.method()) {
        (INDEX, &Method::GET) => match console.judge(request.head()) {
            Verdict::Authenticated => index(&access, host.as_ref().as_ref()).await,
            Verdict::Unknown => stranger("You are not signed in."),
        },
        (LOGIN, &Method::GET) => match console.sign_in(code_in(request.query_string())) {
            Some(cookie) => HttpResponse::SeeOther()
                .insert_header((LOCATION, INDEX))
                .insert_header((SET_COOKIE, cookie))
                .finish(),
            None => stranger("This link is no longer good, or never was."),
        },
        (INDEX | LOGIN, _) => Refusal::Method(Method::GET).into_response(),
        _ => Refusal::NotFound.into_response(),
    }
}

fn code_in(query: &str) -> &str {
    query.split('&').find_map(|pair| pair.strip_prefix("code=")).unwrap_or_default()
}

fn stranger(what: &str) -> HttpResponse {
    let body = format!("<p>{what}</p>\n<p>{ADVICE}</p>");
    html(HttpResponse::build(StatusCode::UNAUTHORIZED), &secret::random(), "", &body)
}

async fn index(access: &Access, host: Option<&Host>) -> HttpResponse {
    let root = match host {
        Some(host) => host.status().await.map(|status| status.sandbox.root),
        None => None,
    };
    let root = match root.as_deref() {
        Some("") => "There is no sandbox root yet: set one before the first task.".to_owned(),
        Some(root) => format!("Tasks work below <code>{}</code>.", escaped(root)),
        None => "No tasks can be run now.".to_owned(),
    };
    let nonce = secret::random();
    // In a script `<` could end it.
    let row = json!({"token": access.token.reveal()}).to_string().replace('<', "\\u003c");
    let script = format!("<script nonce=\"{nonce}\">globalThis.__DSH_IPP__ = {row};</script>\n");
    let body = format!(
        "<p>Version {}. {root}</p>\n<p>Go on at the command line: <code>cofferdam --help</code>.</p>",
        env!("CARGO_PKG_VERSION"),
    );
    html(HttpResponse::Ok(), &nonce, &script, &body)
}

/// A page on which nothing runs and nothing is shown but what this server says.
fn html(mut response: HttpResponseBuilder, nonce: &str, script: &str, body: &str) -> HttpResponse {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    response.content_type("text/html; charset=utf-8").insert_header((CONTENT_SECURITY_POLICY, policy)).body(
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Cofferdam</title>\n\
             {script}</head>\n<body>\n<h1>Cofferdam</h1>\n{body}\n</body>\n</html>\n"
        ),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
