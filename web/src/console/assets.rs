//! The files of the console's pages: `web/console/` of the repository, which is part of the program. A build for debugging
//! reads them from that directory whenever the page is asked for, so that an edit needs no build.
//!
//! Each is at `/assets/<version>/<path>`. The version is a hash of them all, so that browsers keep what they have for as long
//! as they like, and modules, which name each other by relative paths, never get one of another release.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use flate2::Compression;
use sha2::{Digest, Sha256};

use crate::packed::{pack, unpacks};

/// Below this, the version, and the paths.
pub(super) const PREFIX: &str = "/assets/";
/// The page of whoever is signed in.
pub(super) const INDEX: &str = "index.html";
/// The page of everybody else.
pub(super) const SIGNED_OUT: &str = "signed-out.html";
/// The page of whoever somebody else's page led here.
pub(super) const ELSEWHERE: &str = "elsewhere.html";

/// What is served, by the end of its name; pages are filled in first.
const KINDS: [(&str, &str); 5] = [
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json; charset=utf-8"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
];

#[derive(rust_embed::RustEmbed)]
#[folder = "console/"]
struct Files;

/// The files of one release.
pub(super) struct Assets {
    /// Names them all together.
    pub(super) version: String,
    files: HashMap<String, Asset>,
}

struct Asset {
    kind: &'static str,
    plain: Bytes,
    /// What a browser that unpacks gets; nothing where that is no smaller.
    packed: Option<Bytes>,
}

/// The files as they are now.
pub(super) fn newest() -> Arc<Assets> {
    kept(cfg!(debug_assertions))
}

/// The files, read again if that is wanted.
fn kept(again: bool) -> Arc<Assets> {
    static KEPT: Mutex<Option<Arc<Assets>>> = Mutex::new(None);
    // Nothing is left half done by whoever panicked.
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if again {
        *kept = None;
    }
    Arc::clone(kept.get_or_insert_with(|| Arc::new(Assets::read())))
}

/// The text of one of the pages.
pub(super) fn text(name: &str) -> Cow<'static, str> {
    let bytes = Files::get(name).map(|file| file.data).unwrap_or_default();
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    }
}

/// The file at a path below `/assets/`, if it is one of this release.
pub(super) fn answer(request: &HttpRequest, path: &str) -> Option<HttpResponse> {
    let assets = kept(false);
    let name = path.strip_prefix(assets.version.as_str())?.strip_prefix('/')?;
    let asset = assets.files.get(name)?;
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CONTENT_TYPE, asset.kind))
        .insert_header((CACHE_CONTROL, "private, max-age=31536000, immutable"))
        .insert_header((VARY, "accept-encoding"));
    Some(match asset.packed.as_ref().filter(|_| unpacks(request.headers())) {
        Some(packed) => response.insert_header((CONTENT_ENCODING, "gzip")).body(packed.clone()),
        None => response.body(asset.plain.clone()),
    })
}

impl Assets {
    fn read() -> Self {
        let mut names: Vec<_> = Files::iter().collect();
        names.sort_unstable();
        let mut hash = Sha256::new();
        let mut files = HashMap::new();
        for name in names {
            let Some(file) = Files::get(&name) else { continue };
            for part in [name.as_bytes(), &file.data] {
                hash.update(part.len().to_le_bytes());
                hash.update(part);
            }
            if let Some((_, kind)) =
                KINDS.iter().find(|(end, _)| name.rsplit_once('.').is_some_and(|(_, of)| of == *end))
            {
                files.insert(name.into_owned(), Asset::new(kind, file.data));
            }
        }
        let version = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { version, files }
    }
}

impl Asset {
    fn new(kind: &'static str, data: Cow<'static, [u8]>) -> Self {
        let packed = pack(&data, Compression::best());
        let plain = match data {
            Cow::Borrowed(data) => Bytes::from_static(data),
            Cow::Owned(data) => Bytes::from(data),
        };
        Self { kind, plain, packed }
    }
}
