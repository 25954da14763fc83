//! Cutting texts to what the contract has room for.

/// The longest label that is kept, in UTF-16 units.
const LABEL: usize = 120;
/// How much of a description stands for a label, in UTF-16 units.
const LABEL_OF_DESCRIPTION: usize = 40;

/// The beginning of a text: as many whole characters as have at most `max_units` UTF-16 units. Hosts count those, so
/// that an emoji is two.
pub fn cut(text: &str, max_units: usize) -> &str {
    let mut left = max_units;
    let end = text.char_indices().find(|(_, char)| match left.checked_sub(char.len_utf16()) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    end.map_or(text, |(end, _)| &text[..end])
}

/// A task's label: as asked for, at most 120 UTF-16 units; without one, the first 40 of the description with each run of
/// whitespace folded into a blank.
pub fn label(asked: Option<&str>, description: &str) -> String {
    match asked.filter(|asked| !asked.trim().is_empty()) {
        Some(asked) => cut(asked, LABEL).to_owned(),
        None => {
            let folded: Vec<&str> = description.split_whitespace().collect();
            cut(&folded.join(" "), LABEL_OF_DESCRIPTION).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_counts_as_hosts_do_and_never_splits_a_character() {
        assert_eq!(cut("日本語", 2), "日本");
        assert_eq!(cut("ab😀", 3), "ab");
        assert_eq!(cut("ab😀", 4), "ab😀");
        assert_eq!(cut("ab", 2), "ab");
        assert_eq!(cut("ab", 0), "");
    }

    #[test]
    fn a_task_without_a_label_is_called_by_the_beginning_of_its_description() {
        assert_eq!(label(Some(" my label"), "d"), " my label");
        assert_eq!(label(Some(&"é".repeat(121)), "d"), "é".repeat(120));
        let description = "  fix\n\n the   bug ".to_owned() + &"x".repeat(40);
        for missing in [None, Some(""), Some(" \n")] {
            assert_eq!(label(missing, &description), "fix the bug ".to_owned() + &"x".repeat(28));
        }
        assert_eq!(label(None, ""), "");
    }
}
