//! Where in a text there is a secret: a byte that may begin or announce one is looked at more closely, any other
//! costs one comparison. Time is linear, whatever the text.
//!
//! A secret that is found in a text is found, or a part of a longer one, if more text follows.

use std::ops::Range;

/// Tokens that their first characters give away: these, and how many characters must follow at least.
const TOKENS: [(&[u8], usize, Alphabet); 23] = [
    (b"ghp_", 16, Alphabet::Alphanumeric),
    (b"gho_", 16, Alphabet::Alphanumeric),
    (b"ghu_", 16, Alphabet::Alphanumeric),
    (b"ghs_", 16, Alphabet::Alphanumeric),
    (b"ghr_", 16, Alphabet::Alphanumeric),
    (b"github_pat_", 16, Alphabet::Word),
    (b"sk-", 16, Alphabet::Word),
    (b"glpat-", 16, Alphabet::Word),
    (b"npm_", 16, Alphabet::Alphanumeric),
    (b"hf_", 16, Alphabet::Alphanumeric),
    (b"AIza", 20, Alphabet::Word),
    (b"xoxa-", 8, Alphabet::Word),
    (b"xoxb-", 8, Alphabet::Word),
    (b"xoxc-", 8, Alphabet::Word),
    (b"xoxd-", 8, Alphabet::Word),
    (b"xoxe-", 8, Alphabet::Word),
    (b"xoxp-", 8, Alphabet::Word),
    (b"xoxr-", 8, Alphabet::Word),
    (b"xoxs-", 8, Alphabet::Word),
    (b"AKIA", 12, Alphabet::Alphanumeric),
    (b"ASIA", 12, Alphabet::Alphanumeric),
    (b"LTAI", 12, Alphabet::Alphanumeric),
    (b"eyJ", 8, Alphabet::Jwt),
];

/// What a token is made of.
#[derive(Clone, Copy)]
enum Alphabet {
    Alphanumeric,
    /// With `_` and `-`.
    Word,
    /// With `.` also, at least one.
    Jwt,
}

/// Names of what is secret, wherever they stand in a name, and those that must end it: `max_tokens` is a number.
const SECRET_WITHIN: [&str; 6] = ["password", "passwd", "passphrase", "secret", "apikey", "privatekey"];
const SECRET_AT_END: [&str; 8] =
    ["token", "accesskey", "credential", "credentials", "authorization", "cookie", "cookies", "authkey"];
/// Headers whose value is the rest of the line.
const HEADERS: [&str; 2] = ["authorization", "cookie"];
/// The first word of an Authorization value, which is no secret.
const SCHEMES: [&[u8]; 7] =
    [b"bearer", b"basic", b"digest", b"token", b"negotiate", b"apikey", b"aws4-hmac-sha256"];

/// Where the first secret of the text is; what announces it is not part of it. Never empty; begins and ends between
/// characters.
pub(super) fn first_secret(text: &[u8]) -> Option<Range<usize>> {
    let mut bytes = text.iter().enumerate();
    bytes.find_map(|(at, byte)| match byte {
        b':' if text[at..].starts_with(b"://") => url_password(text, at + 3),
        b':' | b'=' => assigned(text, at),
        b'-' => private_key(text, at).or_else(|| flag_value(text, at)),
        b'b' | b'B' => bearer(text, at),
        b'A' | b'L' | b'e' | b'g' | b'h' | b'n' | b's' | b'x' => token(text, at),
        _ => None,
    })
}

/// Whether a field, variable or header of that name holds a secret. Punctuation and case do not matter.
pub(super) fn is_secret_name(name: &[u8]) -> bool {
    // Shorter than any of them, as most words before a colon are.
    if name.len() < 5 {
        return false;
    }
    let name = normalized(name);
    SECRET_WITHIN.iter().any(|part| name.contains(part)) || ends_with(&name, &SECRET_AT_END)
}

/// Whether the argument of a program announces that a secret is the next one.
pub(super) fn is_secret_flag(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    matches!(argument.len() - name.len(), 1 | 2)
        && name.bytes().all(is_word)
        && is_secret_name(name.as_bytes())
}

fn normalized(name: &[u8]) -> String {
    let letters =
        name.iter().filter(|b| b.is_ascii_alphanumeric()).map(|b| char::from(b.to_ascii_lowercase()));
    letters.collect()
}

fn ends_with(name: &str, ends: &[&str]) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    ends.iter().any(|end| name.ends_with(end))
}

/// `scheme://user:PASSWORD@host`. A user that is a secret goes with it.
fn url_password(text: &[u8], start: usize) -> Option<Range<usize>> {
    let authority = &text[start..][..run(&text[start..], |b| !is_space(b) && !is_quote(b) && b != b'/')];
    let user_info = &authority[..authority.iter().rposition(|b| *b == b'@')?];
    let colon = user_info.iter().position(|b| *b == b':')?;
    let from = if first_secret(&user_info[..colon]).is_some() { 0 } else { colon + 1 };
    nonempty(start + from..start + user_info.len())
}

