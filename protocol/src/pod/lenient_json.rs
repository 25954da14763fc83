//! JSON as JavaScript writes it and strict parsers refuse it.

use std::borrow::Cow;

/// The text with each escaped half of a surrogate pair that lacks its other half (`\ud83d`) replaced by `\ufffd`.
/// JavaScript writes such halves where a text was cut in the middle of a character. Other text stays as it is, whether
/// it is JSON or not.
pub fn repair_surrogates(json: &str) -> Cow<'_, str> {
    let mut repaired = Repaired::of(json);
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        at += found;
        at = match (escaped_unit(json, at), escaped_unit(json, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at + 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired.replace(at, at + 6, "\\ufffd");
                at + 6
            }
            // Whatever is escaped, a backslash above all, starts no escape.
            _ => at + 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    repaired.finish()
}

/// The text with each number that no `f64` can hold (`1e400`, which JavaScript reads as Infinity) replaced by `0`.
pub fn repair_numbers(json: &str) -> Cow<'_, str> {
    let mut repaired = Repaired::of(json);
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        at = match bytes[at] {
            b'"' => after_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let rest = &bytes[at..];
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let end = at + rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                if json[at..end].parse().is_ok_and(f64::is_infinite) {
                    repaired.replace(at, end, "0");
                }
                end
            }
            _ => at + 1,
        };
    }
    repaired.finish()
}

/// How many arrays and objects lie within each other where they are deepest. Does not recurse.
pub(super) fn depth(json: &str) -> usize {
    let bytes = json.as_bytes();
    let (mut at, mut depth, mut deepest) = (0, 0_usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        at = if bytes[at] == b'"' { after_string(bytes, at) } else { at + 1 };
    }
    deepest
}

/// The UTF-16 unit that `\uXXXX` at this place stands for.
fn escaped_unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    // `from_str_radix` takes a sign.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Where the string that starts here has ended.
fn after_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A text of which parts are replaced, from front to back. Copied only if there is such a part.
struct Repaired<'a> {
    text: &'a str,
    /// What stands for the text up to `done`.
    copy: String,
    done: usize,
}

impl<'a> Repaired<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, copy: String::new(), done: 0 }
    }

    fn replace(&mut self, from: usize, to: usize, by: &str) {
        self.copy.push_str(&self.text[self.done..from]);
        self.copy.push_str(by);
        self.done = to;
    }

    fn finish(mut self) -> Cow<'a, str> {
        match self.done {
            0 => Cow::Borrowed(self.text),
            done => {
                self.copy.push_str(&self.text[done..]);
                Cow::Owned(self.copy)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn lone_halves_of_surrogate_pairs_are_replaced_and_whole_pairs_kept() {
        for (given, repaired) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\uDE00b""#, r#""\ufffdb""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#"{"\ud83d":"\u00e9é"}"#, r#"{"\ufffd":"\u00e9é"}"#),
            (r#""\u+d83""#, r#""\u+d83""#),
            (r#""\ud8é""#, r#""\ud8é""#),
            (r"\é\ud8", r"\é\ud8"),
            ("\\", "\\"),
        ] {
            assert_eq!(repair_surrogates(given), repaired, "{given}");
        }
    }

    #[test]
    fn numbers_beyond_any_float_become_zero_outside_of_strings_only() {
        let given = r#"{"a":1e400,"b":[-1E+999,1e308,-0.5],"1e400":"\"1e400","c":1e400}"#;
        let repaired = r#"{"a":0,"b":[0,1e308,-0.5],"1e400":"\"1e400","c":0}"#;
        assert_eq!(repair_numbers(given), repaired);
        assert_eq!(repair_numbers(&"9".repeat(400)), "0");
    }

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        for (json, expected) in [("1", 0), ("[]", 1), (r#"{"[[":["\"[",{}]}"#, 3), ("]]][", 1), ("\"[", 0)] {
            assert_eq!(depth(json), expected, "{json}");
        }
        assert_eq!(depth(&"[".repeat(1_000_000)), 1_000_000);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn valid_json_is_not_copied(value in value()) {
            let text = value.to_string();
            prop_assert!(matches!(repair_surrogates(&text), Cow::Borrowed(_)));
            prop_assert!(matches!(repair_numbers(&text), Cow::Borrowed(_)));
        }

        #[test]
        fn a_string_of_any_utf16_units_can_be_read_after_repair(units in proptest::collection::vec(
            prop_oneof![any::<u16>(), 0xd7fe_u16..0xe002], 0..16,
        )) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let repaired = format!("\"{escaped}\"");
            let read: String = serde_json::from_str(&repair_surrogates(&repaired)).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn any_text_is_taken(text in any::<String>(), odd in r#"[\\ud8cé"e0-9{\[-]{0,40}"#) {
            for text in [text, odd] {
                let _ = (repair_surrogates(&text), repair_numbers(&text), depth(&text));
            }
        }
    }
}
