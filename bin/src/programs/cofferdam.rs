//! `cofferdam`: the daemon, and the client for people.

use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::{cosh_core, manual, pod_supervisor};
use crate::client::host::{Config, Console, Export, Main, Task};
use crate::client::session::Session;
use crate::client::{self, Connection, Verb};
use crate::daemon::{self, DaemonOptions};
use crate::hosting::HostingOptions;

/// Undoable checkpoints, kept conversations and sandboxed tasks, for coding agents and people
#[derive(Debug, Parser)]
#[command(name = "cofferdam", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon in the foreground
    Serve(Serve),
    /// Take, compare and restore checkpoints
    Ckpt(Ckpt),
    /// List, check, remove and export the stored conversations of agents
    Session(Session),
    /// Have agents work on tasks, each in a directory of its own and in a sandbox
    Task(Task),
    /// Take files out of tasks, and undo that
    Export(Export),
    /// Stand in for a main session, to which tasks are returned
    Main(Main),
    /// Show or change the configuration of tasks; that of checkpoints is in: ckpt config
    Config(Config),
    /// Print an address at which a browser gets into the console, once
    Console(Console),
    /// What the program of that name does
    #[command(hide = true)]
    CoshCore(cosh_core::Arguments),
    /// Confine one agent, as the daemon asks for through standard input
    #[command(hide = true)]
    PodSupervisor,
    /// Print a completion script
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Print a manual page
    Man {
        /// Of which command, such as: ckpt rollback
        command: Vec<String>,
    },
}

#[derive(Args, Debug)]
struct Serve {
    #[command(flatten)]
    daemon: DaemonOptions,
    #[command(flatten)]
    hosting: HostingOptions,
}

#[derive(Args, Debug)]
struct Ckpt {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

/// The program.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(Serve { daemon, hosting }) => daemon::run(daemon, None, &[], Some(&hosting)),
        Command::Ckpt(Ckpt { connection, verb }) => client::run("cofferdam ckpt", &connection, &verb),
        Command::Session(session) => session.run(),
        Command::Task(task) => task.run(),
        Command::Export(export) => export.run(),
        Command::Main(main) => main.run(),
        Command::Config(config) => config.run(),
        Command::Console(console) => console.run(),
        Command::CoshCore(arguments) => cosh_core::run(arguments),
        Command::PodSupervisor => pod_supervisor::run(),
        Command::Completions { shell } => manual::completions(Cli::command(), shell),
        Command::Man { command } => manual::page(Cli::command(), &command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_no_contradictions() {
        Cli::command().debug_assert();
    }
}
