//! When a snapshot was taken, as the wire writes it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment as RFC 3339 text. What this program makes is UTC with `Z` and with 0, 3, 6 or 9 fractional digits,
/// whichever is the fewest that lose nothing; what others send is kept as they wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Timestamp(String);

/// Text that is not a moment of RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an RFC 3339 timestamp")]
pub struct InvalidTimestamp(String);

impl Timestamp {
    /// The moment so many nanoseconds after the Unix epoch.
    pub fn from_unix_nanos(nanos: i64) -> Self {
        let digits = match nanos {
            n if n % 1_000_000_000 == 0 => 0,
            n if n % 1_000_000 == 0 => 3,
            n if n % 1_000 == 0 => 6,
            _ => 9,
        };
        // 64 bits of nanoseconds reach from 1677 to 2262, all within the library's range.
        let moment = jiff::Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default();
        Self(format!("{moment:.digits$}"))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Nanoseconds since the Unix epoch.
    pub fn unix_nanos(&self) -> i128 {
        self.0.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_nanosecond).unwrap_or_default()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        match text.parse::<jiff::Timestamp>() {
            Ok(_) => Ok(Self(text)),
            Err(_) => Err(InvalidTimestamp(text)),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_the_fewest_groups_of_digits_that_lose_nothing() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_767_323_045_000_000_000, "2026-01-02T03:04:05Z"),
            (946_684_799_100_000_000, "1999-12-31T23:59:59.100Z"),
            (946_684_799_000_100_000, "1999-12-31T23:59:59.000100Z"),
            (1_767_323_045_123_456_789, "2026-01-02T03:04:05.123456789Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ] {
            let made = Timestamp::from_unix_nanos(nanos);
            assert_eq!(made.as_str(), text);
            assert_eq!(made.unix_nanos(), i128::from(nanos), "{text}");
        }
    }

    #[test]
    fn text_without_a_zone_or_a_time_is_no_timestamp() {
        for bad in ["", "now", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z"] {
            assert!(Timestamp::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        assert!(Timestamp::try_from("2026-01-02T03:04:05+08:00".to_owned()).is_ok());
    }
}