/// `name=SECRET`, `name: SECRET`, `"name": "SECRET"`, `name => 'SECRET'`, and headers; the sign is at `at`.
fn assigned(text: &[u8], at: usize) -> Option<Range<usize>> {
    let (name, before) = name_before(&text[..at])?;
    // `Token::new` is a path.
    if text[at..].starts_with(b"::") || !is_secret_name(name) {
        return None;
    }
    let sign = at + 1 + run(&text[at + 1..], |b| matches!(b, b'=' | b'>'));
    let start = sign + run(&text[sign..], |b| is_blank(b) || b == b'*');
    let quoted = text.get(start).is_some_and(|b| is_quote(*b) || *b == b'\\');
    if text[at] != b':' || quoted || !ends_with(&normalized(name), &HEADERS) {
        return value(text, start);
    }
    let start = start + scheme(&text[start..]);
    // `-H 'Cookie: …'` ends with its quote.
    let quote = before.filter(|b| is_quote(*b));
    let line = run(&text[start..], |b| b != b'\n' && Some(b) != quote);
    nonempty(start..start + trimmed(&text[start..][..line], |b| is_space(b) || b == b'\\'))
}

/// The name that ends a text, but for what decorates it, such as quotes; and the byte before it. Of two words if the
/// second is `key`.
fn name_before(text: &[u8]) -> Option<(&[u8], Option<u8>)> {
    let end = trimmed(text, |b| is_blank(b) || is_quote(b) || matches!(b, b'\\' | b']' | b'*'));
    let mut start = trimmed(&text[..end], is_word);
    if text[start..end].eq_ignore_ascii_case(b"key") && start > 0 && text[start - 1] == b' ' {
        start = trimmed(&text[..start - 1], is_word);
    }
    (start < end).then(|| (&text[start..end], start.checked_sub(1).map(|before| text[before])))
}

/// How long the scheme of an Authorization value is, with the blanks behind it.
fn scheme(value: &[u8]) -> usize {
    let word = run(value, |b| !is_space(b));
    match SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(&value[..word])) {
        true => word + run(&value[word..], is_blank),
        false => 0,
    }
}

/// `--name SECRET`, `"--name", "SECRET"`
fn flag_value(text: &[u8], at: usize) -> Option<Range<usize>> {
    if at > 0 && is_word(text[at - 1]) {
        return None;
    }
    let flag = at + run(&text[at..], is_word);
    let start = match text.get(flag) {
        Some(b'\\' | b'"' | b'\'' | b'`') => next_quoted(text, flag)?,
        _ => flag + run(&text[flag..], is_blank),
    };
    let is_secret = start > flag
        && text.get(start) != Some(&b'-')
        && std::str::from_utf8(&text[at..flag]).is_ok_and(is_secret_flag);
    if is_secret { value(text, start) } else { None }
}

/// Where the next item of a list begins with its quote, `end` being where one ends with its own. `None` if there is none, or
/// it is another flag.
fn next_quoted(text: &[u8], end: usize) -> Option<usize> {
    let is_mark = |b| is_quote(b) || b == b'\\';
    let comma = end + run(&text[end..], is_mark);
    let start = comma + 1 + run(text.get(comma + 1..)?, is_space);
    let body = start + run(&text[start..], is_mark);
    (text[comma] == b',' && body > start && text.get(body) != Some(&b'-')).then_some(start)
}

/// A value that begins at `start`: what is in its quotes, or else a word.
fn value(text: &[u8], start: usize) -> Option<Range<usize>> {
    let escapes = run(&text[start..], |b| b == b'\\');
    let open = start + escapes;
    match text.get(open) {
        Some(quote) if is_quote(*quote) => {
            let body = open + 1;
            nonempty(body..body + quoted(&text[body..], *quote, escapes))
        }
        _ => {
            let word = run(&text[start..], |b| !is_space(b) && !is_quote(b) && !matches!(b, b'&' | b';'));
            let word = trimmed(&text[start..][..word], |b| matches!(b, b')' | b']' | b'}' | b',' | b'.'));
            nonempty(start..start + word)
        }
    }
}

/// How long the content of quotes is. The closing one is escaped no more often than the opening one; without one the
/// content ends with the line.
fn quoted(body: &[u8], quote: u8, escapes: usize) -> usize {
    let mut before = 0;
    for (at, byte) in body.iter().enumerate() {
        match *byte {
            b'\n' => return at,
            b'\\' => before += 1,
            byte if byte == quote && before <= escapes => return at - before,
            _ => before = 0,
        }
    }
    body.len()
}

