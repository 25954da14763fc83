//! Times of two who did the same work in turns, and how they are printed.

use std::time::{Duration, Instant};

/// How long each of two took, in rounds.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// Does the work, and remembers how long it took.
    pub(crate) fn add<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.0.push(began.elapsed());
        done
    }

    /// The median, in milliseconds.
    pub(crate) fn ms(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted[sorted.len() / 2].as_secs_f64() * 1e3
    }
}

/// The head of a table.
pub(crate) fn head(what: &str) {
    println!("\n{what:<34}{:>11}{:>11}  {:<22}{:>7}{:>8}", "ours", "rival's", "rival", "ratio", "target");
}

/// A line of it, where less is better; `unit` is of both numbers.
pub(crate) fn line(what: &str, unit: &str, ours: f64, (rival, theirs): (&str, f64), target: Option<f64>) {
    let ratio = ours / theirs;
    let missed = target.is_some_and(|target| ratio > target);
    let target = target.map(|target| format!("{target:.2}")).unwrap_or_default();
    let verdict = if missed { "  MISSED" } else { "" };
    let [ours, theirs] = [ours, theirs].map(|number| format!("{number:.2} {unit}"));
    println!("{what:<34}{ours:>11}{theirs:>11}  {rival:<22}{ratio:>7.2}{target:>8}{verdict}");
}

/// A number that has no rival but a limit.
pub(crate) fn limit(what: &str, unit: &str, ours: f64, limit: Option<f64>) {
    let missed = limit.is_some_and(|limit| ours > limit);
    let limit = limit.map(|limit| format!("at most {limit} {unit}")).unwrap_or_default();
    println!(
        "{what:<34}{:>11}  {limit}{}",
        format!("{ours:.1} {unit}"),
        if missed { "  MISSED" } else { "" }
    );
}
