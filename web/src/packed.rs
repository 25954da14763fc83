//! Answers with fewer bytes, for whoever unpacks them.

use std::io::Write;

use actix_web::http::header::{ACCEPT_ENCODING, HeaderMap};
use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Whether a browser says that it unpacks gzip.
pub(crate) fn unpacks(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0")
    })
}

/// Bytes packed with gzip, if that is smaller.
pub(crate) fn pack(data: &[u8], how: Compression) -> Option<Bytes> {
    let mut packer = GzEncoder::new(Vec::new(), how);
    // Memory takes whatever is written.
    let packed = packer.write_all(data).and_then(|()| packer.finish()).ok()?;
    (packed.len() < data.len()).then(|| packed.into())
}
