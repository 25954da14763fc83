//! What automatic clean-up leaves: a number of snapshots, or those younger than an age.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What automatic clean-up leaves. In TOML and JSON a bare integer or a duration's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanupRetention {
    /// This many of the newest.
    Count(u32),
    /// Those younger than this.
    Age(RetentionAge),
}

/// A duration such as `30d`, kept as it was written: an unsigned integer and one letter of s, m, h, d, w in either
/// case, with blanks around it at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionAge {
    /// Goes over the wire untouched; each receiver reads it anew.
    text: String,
    seconds: i64,
}

/// Text that is neither a count nor a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a duration: write a number and one of s, m, h, d, w, such as 30d")]
pub struct InvalidRetention(String);

impl RetentionAge {
    /// Reads a duration.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidRetention> {
        let text = text.into();
        match seconds(text.trim()) {
            Some(seconds) => Ok(Self { text, seconds }),
            None => Err(InvalidRetention(text)),
        }
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its length in seconds, never negative.
    pub fn seconds(&self) -> i64 {
        self.seconds
    }
}

fn seconds(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let number = text.strip_suffix(unit)?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let factor = match unit.to_ascii_lowercase() {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(factor)
}

impl FromStr for CleanupRetention {
    type Err = InvalidRetention;

    /// What a person types: `20` or `30d`.
    fn from_str(text: &str) -> Result<Self, InvalidRetention> {
        match text.trim().parse() {
            Ok(count) => Ok(Self::Count(count)),
            Err(_) => RetentionAge::new(text).map(Self::Age),
        }
    }
}

/// The enum as bincode writes it.
#[derive(Serialize, Deserialize)]
enum Wire {
    Count(u32),
    Age(String),
}

/// The same in TOML and JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Readable {
    Count(u32),
    Age(String),
}

impl Serialize for CleanupRetention {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self, serializer.is_human_readable()) {
            (Self::Count(count), true) => Readable::Count(*count).serialize(serializer),
            (Self::Age(age), true) => Readable::Age(age.text.clone()).serialize(serializer),
            (Self::Count(count), false) => Wire::Count(*count).serialize(serializer),
            (Self::Age(age), false) => Wire::Age(age.text.clone()).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CleanupRetention {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let age = |text| RetentionAge::new(text).map(Self::Age).map_err(serde::de::Error::custom);
        if deserializer.is_human_readable() {
            match Readable::deserialize(deserializer)? {
                Readable::Count(count) => Ok(Self::Count(count)),
                Readable::Age(text) => age(text),
            }
        } else {
            match Wire::deserialize(deserializer)? {
                Wire::Count(count) => Ok(Self::Count(count)),
                Wire::Age(text) => age(text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_one_number_and_one_letter() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("2m", 120),
            ("3H", 10_800),
            ("30d", 2_592_000),
            ("1W", 604_800),
            (" 3600s ", 3600),
            ("9223372036854775807s", i64::MAX),
        ] {
            assert_eq!(RetentionAge::new(text).unwrap().seconds(), seconds, "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_duration() {
        for text in
            ["", " ", "d", "30", "-1d", "+1d", "1.5d", "1d12h", "30 d", "30days", "30x", "30é", "٣d", "é"]
        {
            assert!(RetentionAge::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_duration_beyond_the_range_of_seconds_is_refused() {
        for text in ["9223372036854775808s", "153722867280912931m", "18446744073709551615w"] {
            assert!(RetentionAge::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn in_json_a_retention_is_a_number_or_a_text() {
        let parse = serde_json::from_str::<CleanupRetention>;
        assert_eq!(parse("20").unwrap(), CleanupRetention::Count(20));
        assert_eq!(parse("\"30d\"").unwrap(), "30d".parse().unwrap());
        for bad in ["-1", "4294967296", "\"soon\"", "true", "1.5", "null"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
