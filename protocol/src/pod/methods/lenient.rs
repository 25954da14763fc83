//! Params as hosts send them: what is a little off is taken as it was meant, as the contract says.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::{Number, Value};

use crate::pod::config::{MAX_TOOL_NAME, MAX_TOOLS, floor};
use crate::pod::ids::MAX_NAME;
use crate::pod::text::cut;

/// A turn's number: an integer from 0 to 2^53.
pub(crate) fn turn<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let turn = u64::deserialize(from)?;
    match turn <= 1 << 53 {
        true => Ok(turn),
        false => Err(D::Error::custom("a turn is an integer from 0 to 2^53")),
    }
}

/// A number of milliseconds or the like: any JSON number, its fraction cut off, held to what an `i64` can hold.
pub(crate) fn integer<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<Number>::deserialize(from)?.as_ref().map(floor))
}

/// A moment in milliseconds since the epoch; 0 if it is not known.
pub(crate) fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Ok(integer(from)?.unwrap_or_default())
}

/// A process id; what cannot be one is as good as none.
pub(crate) fn pid<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let pid = Value::deserialize(from)?.as_u64();
    Ok(pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0))
}

/// A name: 1 to 256 characters.
pub(crate) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    // Not as an option: a missing one would be an error without the param's name.
    match String::deserialize(from)? {
        name if (1..=MAX_NAME).contains(&name.chars().count()) => Ok(name),
        _ => Err(D::Error::custom(format_args!("must be a string of 1 to {MAX_NAME} characters"))),
    }
}

/// A name that may be empty, or missing.
pub(crate) fn name_or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(optional_name(from)?.unwrap_or_default())
}

/// A name that may be empty, or missing, which is not the same.
pub(crate) fn optional_name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Option::<String>::deserialize(from)? {
        Some(name) if name.chars().count() > MAX_NAME => {
            Err(D::Error::custom(format_args!("must be a string of at most {MAX_NAME} characters")))
        }
        name => Ok(name),
    }
}

/// What a task is to do: at most 64 KiB.
pub(crate) fn description<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match or_default::<_, String>(from)? {
        text if text.len() <= 1 << 16 => Ok(text),
        text => Err(D::Error::custom(format_args!("has {} bytes; 65536 is the most", text.len()))),
    }
}

/// The strings of an array; what else is in it is dropped.
pub(crate) fn strings<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let values = Option::<Vec<Value>>::deserialize(from)?;
    let only_strings = |value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    Ok(values.map(|values| values.into_iter().filter_map(only_strings).collect()))
}

/// The names of tools that an agent has: the first 256 strings of an array, each once and at most 128 UTF-16 units of it.
pub(crate) fn tools<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = strings(from)?.ok_or_else(|| D::Error::custom("must be an array of names"))?;
    let mut tools: Vec<String> = Vec::new();
    for name in names.iter().map(|name| cut(name, MAX_TOOL_NAME)) {
        if tools.len() < MAX_TOOLS && !tools.iter().any(|tool| tool == name) {
            tools.push(name.to_owned());
        }
    }
    Ok(tools)
}

/// A value for which `null` means what a missing one does.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
