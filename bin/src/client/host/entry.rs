//! What an agent said and did, as people read it.

use cofferdam_protocol::host::{EntryKind, TranscriptEntry};
use cofferdam_protocol::pod::LegacyLogEntry;

use crate::client::shown::{lines, one_line};

/// One entry of a transcript.
pub(super) fn shown(entry: &TranscriptEntry) -> String {
    let text = lines(entry.text.trim_end());
    match entry.kind {
        EntryKind::Prompt | EntryKind::User => after("> ", &text),
        EntryKind::Assistant => text,
        EntryKind::Thinking => after("~ ", &text),
        EntryKind::Tool => after("* ", &text),
        EntryKind::Turn => format!("-- {} --", one_line(entry.text.trim())),
        EntryKind::Note => after("! ", &text),
    }
}

/// One entry of a migrated task's transcript.
pub(super) fn legacy(entry: &LegacyLogEntry) -> String {
    let text = lines(entry.text.trim_end());
    let said = match entry.kind.as_str() {
        "user" | "prompt" => after("> ", &text),
        "assistant" => text,
        "tool" => after("* ", &text),
        "turn" => format!("-- {} --", one_line(entry.text.trim())),
        other => format!("[{}] {text}", one_line(other)),
    };
    match entry.think.trim_end() {
        "" => said,
        thought if entry.text.trim().is_empty() => after("~ ", &lines(thought)),
        thought => format!("{}\n{said}", after("~ ", &lines(thought))),
    }
}

/// Every line after a mark.
fn after(mark: &str, text: &str) -> String {
    text.split('\n').map(|line| format!("{mark}{line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_apart_by_a_mark_and_steers_no_terminal() {
        for (kind, text, expected) in [
            (EntryKind::Prompt, "do\nit\n", "> do\n> it"),
            (EntryKind::User, "go on", "> go on"),
            (EntryKind::Assistant, "a\tb\nc\n", "a\tb\nc"),
            (EntryKind::Thinking, "hm", "~ hm"),
            (EntryKind::Tool, "write a\x1b]0;x\x07", "* write a\\u{1b}]0;x\\u{7}"),
            (EntryKind::Turn, "turn 1 ended:\ncompleted", "-- turn 1 ended:\\ncompleted --"),
            (EntryKind::Note, "x\u{202e}y\u{9b}", "! x\\u{202e}y\\u{9b}"),
        ] {
            let entry = TranscriptEntry { seq: 1, kind, time: 0, text: text.to_owned() };
            assert_eq!(shown(&entry), expected);
        }
    }

    #[test]
    fn a_migrated_entry_looks_the_same_with_its_thoughts_before_it() {
        let entry = |kind: &str, text: &str, think: &str| LegacyLogEntry {
            seq: 1,
            event: "e".to_owned(),
            kind: kind.to_owned(),
            time: 0,
            text: text.to_owned(),
            think: think.to_owned(),
        };
        assert_eq!(legacy(&entry("user", "hi", "")), "> hi");
        assert_eq!(legacy(&entry("assistant", "yes", "a\nb")), "~ a\n~ b\nyes");
        assert_eq!(legacy(&entry("assistant", "", "a")), "~ a");
        assert_eq!(legacy(&entry("tool", "ls", "")), "* ls");
        assert_eq!(legacy(&entry("turn", "ended", "")), "-- ended --");
        assert_eq!(legacy(&entry("\x1b", "x", "")), "[\\u{1b}] x");
    }
}
