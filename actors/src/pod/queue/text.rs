//! Texts as long as the contract allows.

/// The beginning of a text: as many whole characters as hosts count at most `limit` of. They count in UTF-16.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    let mut left = limit;
    let end = text.char_indices().find(|(_, char)| match left.checked_sub(char.len_utf16()) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// A name for something that has none: the beginning of its description, on one line.
pub(super) fn label_of(description: &str) -> String {
    let folded = description.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&folded, 40).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_counts_as_hosts_do_and_never_splits_a_character() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc");
        assert_eq!(cut("ab😀", 3), "ab");
        assert_eq!(cut("ab😀", 4), "ab😀");
        assert_eq!(cut("日本語", 2), "日本");
        assert_eq!(cut("", 0), "");
    }

    #[test]
    fn a_label_is_the_beginning_of_the_description_on_one_line() {
        assert_eq!(label_of("  tidy\n up\t it "), "tidy up it");
        assert_eq!(label_of(&"x".repeat(50)), "x".repeat(40));
    }
}
