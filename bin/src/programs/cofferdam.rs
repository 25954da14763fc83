//! `cofferdam`: the daemon, and the client for people.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use super::manual;
use crate::client::{self, Connection, Verb};
use crate::daemon::{self, DaemonOptions};
use crate::logging;

/// Undoable checkpoints of directories for coding agents and people
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
    /// Where to keep the state [default: $COFFERDAM_STATE_DIR, /var/lib/cofferdam for root, else
    /// $XDG_STATE_HOME/cofferdam, else ~/.local/state/cofferdam]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where to listen [default: $WS_CKPT_SOCKET, /run/ws-ckpt/ws-ckpt.sock for root, else
    /// $XDG_RUNTIME_DIR/ws-ckpt/ws-ckpt.sock, else run/ws-ckpt.sock in the state directory]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The configuration file [default: /etc/ws-ckpt/config.toml for root, else ws-ckpt/config.toml in
    /// $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace or off
    #[arg(long, value_name = "LEVEL", default_value = logging::DEFAULT_LEVEL, value_parser = logging::parse_level)]
    log_level: String,
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
        Command::Serve(Serve { state_dir, socket, config, log_level }) => daemon::run(DaemonOptions {
            state_dir,
            socket,
            config,
            log_level,
            backend: None,
            notices: Vec::new(),
        }),
        Command::Ckpt(Ckpt { connection, verb }) => client::run("cofferdam ckpt", &connection, &verb),
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
