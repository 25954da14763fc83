//! What a program prints, made into texts that people can read: whole lines, not too long, and not too many.

/// The longest text, in bytes; it has at most as many UTF-16 units.
const MAX_TEXT: usize = 4000;
/// The most that waits to be read, in bytes: of what is printed faster than that, the beginning is left out.
const MAX_WAITING: usize = 8 * MAX_TEXT;

/// What was printed and is not a text yet.
#[derive(Debug, Default)]
pub(super) struct Texts {
    waiting: Vec<u8>,
    /// How many bytes before it were left out.
    left_out: u64,
}

impl Texts {
    /// Takes what was printed.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(MAX_WAITING)..];
        let over = (self.waiting.len() + kept.len()).saturating_sub(MAX_WAITING);
        self.waiting.drain(..over);
        self.left_out += (over + bytes.len() - kept.len()) as u64;
        self.waiting.extend_from_slice(kept);
    }

    /// Whether there is a text to be taken.
    pub(super) fn is_ready(&self) -> bool {
        self.waiting.len() >= MAX_TEXT || self.waiting.contains(&b'\n')
    }

    /// The next text: as many whole lines as fit. `last` if nothing more will be printed: then a line without an end is one.
    pub(super) fn take(&mut self, last: bool) -> Option<String> {
        if self.waiting.is_empty() || !(last || self.is_ready()) {
            return None;
        }
        let note = match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            count => format!("[{count} bytes before this were left out]\n"),
        };
        let window = &self.waiting[..self.waiting.len().min(MAX_TEXT - note.len())];
        let all = last && window.len() == self.waiting.len();
        let lines = window.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
        let end = match lines {
            _ if all => window.len(),
            Some(end) => end,
            None => whole_characters(window),
        };
        let text: Vec<u8> = self.waiting.drain(..end).collect();
        Some(note + readable(&text).trim_end_matches('\n'))
    }
}

/// How many of the bytes are whole characters, as far as the last one is concerned.
fn whole_characters(bytes: &[u8]) -> usize {
    let start = (1..=bytes.len().min(4)).map(|back| bytes.len() - back).find(|at| bytes[*at] & 0xc0 != 0x80);
    match start {
        Some(at) if at > 0 && std::str::from_utf8(&bytes[at..]).is_err() => at,
        _ => bytes.len(),
    }
}

/// Whatever it is as text, without what moves a terminal's cursor or colours it.
pub(in crate::host::agent) fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let plain = |char: char| match char {
        '\n' | '\t' => char,
        '\r' => '\n',
        char if char.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    };
    text.chars().map(plain).collect()
}

/// The end of what a program complained about.
#[derive(Debug, Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// The most that is kept, in bytes.
    const MOST: usize = 2000;

    /// Takes more of it.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(Self::MOST)..]);
        self.0.drain(..self.0.len().saturating_sub(Self::MOST));
    }

    /// It, for people.
    pub(super) fn text(&self) -> String {
        readable(&self.0).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &mut Texts) -> Vec<String> {
        std::iter::from_fn(|| texts.take(true)).collect()
    }

    #[test]
    fn lines_are_texts_and_a_line_without_an_end_waits_for_it() {
        let mut texts = Texts::default();
        assert_eq!(texts.take(true), None);
        texts.push(b"one\ntwo\nthr");
        assert_eq!(texts.take(false).unwrap(), "one\ntwo");
        assert_eq!(texts.take(false), None);
        texts.push(b"ee");
        assert!(!texts.is_ready());
        assert_eq!(all(&mut texts), ["three"]);
    }

    #[test]
    fn a_text_has_at_most_4000_units_and_is_cut_between_lines_or_characters() {
        let mut texts = Texts::default();
        texts.push("ä€😀".repeat(600).as_bytes());
        let said = all(&mut texts);
        assert_eq!(said.len(), 2);
        assert_eq!(said.concat(), "ä€😀".repeat(600));
        texts.push(format!("{}\n{}\n", "a".repeat(3000), "b".repeat(3000)).as_bytes());
        assert_eq!(all(&mut texts), ["a".repeat(3000), "b".repeat(3000)]);
    }

    #[test]
    fn of_a_flood_the_end_is_kept_and_it_is_said_how_much_was_left_out() {
        let mut texts = Texts::default();
        for _ in 0..1000 {
            texts.push(&[b'x'; 100_000]);
            assert!(texts.waiting.len() <= MAX_WAITING);
        }
        texts.push(b"\nthe end\n");
        let said = all(&mut texts);
        assert!(said.len() <= 9, "{}", said.len());
        assert!(said.iter().all(|text| text.encode_utf16().count() <= MAX_TEXT));
        let left_out = 100_000_009 - MAX_WAITING;
        assert!(
            said[0].starts_with(&format!("[{left_out} bytes before this were left out]\nx")),
            "{}",
            &said[0][..80]
        );
        assert!(said.last().unwrap().ends_with("\nthe end"));
    }

    #[test]
    fn binary_is_harmless() {
        let mut texts = Texts::default();
        texts.push(b"\x1b[2Ja\xff\0b\rc\r\nd\te\n");
        assert_eq!(all(&mut texts), ["\u{fffd}[2Ja\u{fffd}\u{fffd}b\nc\nd\te"]);
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        texts.push(&bytes);
        let said = all(&mut texts);
        assert!(said.iter().all(|text| text.encode_utf16().count() <= MAX_TEXT));
        assert!(said.concat().chars().all(|char| !char.is_control() || matches!(char, '\n' | '\t')));
    }

    #[test]
    fn of_complaints_the_end_is_kept() {
        let mut tail = Tail::default();
        tail.push(&[b'x'; 10_000]);
        tail.push(b" the end \n");
        let text = tail.text();
        assert!(text.len() < Tail::MOST && text.ends_with("x the end"));
    }
}
