//! Columns of text.

/// Lines in which every column but the last is as wide as its widest cell. The first row is the heading.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let padding = width - cell.chars().count();
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', padding + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_blanks_at_their_end() {
        let rows = [["A", "LONG"], ["größer", "x"], ["b", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "A       LONG\ngrößer  x\nb");
    }
}
