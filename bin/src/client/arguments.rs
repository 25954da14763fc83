//! What the command line of every client verb has in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::commands::*;
use super::shown::one_line;
use super::{Failure, Invocation};
use crate::terminal::Terminal;

/// Which daemon, and how long to wait for it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Daemon")]
pub(crate) struct Connection {
    /// The daemon's ws-ckpt socket [default: $WS_CKPT_SOCKET, else where a daemon is found]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The daemon's state directory [default: $COFFERDAM_STATE_DIR, else the daemon's own]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Give up after this long, such as 5s or 500ms [default: wait]
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) timeout: Option<Duration>,
}

/// What a client can be asked to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Register a directory; checkpoint does so by itself, too
    Init(init::Init),
    /// Take a snapshot of a directory
    Checkpoint(checkpoint::Checkpoint),
    /// Give a directory the tree of a snapshot
    Rollback(rollback::Rollback),
    /// Take the newest rollback of a directory back; again, take that back
    Undo(undo::Undo),
    /// Remove a snapshot
    Delete(delete::Delete),
    /// List snapshots
    List(list::List),
    /// Show how two snapshots differ, or a snapshot and the directory
    Diff(diff::Diff),
    /// Show the daemon and its workspaces
    Status(status::Status),
    /// Remove the oldest snapshots that are not pinned
    Cleanup(cleanup::Cleanup),
    /// Show or change the configuration of checkpoints; that of tasks is in: cofferdam config
    Config(config::Config),
    /// Have the daemon read its configuration file again
    Reload(reload::Reload),
    /// Stop looking after a directory; it stays as it is
    Recover(recover::Recover),
    /// Show what was removed and is still there, and bring it back
    Trash(trash::Trash),
    /// Verify the store
    Check(check::Check),
}

impl Verb {
    pub(super) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        match self {
            Self::Init(verb) => verb.run(invocation),
            Self::Checkpoint(verb) => verb.run(invocation),
            Self::Rollback(verb) => verb.run(invocation),
            Self::Undo(verb) => verb.run(invocation),
            Self::Delete(verb) => verb.run(invocation),
            Self::List(verb) => verb.run(invocation),
            Self::Diff(verb) => verb.run(invocation),
            Self::Status(verb) => verb.run(invocation),
            Self::Cleanup(verb) => verb.run(invocation),
            Self::Config(verb) => verb.run(invocation),
            Self::Reload(verb) => verb.run(invocation),
            Self::Recover(verb) => verb.run(invocation),
            Self::Trash(verb) => verb.run(invocation),
            Self::Check(verb) => verb.run(invocation),
        }
    }
}

/// How results are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
    /// As with the program whose flags these are, any other word means a table; but not without a word about it.
    Unknown(String),
}

/// The flag of every verb that shows something.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Shown {
    /// How to print: table or json
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = parse_format)]
    pub(crate) format: Format,
}

impl Shown {
    /// Whether to print JSON. Says so if it is not known how the user wants it.
    pub(crate) fn as_json(&self, terminal: &mut Terminal) -> bool {
        if let Format::Unknown(word) = &self.format {
            terminal.warn(format_args!("Warning: no format is called {}; this is a table", one_line(word)));
        }
        self.format == Format::Json
    }
}

fn parse_format(text: &str) -> Result<Format, std::convert::Infallible> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "json" => Format::Json,
        "table" => Format::Table,
        _ => Format::Unknown(text.to_owned()),
    })
}

/// A number of seconds, or one with the unit `s` or `ms`.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let (number, unit): (&str, fn(u64) -> Duration) = if let Some(number) = text.strip_suffix("ms") {
        (number, Duration::from_millis)
    } else {
        (text.strip_suffix('s').unwrap_or(text), Duration::from_secs)
    };
    match number.parse() {
        Ok(0) | Err(_) => Err("write a time such as 5, 5s or 500ms".to_owned()),
        Ok(number) => Ok(unit(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_seconds_or_milliseconds_and_never_nothing() {
        assert_eq!(parse_timeout("5"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_timeout("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_timeout("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "0", "0ms", "s", "-1", "1.5", "5m"] {
            assert!(parse_timeout(bad).is_err(), "{bad}");
        }
    }
}
