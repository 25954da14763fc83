//! `POST /api/v1/console/code`: a fresh link to sign in with, for whoever reaches the control socket.

use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Data, Json};
use actix_web::{HttpMessage, HttpRequest};
use serde::{Deserialize, Serialize};

use super::Console;
use crate::access::OverTcp;
use crate::api::Endpoint;
use crate::caller::Owner;
use crate::error::ApiError;

/// A link to sign in with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConsoleLink {
    /// Whoever opens it within ten minutes, and first, is signed in.
    pub url: String,
}

/// The routes of this module.
pub(crate) fn endpoints() -> [Endpoint; 1] {
    [Endpoint::new(Method::POST, "/console/code", || web::to(code))]
}

async fn code(
    _: Owner,
    request: HttpRequest,
    console: Data<Option<Arc<Console>>>,
) -> Result<Json<ConsoleLink>, ApiError> {
    // Whoever is in must not be able to let others in.
    if request.extensions().get::<OverTcp>().is_some() {
        let text = "only the control socket gives codes";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", text));
    }
    match console.as_ref() {
        Some(console) => Ok(Json(ConsoleLink { url: console.login_url() })),
        None => {
            let text = "this daemon has no console; run cofferdam serve, without --http off";
            Err(ApiError::new(StatusCode::NOT_FOUND, "NotFound", text))
        }
    }
}
