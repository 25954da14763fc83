//! Every recorded conversation of the existing program: its lines are read, and ours are written as it wrote its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use cofferdam_protocol::session::headless::{Input, Output};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A line of a recording.
#[derive(Deserialize)]
struct Recorded<'a> {
    dir: &'a str,
    #[serde(borrow)]
    line: Option<&'a RawValue>,
}

/// Calls `each` with every recorded line that went in one direction, and where it was.
fn recorded(dir: &str, mut each: impl FnMut(&str, &str)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/sessions/headless");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let event: Recorded<'_> = serde_json::from_str(line).unwrap();
            if let (true, Some(line)) = (event.dir == dir, event.line) {
                each(line.get(), &format!("{}:{}", path.display(), number + 1));
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "only {seen} lines");
}

#[test]
fn every_recorded_line_of_a_client_is_read() {
    recorded("in", |line, place| assert!(Input::parse(line.as_bytes()).is_ok(), "{place}: {line}"));
}

#[test]
fn every_recorded_answer_is_written_byte_for_byte() {
    recorded("out", |line, place| {
        let read: Output = serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
        // A reference into a log that is not kept here.
        let expected = match line.split_once(",\"audit_ref\":") {
            Some((before, after)) => format!("{before}{}", &after[after.find('}').unwrap()..]),
            None => line.to_owned(),
        };
        assert_eq!(String::from_utf8(read.line()).unwrap(), format!("{expected}\n"), "{place}");
    });
}
