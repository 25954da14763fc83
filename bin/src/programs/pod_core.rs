//! `isolation-pod-core`: the sidecar of an isolation pod host, newline-delimited JSON on stdio.

use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    todo!()
}
