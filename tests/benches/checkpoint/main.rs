//! How fast checkpoints are, beside what people would use instead, in the same run:
//! `cargo bench -p cofferdam --bench checkpoint`.
//!
//! - First, unchanged and changed checkpoints, rollback and diff of trees of 1 000, 10 000 and 100 000 files beside `find`,
//!   a shadow git repository and, where it is installed, restic. Other sizes: `-- 1000000`.
//! - What a store takes beside a packed git repository; how often the daemon syncs; the most memory it took.
//! - Requests answered from memory beside a bare echo server; memory in the long run: `-- requests` alone.
//!
//! Rivals take turns, so that a busy machine is busy for both. Files lie in `TMPDIR`: a disk or memory, as you like; for
//! root on an ext4 of their own, since a million files are gone at once with their filesystem.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has nothing to say")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time, and clears up behind itself")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

mod requests;
mod rivals;
mod syncs;
mod table;
mod tree;
mod trees;

use cofferdam_tests::site::{Programs, Site};

const SIZES: [u64; 3] = [1_000, 10_000, 100_000];

fn main() {
    // Cargo adds `--bench`.
    let asked: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if asked.is_empty() {
        SIZES.into_iter().for_each(trees::measure);
        trees::measure_flat(200_000);
        requests::measure();
    }
    for what in &asked {
        match (what.as_str(), what.parse()) {
            (_, Ok(files)) => trees::measure(files),
            ("flat", _) => trees::measure_flat(200_000),
            ("requests", _) => requests::measure(),
            _ => panic!("{what} is neither a number of files nor `flat` nor `requests`"),
        }
    }
}

fn site() -> Site {
    Site::new(Programs::new(env!("CARGO_BIN_EXE_cofferdam"), env!("CARGO_BIN_EXE_ws-ckpt")))
}
