//! What was said and done, as people are shown it.

use std::collections::VecDeque;

use cofferdam_protocol::host::{EntryKind, Transcript, TranscriptEntry};
use cofferdam_protocol::pod::cut;

/// The most entries that are kept; the oldest go first.
const ENTRIES: usize = 500;
/// The most of an entry, in UTF-16 units.
const ENTRY_CHARS: usize = 4000;

/// The last entries, numbered from 1.
#[derive(Debug, Default)]
pub(super) struct Entries {
    kept: VecDeque<TranscriptEntry>,
    /// The number of the last one.
    last: u64,
}

impl Entries {
    /// Adds an entry, and returns it.
    pub(super) fn add(&mut self, kind: EntryKind, text: &str, time: i64) -> TranscriptEntry {
        self.last += 1;
        let entry = TranscriptEntry { seq: self.last, kind, time, text: cut(text, ENTRY_CHARS).to_owned() };
        if self.kept.len() == ENTRIES {
            self.kept.pop_front();
        }
        self.kept.push_back(entry.clone());
        entry
    }

    /// Adds what was said before this host knew of the task, whose times are not known.
    pub(super) fn begin_with(&mut self, past: Vec<(EntryKind, String)>) {
        if self.last == 0 {
            for (kind, text) in past {
                self.add(kind, &text, 0);
            }
        }
    }

    /// The entries from a number on.
    pub(super) fn read(&self, from: u64) -> Transcript {
        Transcript {
            entries: self.kept.iter().filter(|entry| entry.seq >= from).cloned().collect(),
            next: self.last + 1,
            truncated: self.kept.front().is_some_and(|oldest| oldest.seq > from.max(1)),
        }
    }
}

/// What was said and done, as the transcript of a task that nobody holds.
pub(in crate::host) fn transcript_of(past: Vec<(EntryKind, String)>, from: u64) -> Transcript {
    let mut entries = Entries::default();
    entries.begin_with(past);
    entries.read(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_what_is_new_and_is_told_what_is_gone() {
        let mut entries = Entries::default();
        let empty = entries.read(0);
        assert_eq!((empty.entries.len(), empty.next, empty.truncated), (0, 1, false));
        for n in 1..=ENTRIES {
            entries.add(EntryKind::Assistant, &n.to_string(), 7);
        }
        let all = entries.read(0);
        assert_eq!((all.entries.len(), all.next, all.truncated), (ENTRIES, 501, false));
        entries.add(EntryKind::Tool, "x", 8);
        let all = entries.read(1);
        assert_eq!((all.entries.len(), all.entries[0].seq, all.next, all.truncated), (ENTRIES, 2, 502, true));
        let new = entries.read(501);
        let entry = TranscriptEntry { seq: 501, kind: EntryKind::Tool, time: 8, text: "x".to_owned() };
        assert_eq!((new.entries, new.next, new.truncated), (vec![entry], 502, false));
        let none = entries.read(900);
        assert_eq!((none.entries.len(), none.next, none.truncated), (0, 502, false));
    }

    #[test]
    fn an_entry_is_cut_between_characters() {
        let text = "x".to_owned() + &"😀".repeat(2000);
        let entry = Entries::default().add(EntryKind::User, &text, 0);
        assert_eq!(entry.text, "x".to_owned() + &"😀".repeat(1999));
    }
}
