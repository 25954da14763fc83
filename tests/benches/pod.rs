//! How fast the sidecar is, beside bare SQLite in the same run.

fn main() {}
