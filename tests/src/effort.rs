//! How far the tests go that could go on for ever: random ones, and those that kill at random moments.
//!
//! `COFFERDAM_TEST_EFFORT=N` makes them N times as long (for a night); `COFFERDAM_TEST_SEED=N` has random ones run the
//! one case that was reported to fail.

use std::ops::Range;

/// `usual` rounds of something, or as many times more as the environment asks for.
pub fn rounds(usual: u64) -> u64 {
    usual.saturating_mul(number("COFFERDAM_TEST_EFFORT").unwrap_or(1))
}

/// The seeds of that many random cases: the same ones each time, unless the environment asks for more or for one.
pub fn seeds(usual: u64) -> Range<u64> {
    match number("COFFERDAM_TEST_SEED") {
        Some(seed) => seed..seed.saturating_add(1),
        None => 0..rounds(usual),
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
