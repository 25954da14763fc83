//! The tree that is kept: small files that read like text, twenty to a directory.

use std::path::{Path, PathBuf};

use cofferdam_tests::dice::Dice;
use cofferdam_tests::files;

/// Where file number `n` is.
fn place(root: &Path, n: u64) -> PathBuf {
    root.join(format!("part{}/module{}/file{n}.txt", n / 400, n / 20))
}

/// Text of 200 to 6 000 bytes.
fn text(dice: &mut Dice) -> String {
    let words = ["let", "match", "self", "return", "index", "value", "config", "(", ")", "=>", ";\n", "    "];
    let len = 200 + dice.below(5800) as usize;
    let mut text = String::with_capacity(len + 16);
    while text.len() < len {
        match dice.below(3) {
            0 => text.push_str(&format!("{:x}", dice.below(1 << 20))),
            _ => text.push_str(dice.pick(&words).unwrap()),
        }
        text.push(' ');
    }
    text
}

/// Makes `count` files.
pub(crate) fn make(root: &Path, count: u64) {
    let mut dice = Dice::new(count);
    (0..count).for_each(|n| files::write(place(root, n), text(&mut dice)));
}

/// Makes `count` small files in one directory.
pub(crate) fn make_flat(root: &Path, count: u64) {
    files::mkdir(root);
    // As `files::write` does, without looking at the directory above each time.
    (0..count).for_each(|n| std::fs::write(root.join(format!("file{n}")), n.to_string()).unwrap());
}

/// Writes ten files anew, not the same ones each round.
pub(crate) fn change_ten(root: &Path, count: u64, round: u64) {
    let mut dice = Dice::new(round + 1);
    for _ in 0..10 {
        let n = dice.below(count);
        files::write(place(root, n), format!("round {round}\n{}", text(&mut dice)));
    }
}

/// The same in one directory.
pub(crate) fn change_ten_flat(root: &Path, count: u64, round: u64) {
    let mut dice = Dice::new(round + 1);
    (0..10).for_each(|_| {
        files::write(root.join(format!("file{}", dice.below(count))), format!("round {round}"))
    });
}
