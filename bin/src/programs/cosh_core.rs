//! `cosh-core`: manages stored conversations, and holds one.

use std::process::ExitCode;

use clap::Parser;

/// Keeps the conversations of an agent
#[derive(Debug, Parser)]
#[command(name = "cosh-core", version)]
struct Cli {
    /// Carry out one request: JSON on standard input, one line on standard output
    #[arg(long)]
    session_control: bool,
}

/// The program.
pub fn main() -> ExitCode {
    let Cli { session_control } = Cli::parse();
    todo!("{session_control}")
}