/// `Bearer TOKEN`, unless it is followed by what may be an ordinary word.
fn bearer(text: &[u8], at: usize) -> Option<Range<usize>> {
    const WORD: &[u8] = b"bearer";
    let word_end = at + WORD.len();
    if !begins_word(text, at) || !text.get(at..word_end)?.eq_ignore_ascii_case(WORD) {
        return None;
    }
    let start = word_end + run(&text[word_end..], is_blank);
    let token = run(&text[start..], |b| is_word(b) || matches!(b, b'.' | b'~' | b'+' | b'/' | b'='));
    let token = &text[start..][..trimmed(&text[start..][..token], |b| b == b'.')];
    let ordinary = token.len() < 16 && token.iter().all(u8::is_ascii_lowercase);
    (start > word_end && token.len() >= 8 && !ordinary).then(|| start..start + token.len())
}

/// One of [`TOKENS`].
fn token(text: &[u8], at: usize) -> Option<Range<usize>> {
    if !begins_word(text, at) {
        return None;
    }
    let rest = &text[at..];
    let (prefix, least, alphabet) = TOKENS.iter().find(|(prefix, ..)| rest.starts_with(prefix))?;
    let rest = &rest[prefix.len()..];
    let len = match alphabet {
        Alphabet::Alphanumeric => run(rest, |b| b.is_ascii_alphanumeric()),
        Alphabet::Word => run(rest, is_word),
        // Inside a word it would be looked at again and again.
        Alphabet::Jwt if at > 0 && text[at - 1] == b'-' => 0,
        Alphabet::Jwt => {
            let dotted = run(rest, |b| is_word(b) || b == b'.');
            let len = trimmed(&rest[..dotted], |b| b == b'.');
            if rest[..len].contains(&b'.') { len } else { 0 }
        }
    };
    // With the rest of the word.
    (len >= *least).then(|| at..at + prefix.len() + len + run(&rest[len..], is_word))
}

/// A PEM block of a private key, or as much of it as there is.
fn private_key(text: &[u8], at: usize) -> Option<Range<usize>> {
    const DASHES: &[u8] = b"-----";
    let label = at + b"-----BEGIN ".len();
    if !text[at..].starts_with(b"-----BEGIN ") {
        return None;
    }
    let label_end =
        label + run(&text[label..], |b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' ');
    let is_private = text[label..label_end].windows(11).any(|words| words == b"PRIVATE KEY");
    if !is_private || !text[label_end..].starts_with(DASHES) {
        return None;
    }
    let body = label_end + DASHES.len();
    let next = text[body..].windows(DASHES.len()).position(|window| window == DASHES).map(|next| body + next);
    if let Some(end) = next.filter(|next| text[*next..].starts_with(b"-----END ")) {
        let label = end + DASHES.len();
        let label_end = label + run(&text[label..], |b| b.is_ascii_alphanumeric() || b == b' ');
        return Some(at..label_end + run(&text[label_end..], |b| b == b'-').min(DASHES.len()));
    }
    let key = key_lines(&text[body..]);
    (key > 0).then(|| at..body + key)
}

/// How long the lines of Base64 are that a text begins with; their ends may be written as `\n`.
fn key_lines(text: &[u8]) -> usize {
    let mut end = 0;
    loop {
        let mut start = end;
        loop {
            start += run(&text[start..], is_space);
            match text[start..].starts_with(b"\\n") || text[start..].starts_with(b"\\r") {
                true => start += 2,
                false => break,
            }
        }
        let line = run(&text[start..], |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
        if line < 16 {
            return end;
        }
        end = start + line;
    }
}

/// How many bytes at the beginning are of a kind.
fn run(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|b| !is(*b)).unwrap_or(text.len())
}

/// How many bytes are left if those at the end that are of a kind are taken away.
fn trimmed(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().rposition(|b| !is(*b)).map_or(0, |last| last + 1)
}

fn nonempty(range: Range<usize>) -> Option<Range<usize>> {
    (!range.is_empty()).then_some(range)
}

fn begins_word(text: &[u8], at: usize) -> bool {
    at == 0
        || !(text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_')
        || ends_with_escape(&text[..at])
}

/// Whether a text ends with a character that is written as letters or digits: `\n`, `\x3d`, `\u003d`, `%3D`, or a colour of
/// the terminal. What follows is not of one word with them.
fn ends_with_escape(text: &[u8]) -> bool {
    let hex = |before: &[u8], digits: usize| {
        let (head, tail) = text.split_at(text.len().saturating_sub(digits));
        head.ends_with(before) && tail.iter().all(u8::is_ascii_hexdigit)
    };
    match text {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [colour @ .., b'm'] => colour[..trimmed(colour, |b| b.is_ascii_digit() || b == b';')].ends_with(b"["),
        _ => hex(b"%", 2) || hex(b"\\x", 2) || hex(b"\\u", 4),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}
