//! The metadata a client gives a snapshot: any JSON value, kept compact and with sorted keys.

use crate::ckpt::error::{Error, Result};

/// The text to keep; `None` for none and for `null`.
pub(super) fn normalize(text: Option<&str>) -> Result<Option<String>> {
    let Some(text) = text else { return Ok(None) };
    if text.trim().is_empty() {
        return Err(Error::InvalidMetadata("it is empty; leave it out or give a JSON value".to_owned()));
    }
    // The parser refuses what is nested deeper than 128 levels; its maps are sorted.
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| Error::InvalidMetadata(error.to_string()))?;
    Ok((!value.is_null()).then(|| value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_kept_compact_with_sorted_keys_and_raw_text() {
        for (given, kept) in [
            (
                "{ \"b\": 1, \"a\": [1.0, true, null, \"größe\"] }",
                "{\"a\":[1.0,true,null,\"größe\"],\"b\":1}",
            ),
            ("\"text\"", "\"text\""),
            (" 12 ", "12"),
        ] {
            assert_eq!(normalize(Some(given)).unwrap().as_deref(), Some(kept));
        }
        assert_eq!(normalize(None).unwrap(), None);
        assert_eq!(normalize(Some("null")).unwrap(), None);
    }

    #[test]
    fn what_is_no_json_or_nested_too_deeply_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(normalize(Some(&nested(127))).is_ok());
        for bad in ["", "  ", "{", "{}x", "nul", "{'a':1}", &nested(129), &nested(1_000_000)] {
            assert!(matches!(normalize(Some(bad)), Err(Error::InvalidMetadata(_))));
        }
    }
}
