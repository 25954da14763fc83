//! `POST /api/v1/directories`: the directories in a directory, from which a person picks one.

use std::io;
use std::path::PathBuf;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Json};
use cofferdam_actors::ckpt::shown_path;
use cofferdam_storage::fs::directories as list;
use serde::{Deserialize, Serialize};

use crate::api::Endpoint;
use crate::caller::Owner;
use crate::error::ApiError;

/// The most directories that are named.
const MOST: usize = 1000;

/// The routes of this module.
pub(crate) fn endpoints() -> [Endpoint; 1] {
    [Endpoint::new(Method::POST, "/directories", || web::to(directories))]
}

/// Asks what is in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DirectoriesRequest {
    /// Its absolute path; the home directory if absent.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

/// The directories in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirectoriesReport {
    /// Its path, without links.
    pub(crate) path: String,
    /// The directory it is in; null for the root.
    pub(crate) parent: Option<String>,
    /// Names of directories in it that are text, sorted; links are left out.
    pub(crate) directories: Vec<String>,
    /// Whether there are more than are named.
    pub(crate) truncated: bool,
}

async fn directories(_: Owner, body: Json<DirectoriesRequest>) -> Result<Json<DirectoriesReport>, ApiError> {
    let path = match body.into_inner().path {
        Some(path) => PathBuf::from(path),
        None => std::env::home_dir().filter(|home| home.is_absolute()).unwrap_or_else(|| "/".into()),
    };
    if !path.is_absolute() {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "BadRequest", "path must be an absolute path"));
    }
    let shown = shown_path(&path);
    let listed = tokio::task::spawn_blocking(move || list(&path, MOST)).await;
    let listed = listed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    let found = listed.map_err(|error| refusal(&shown, &error))?;
    Ok(Json(DirectoriesReport {
        path: shown_path(&found.path),
        parent: found.path.parent().map(shown_path),
        directories: found.names,
        truncated: found.truncated,
    }))
}

fn refusal(path: &str, error: &io::Error) -> ApiError {
    let (status, code) = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => (StatusCode::NOT_FOUND, "NotFound"),
        // 403 would say that whoever asks is not let in.
        io::ErrorKind::PermissionDenied => (StatusCode::CONFLICT, "PermissionDenied"),
        _ => (StatusCode::BAD_REQUEST, "BadRequest"),
    };
    ApiError::new(status, code, &format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError;

    use super::*;

    #[test]
    fn a_directory_that_the_daemon_must_not_read_does_not_say_that_the_page_is_not_let_in() {
        for (kind, status) in [
            (io::ErrorKind::PermissionDenied, StatusCode::CONFLICT),
            (io::ErrorKind::NotFound, StatusCode::NOT_FOUND),
            (io::ErrorKind::InvalidInput, StatusCode::BAD_REQUEST),
        ] {
            assert_eq!(refusal("/x", &kind.into()).error_response().status(), status);
        }
    }
}
