//! Pieces of JSON that are parsed only as far as they are wanted. Nothing here recurses, whatever the nesting.

use std::collections::VecDeque;
use std::fmt;

use cofferdam_protocol::pod::{repair_numbers, repair_surrogates};
use serde::Deserializer as _;
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

/// The values that some keys of an object have, in the order of `names`; of a repeated key the last. An error if the
/// text is not JSON, `None` if it is not an object.
pub(super) fn object<'a, 'n>(
    json: &'a str,
    names: &'n [&'n str],
) -> serde_json::Result<Option<Object<'a, 'n>>> {
    let whole: &RawValue = serde_json::from_str(json)?;
    if !whole.get().starts_with('{') {
        return Ok(None);
    }
    let object = Object { names, values: vec![None; names.len()] };
    Deserializer::from_str(json).deserialize_map(object).map(Some)
}

/// The wanted part of an object.
#[derive(Debug)]
pub(super) struct Object<'a, 'n> {
    names: &'n [&'n str],
    values: Vec<Option<&'a RawValue>>,
}

impl<'a> Object<'a, '_> {
    /// The value of one of the names that were asked for, if the object has it.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let at = self.names.iter().position(|known| *known == name);
        debug_assert!(at.is_some(), "{name} was not asked for");
        self.values.get(at?).copied().flatten()
    }
}

/// The end of an array.
#[derive(Debug)]
pub(super) struct LastElements<'a> {
    /// How many elements come before these.
    pub(super) left_out: usize,
    pub(super) elements: VecDeque<&'a RawValue>,
}

/// The last `most` (at least 1) elements of an array; `None` if it is not one.
pub(super) fn last_elements(raw: &RawValue, most: usize) -> Option<LastElements<'_>> {
    Deserializer::from_str(raw.get()).deserialize_seq(Elements { most }).ok()
}

/// A text as it is; the text of a number or of a truth value; of anything else an empty one.
pub(super) fn text(raw: Option<&RawValue>) -> String {
    let Some(raw) = raw.map(RawValue::get) else { return String::new() };
    match raw.as_bytes().first() {
        Some(b'"') => serde_json::from_str(&repair_surrogates(raw)).unwrap_or_default(),
        Some(b'-' | b'0'..=b'9') => serde_json::from_str::<serde_json::Number>(&repair_numbers(raw))
            .map_or(String::new(), |it| it.to_string()),
        Some(b't' | b'f') => raw.to_owned(),
        _ => String::new(),
    }
}

/// The largest number that is taken over: what JavaScript counts exactly.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// A number that is not negative, its fraction cut off; also from a text. Anything else is 0.
pub(super) fn number(raw: Option<&RawValue>) -> i64 {
    let number: f64 = text(raw).trim().parse().unwrap_or(0.0);
    if number.is_finite() { number.clamp(0.0, LARGEST) as i64 } else { 0 }
}

/// Whether it is `true` and nothing else.
pub(super) fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// A value of a closed set of words, if it is one of them.
pub(super) fn word<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    let text = raw.map(RawValue::get).filter(|raw| raw.starts_with('"'))?;
    serde_json::from_str(text).ok()
}

impl<'de, 'n> Visitor<'de> for Object<'de, 'n> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        // A key as it is written: one that is no text must not cost the rest.
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let key = text(Some(key));
            if let Some(at) = self.names.iter().position(|name| *name == key) {
                self.values[at] = Some(value);
            }
        }
        Ok(self)
    }
}

struct Elements {
    most: usize,
}

impl<'de> Visitor<'de> for Elements {
    type Value = LastElements<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut last = LastElements { left_out: 0, elements: VecDeque::new() };
        while let Some(raw) = seq.next_element()? {
            if last.elements.len() == self.most {
                last.elements.pop_front();
                last.left_out += 1;
            }
            last.elements.push_back(raw);
        }
        Ok(last)
    }
}
