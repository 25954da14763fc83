//! `ws-ckpt`: takes the place of the program of that name, daemon and client.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::client::{self, Connection, Verb};
use crate::daemon::{self, BackendChoice, DaemonOptions};
use crate::logging;

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
    /// Which engine keeps the snapshots
    #[arg(long, value_enum, value_name = "ENGINE")]
    backend: Option<BackendChoice>,
    /// The configuration file [default: /etc/ws-ckpt/config.toml for root, else ws-ckpt/config.toml in
    /// $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace or off
    #[arg(long, value_name = "LEVEL", default_value = logging::DEFAULT_LEVEL, value_parser = logging::parse_level)]
    log_level: String,
    /// Accepted and not used: nothing is mounted
    #[arg(long, value_name = "PATH")]
    mount_path: Option<PathBuf>,
}

/// The program.
pub fn main() -> ExitCode {
    let Cli { connection, command } = Cli::parse();
    match command {
        Command::Client(verb) => client::run("ws-ckpt", &connection, &verb),
        Command::Daemon(daemon) => {
            if connection.timeout.is_some() {
                let text = "a daemon has no --timeout";
                Cli::command().error(ErrorKind::ArgumentConflict, text).exit();
            }
            run_daemon(connection, daemon)
        }
    }
}

fn run_daemon(connection: Connection, daemon: Daemon) -> ExitCode {
    let Daemon { backend, config, log_level, mount_path } = daemon;
    let mut options = DaemonOptions {
        state_dir: connection.state_dir,
        socket: connection.socket,
        config,
        log_level,
        backend,
        notices: Vec::new(),
    };
    if mount_path.is_some() {
        options.notices.push("--mount-path is ignored: workspaces stay where they are, nothing is mounted");
    }
    daemon::run(options)
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
