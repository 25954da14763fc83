//! `ws-ckpt`: takes the place of the program of that name, daemon and client.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::client::{self, Connection, Verb};
use crate::daemon::{self, BackendChoice, DaemonOptions};

/// Workspace checkpoints
#[derive(Debug, Parser)]
#[command(name = "ws-ckpt", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon in the foreground
    Daemon(Daemon),
    #[command(flatten)]
    Client(Verb),
}

#[derive(Args, Debug)]
struct Daemon {
    #[command(flatten)]
    options: DaemonOptions,
    /// Which engine keeps the snapshots: auto or store
    #[arg(long, value_enum, value_name = "ENGINE", hide_possible_values = true)]
    backend: Option<BackendChoice>,
    /// Accepted and not used: nothing is mounted
    #[arg(long, value_name = "PATH")]
    mount_path: Option<PathBuf>,
    /// Of the client only; here to be refused.
    #[arg(long, hide = true, value_parser = client::parse_timeout)]
    timeout: Option<Duration>,
}

/// The program.
pub fn main() -> ExitCode {
    let Cli { connection, command } = Cli::parse();
    match command {
        Command::Client(verb) => client::run("ws-ckpt", &connection, &verb),
        Command::Daemon(daemon) => run_daemon(connection, daemon),
    }
}

fn run_daemon(connection: Connection, daemon: Daemon) -> ExitCode {
    let Daemon { mut options, backend, mount_path, timeout } = daemon;
    if timeout.is_some() || connection.timeout.is_some() {
        Cli::command().error(ErrorKind::ArgumentConflict, "a daemon has no --timeout").exit();
    }
    // Given before the word `daemon`.
    options.socket = options.socket.or(connection.socket);
    options.state_dir = options.state_dir.or(connection.state_dir);
    let notice = "--mount-path is ignored: workspaces stay where they are, nothing is mounted";
    let notices: Vec<&str> = mount_path.iter().map(|_| notice).collect();
    daemon::run(options, backend, &notices, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_no_contradictions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_flags_of_the_existing_program_are_accepted() {
        for line in [
            "daemon --mount-path /mnt --socket /s --log-level debug",
            "init -w /p",
            "checkpoint -w /p -i a -m text --metadata {}",
            "rollback -w /p -s a",
            "rollback --workspace /p --snapshot a",
            "delete -s a",
            "delete -w /p -s a --force",
            "list",
            "list -w /p --format json",
            "list --format yaml",
            "diff -w /p -f a -t b",
            "status --format json",
            "cleanup -w /p --keep 5",
            "config",
            "config --health-check-interval 5 --img-size 10 --img-max-percent 40 --enable-auto-cleanup",
            "config --disable-auto-cleanup --auto-cleanup-keep 30d --auto-cleanup-interval 60",
            "reload",
            "recover -w /p",
            "recover --all --force",
        ] {
            let words = std::iter::once("ws-ckpt").chain(line.split(' '));
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_a_usage_error() {
        for line in [
            "init",
            "checkpoint -w /p",
            "recover",
            "recover -w /p --all",
            "config --enable-auto-cleanup --disable-auto-cleanup",
            "config --auto-cleanup-keep soon",
            "cleanup -w /p --keep -1",
            "daemon --backend zfs",
            "daemon --log-level loud=quiet=x",
            "list --timeout soon",
            "frobnicate",
        ] {
            let words = std::iter::once("ws-ckpt").chain(line.split(' '));
            match Cli::try_parse_from(words) {
                Ok(_) => panic!("{line} was accepted"),
                Err(error) => assert_eq!(error.exit_code(), 2, "{line}"),
            }
        }
    }
}
