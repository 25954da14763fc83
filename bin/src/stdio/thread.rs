//! Threads without which nothing works.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Builder;

/// Starts one: if it panics the process ends, and whoever started that can start another one.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let or_end = move || {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            std::process::exit(1);
        }
    };
    Builder::new().name(name.to_owned()).spawn(or_end).map(drop)
}
