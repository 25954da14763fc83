//! The pages at `/` and `/login`, the files they are made of, and what is said everywhere else.

use actix_web::http::header::{CONTENT_SECURITY_POLICY, LOCATION, SET_COOKIE};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use serde_json::json;

use super::{Console, assets};
use crate::access::{Access, secret};
use crate::host::Refusal;

/// Where they are.
pub(crate) const PAGES: [&str; 2] = [INDEX, LOGIN];
const INDEX: &str = "/";
const LOGIN: &str = "/login";

/// Where the row with the token goes, in the page's text.
const ROW: &str = "<!--row-->";
/// What stands for the directory of the page's files.
const FILES: &str = "{assets}";
/// What stands for the version of this program.
const VERSION: &str = "{version}";
/// What stands for why somebody is not signed in, in words of a style sheet.
const WHY: &str = "{why}";

/// Answers whatever no other route does.
pub(crate) async fn page(request: HttpRequest, access: Data<Access>, console: Data<Console>) -> HttpResponse {
    let path = request.uri().path();
    match (path, request.method()) {
        (INDEX, &Method::GET) => {
            let token = access.token.reveal();
            match console.renewed(request.head()) {
                Some(cookie) => index(&token, cookie),
                None => stranger("signed-out"),
            }
        }
        (LOGIN, &Method::GET) => {
            let signed_in = console.sign_in(request.head(), code_in(request.query_string())).await;
            // Who is in already needs no code that is still good.
            match signed_in.or_else(|| console.renewed(request.head())) {
                Some(cookie) => HttpResponse::SeeOther()
                    .insert_header((LOCATION, INDEX))
                    .insert_header((SET_COOKIE, cookie))
                    .finish(),
                None => stranger("link-spent"),
            }
        }
        (INDEX | LOGIN, _) => Refusal::Method(Method::GET).into_response(),
        _ => match (path.strip_prefix(assets::PREFIX), request.method()) {
            (Some(_), method) if method != Method::GET => Refusal::Method(Method::GET).into_response(),
            (path, _) => path
                .and_then(|path| assets::answer(&request, path))
                .unwrap_or_else(|| Refusal::NotFound.into_response()),
        },
    }
}

fn code_in(query: &str) -> &str {
    query.split('&').find_map(|pair| pair.strip_prefix("code=")).unwrap_or_default()
}

fn stranger(why: &str) -> HttpResponse {
    let text = assets::text(assets::SIGNED_OUT).replace(WHY, why);
    html(HttpResponse::build(StatusCode::UNAUTHORIZED), &secret::random(), &text)
}

/// What is said to whoever follows a link of somebody else's page. The cookie does not come along then, and what is on the page
/// tells that one nothing.
pub(crate) fn elsewhere() -> HttpResponse {
    let text = assets::text(assets::ELSEWHERE);
    html(HttpResponse::build(StatusCode::FORBIDDEN), &secret::random(), &text)
}

/// The page, and the cookie for longer.
fn index(token: &str, cookie: String) -> HttpResponse {
    let nonce = secret::random();
    // In a script `<` could end it.
    let row = json!({"token": token}).to_string().replace('<', "\\u003c");
    let script = format!("<script nonce=\"{nonce}\">globalThis.__DSH_IPP__ = {row};</script>");
    let text = assets::text(assets::INDEX).replace(ROW, &script).replace(VERSION, env!("CARGO_PKG_VERSION"));
    let mut response = HttpResponse::Ok();
    response.insert_header((SET_COOKIE, cookie));
    html(response, &nonce, &text)
}

/// A page in which nothing runs, and nothing is fetched, but what this server gives it.
fn html(mut response: HttpResponseBuilder, nonce: &str, text: &str) -> HttpResponse {
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    let files = format!("{}{}", assets::PREFIX, assets::newest().version);
    response
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, policy))
        .body(text.replace(FILES, &files))
}
