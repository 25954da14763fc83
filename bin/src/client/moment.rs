//! Times as people read them: local, with one offset for a whole table, so that its heading is true for every row.

use cofferdam_protocol::ckpt::Timestamp as WireTimestamp;
use cofferdam_storage::clock::{Clock, SystemClock};
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::shown::one_line;

/// How far this place is from UTC now.
pub(super) fn local_offset() -> Offset {
    let now = i128::from(SystemClock::new().wall().0);
    TimeZone::system().to_offset(Timestamp::from_nanosecond(now).unwrap_or_default())
}

/// A moment in nanoseconds since 1970. `None` if no calendar has it.
pub(super) fn local_time(nanos: i128, offset: Offset) -> Option<String> {
    let moment = Timestamp::from_nanosecond(nanos).ok()?;
    Some(offset.to_datetime(moment).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A moment of the wire.
pub(super) fn shown_moment(moment: &WireTimestamp, offset: Offset) -> String {
    local_time(moment.unix_nanos(), offset).unwrap_or_else(|| one_line(moment.as_str()))
}

/// `UTC+8`, `UTC-3:30`.
pub(super) fn zone(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let sign = if minutes < 0 { '-' } else { '+' };
    if rest == 0 { format!("UTC{sign}{hours}") } else { format!("UTC{sign}{hours}:{rest:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_written_in_hours_and_only_if_need_be_minutes() {
        assert_eq!(zone(Offset::UTC), "UTC+0");
        assert_eq!(zone(Offset::constant(-5)), "UTC-5");
        assert_eq!(zone(Offset::from_seconds(-12_600).unwrap()), "UTC-3:30");
    }

    #[test]
    fn a_moment_that_no_calendar_has_has_no_time() {
        assert_eq!(local_time(0, Offset::constant(1)).unwrap(), "1970-01-01 01:00:00");
        assert_eq!(local_time(i128::MAX, Offset::UTC), None);
    }
}
