//! Params as hosts send them: what is a little off is taken as it was meant, as the contract says.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

/// A turn's number: an integer from 0 to 2^53.
pub(super) fn turn<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let turn = u64::deserialize(from)?;
    match turn <= 1 << 53 {
        true => Ok(turn),
        false => Err(D::Error::custom("a turn is an integer from 0 to 2^53")),
    }
}

/// A number of milliseconds or the like: any JSON number, its fraction cut off, held to what an `i64` can hold.
pub(super) fn integer<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    match Option::<serde_json::Number>::deserialize(from)? {
        None => Ok(None),
        Some(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Ok(Some(integer)),
            (None, Some(float)) => Ok(Some(float.floor() as i64)),
            (None, None) => Err(D::Error::custom("not a number")),
        },
    }
}

/// The strings of an array; what else is in it is dropped.
pub(super) fn strings<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let values = Option::<Vec<Value>>::deserialize(from)?;
    let only_strings = |value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    Ok(values.map(|values| values.into_iter().filter_map(only_strings).collect()))
}

/// A value for which `null` means what a missing one does.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
