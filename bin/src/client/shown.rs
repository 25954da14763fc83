//! Sizes, times and foreign text as people read them.

use std::fmt::Write;

/// A size with the unit that keeps it short, in powers of 1024.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit = UNITS[unit];
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// A length of time.
pub(super) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// Text that came from elsewhere, on one line and unable to steer a terminal. The end of a line is shown as `\n`.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(line, "{}", c.escape_unicode());
            }
            c => line.push(c),
        }
    }
    line
}

/// Text that came from elsewhere, on as many lines as it has, and unable to steer a terminal.
pub(crate) fn lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(one_line).collect::<Vec<_>>().join("\t");
    text.split('\n').map(|text| line(text.strip_suffix('\r').unwrap_or(text))).collect::<Vec<_>>().join("\n")
}

/// Characters that reorder or hide what stands around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first line of a text, cut to what fits beside other columns.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 100;
    let first = text.lines().next().unwrap_or_default();
    let cut = first.len() < text.trim_end().len() || first.chars().count() > MOST;
    let mut shown = one_line(&first.chars().take(MOST).collect::<String>());
    if cut {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_one_digit_after_the_point() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(32_212_254_720), "30.0 GiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        assert_eq!(duration(59), "59s");
        assert_eq!(duration(61), "1m 1s");
        assert_eq!(duration(3_725), "1h 2m");
        assert_eq!(duration(90_000), "1d 1h");
    }

    #[test]
    fn foreign_text_cannot_steer_a_terminal() {
        assert_eq!(one_line("a\x1b[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\\nc\\u{202e}");
        assert_eq!(one_line("größe ✓"), "größe ✓");
    }

    #[test]
    fn foreign_text_of_many_lines_keeps_its_lines_and_tabs_and_nothing_else_that_moves() {
        assert_eq!(
            lines("a\tb\r\n\n\x1b[1A\rc\u{9b}\u{61c}\n"),
            "a\tb\n\n\\u{1b}[1A\\u{d}c\\u{9b}\\u{61c}\n"
        );
        assert_eq!(lines(""), "");
    }

    #[test]
    fn an_excerpt_is_one_line_and_says_when_there_is_more() {
        assert_eq!(excerpt("first\nsecond"), "first…");
        assert_eq!(excerpt("first\n"), "first");
        assert_eq!(excerpt(&"x".repeat(200)), format!("{}…", "x".repeat(100)));
        assert_eq!(excerpt(""), "");
    }
}
