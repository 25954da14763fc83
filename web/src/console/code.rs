//! `/api/v1/console/…`: a fresh link to sign in with, for whoever reaches the control socket, and the end of all sign-ins.

use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, Json, Query};
use actix_web::{HttpMessage, HttpRequest};
use serde::{Deserialize, Serialize};

use super::{Console, LinkPlace};
use crate::access::OverTcp;
use crate::api::Endpoint;
use crate::caller::Owner;
use crate::error::ApiError;

/// Which link is wanted.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Wanted {
    /// One for browsers that do not know names below `localhost`.
    #[serde(default)]
    plain: bool,
}

/// A link to sign in with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConsoleLink {
    /// Whoever opens it within ten minutes, and first, is signed in.
    pub url: String,
}

/// The end of all sign-ins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SignedOut {
    /// How many browsers were signed in.
    pub browsers: usize,
}

/// The routes of this module.
pub(crate) fn endpoints() -> [Endpoint; 2] {
    [
        Endpoint::new(Method::POST, "/console/code", || web::to(code)),
        Endpoint::new(Method::POST, "/console/sign-out", || web::to(sign_out)),
    ]
}

async fn code(
    _: Owner,
    request: HttpRequest,
    wanted: Query<Wanted>,
    console: Data<Option<Arc<Console>>>,
) -> Result<Json<ConsoleLink>, ApiError> {
    // Whoever is in must not be able to let others in.
    if request.extensions().get::<OverTcp>().is_some() {
        let text = "only the control socket gives codes";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", text));
    }
    let place = if wanted.plain { LinkPlace::Plain } else { LinkPlace::Named };
    Ok(Json(ConsoleLink { url: existing(&console)?.login_url(place) }))
}

async fn sign_out(_: Owner, console: Data<Option<Arc<Console>>>) -> Result<Json<SignedOut>, ApiError> {
    let browsers = existing(&console)?.sign_out().await.map_err(|error| {
        let text = format!(
            "all browsers are signed out, but those that were in come in again when the daemon is started anew: console.json in \
             its state directory cannot be written ({error}); mend that and sign out once more, or remove that file before the \
             next start"
        );
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "IoError", &text)
    })?;
    Ok(Json(SignedOut { browsers }))
}

fn existing(console: &Option<Arc<Console>>) -> Result<&Console, ApiError> {
    console.as_deref().ok_or_else(|| {
        let text = "this daemon has no console; run cofferdam serve, without --http off";
        ApiError::new(StatusCode::NOT_FOUND, "NotFound", text)
    })
}
