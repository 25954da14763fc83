//! Bytes as text, or not.

/// A text and how it was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// Without its byte order mark; otherwise as it stands.
    pub(super) text: String,
    /// The wire's word.
    pub(super) encoding: &'static str,
}

/// The text that `bytes` are: UTF-8, or UTF-16 with a byte order mark, without NUL. `None` if they are none. If more
/// bytes follow them, the last character may be a part of one.
pub(super) fn decode(bytes: &[u8], more: bool) -> Option<Text> {
    let (encoding, text) = match bytes {
        [0xff, 0xfe, rest @ ..] => ("utf-16le", utf16(rest, u16::from_le_bytes, more)?),
        [0xfe, 0xff, rest @ ..] => ("utf-16be", utf16(rest, u16::from_be_bytes, more)?),
        [0xef, 0xbb, 0xbf, rest @ ..] => ("utf-8", utf8(rest, more)?),
        _ => ("utf-8", utf8(bytes, more)?),
    };
    // UTF-32 has some in every text, whatever mark it begins with.
    (!text.contains('\0')).then_some(Text { text, encoding })
}

fn utf8(bytes: &[u8], more: bool) -> Option<String> {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if more && error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    std::str::from_utf8(whole).ok().map(str::to_owned)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16, more: bool) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !more && !rest.is_empty() {
        return None;
    }
    let mut units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    if more {
        units.pop_if(|last| (0xd800..0xdc00).contains(last));
    }
    char::decode_utf16(units).collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_utf16(text: &str, mark: [u8; 2], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        mark.into_iter().chain(text.encode_utf16().flat_map(bytes)).collect()
    }

    #[test]
    fn texts_are_told_by_their_mark_and_kept_as_they_stand() {
        let table: &[(&[u8], &str, &str)] = &[
            (b"", "", "utf-8"),
            (b"a\r\nb\t\x1b[0m\x7f", "a\r\nb\t\x1b[0m\x7f", "utf-8"),
            ("日本 😀".as_bytes(), "日本 😀", "utf-8"),
            (b"\xef\xbb\xbfhi", "hi", "utf-8"),
            (b"\xef\xbb\xbf", "", "utf-8"),
            (b"\xef\xbb\xbf\xef\xbb\xbfhi", "\u{feff}hi", "utf-8"),
            (b"\xff\xfeh\0i\0", "hi", "utf-16le"),
            (b"\xfe\xff\0h\0i", "hi", "utf-16be"),
            (b"\xff\xfe", "", "utf-16le"),
            (b"\xfe\xff", "", "utf-16be"),
            (b"\xff\xfe\x3d\xd8\x00\xde", "😀", "utf-16le"),
        ];
        for (bytes, text, encoding) in table {
            let expected = Text { text: (*text).to_owned(), encoding };
            assert_eq!(decode(bytes, false), Some(expected), "{bytes:x?}");
        }
    }

    #[test]
    fn what_is_no_text_is_none() {
        let table: &[&[u8]] = &[
            b"a\0b",
            b"\0",
            b"\xc3\x28",
            b"\xc3",
            b"\xed\xa0\x80",
            b"\xc0\xaf",
            b"\xef\xbb",
            b"\xff",
            // UTF-16: half a unit, half a pair, the halves the wrong way round, a NUL, no mark.
            b"\xff\xfeh",
            b"\xfe\xff\0h\0",
            b"\xff\xfe\x3d\xd8",
            b"\xff\xfe\x00\xde\x3d\xd8",
            b"\xff\xfe\0\0",
            b"h\0i\0",
            // UTF-32 with its marks.
            b"\xff\xfe\0\0h\0\0\0",
            b"\0\0\xfe\xff\0\0\0h",
            b"\x7fELF\x02\x01\x01\0",
            b"\x89PNG\r\n\x1a\n",
        ];
        for bytes in table {
            assert_eq!(decode(bytes, false), None, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn a_text_comes_back_and_its_beginning_looks_like_one(text in "[^\0]{0,40}", at in any::<prop::sample::Index>()) {
            let marked = |bytes: &[u8]| [b"\xef\xbb\xbf", bytes].concat();
            for (encoding, bytes) in [
                ("utf-8", marked(text.as_bytes())),
                ("utf-16le", in_utf16(&text, [0xff, 0xfe], u16::to_le_bytes)),
                ("utf-16be", in_utf16(&text, [0xfe, 0xff], u16::to_be_bytes)),
            ] {
                prop_assert_eq!(decode(&bytes, false), Some(Text { text: text.clone(), encoding }));
                let mark = if encoding == "utf-8" { 3 } else { 2 };
                let cut = mark + at.index(bytes.len() - mark + 1);
                let beginning = decode(&bytes[..cut], true).unwrap().text;
                prop_assert!(text.starts_with(&beginning));
            }
        }
    }
}
