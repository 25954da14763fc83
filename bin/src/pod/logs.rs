//! The sidecar's log: on stderr, and once it is known where the database is, in a file beside it.
//!
//! It names ids, methods and codes, never what a task is about.

use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_actors::pod::LogControl;
use cofferdam_protocol::pod::LogLevel;
use cofferdam_storage::disk::Disk;
use cofferdam_storage::rotating::{Limits, RotatingFile};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

use crate::stdio::Inherited;

/// What the file is called.
const FILE: &str = "core.log";

/// The log, as the actors see it.
pub(super) struct Logs {
    level: Handle<Targets, Registry>,
    disk: Disk,
    file: File,
}

type File = Arc<Mutex<Option<RotatingFile>>>;

impl Logs {
    /// Starts logging to stderr.
    pub(super) fn start(disk: Disk) -> Arc<Self> {
        let file = File::default();
        let both = Arc::clone(&file);
        let (filter, level) = reload::Layer::new(from_us(LogLevel::Info));
        let shown = fmt::layer()
            .with_ansi(false)
            .with_target(false)
            .with_writer(move || Both(Inherited(io::stderr()), Arc::clone(&both)));
        if let Err(error) = tracing_subscriber::registry().with(filter).with(shown).try_init() {
            tracing::debug!(%error, "logging was set up before");
        }
        std::panic::set_hook(Box::new(log_panic));
        Arc::new(Self { level, disk, file })
    }
}

impl LogControl for Logs {
    fn set_level(&self, level: LogLevel) {
        if let Err(error) = self.level.reload(from_us(level)) {
            tracing::warn!(%error, "the log level cannot be changed");
        }
    }

    fn open_beside(&self, database: &Path) -> Option<PathBuf> {
        let path = database.with_file_name(FILE);
        match RotatingFile::open(self.disk.clone(), &path, Limits::default()) {
            Ok(file) => {
                *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
                Some(path)
            }
            Err(error) => {
                tracing::warn!(%error, "no log beside the database");
                None
            }
        }
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

/// Where a log line goes. Nobody need read stderr, and no log is worth ending or waiting for.
struct Both<E>(Inherited<E>, File);

impl<E: std::os::fd::AsFd> Write for Both<E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.offer(bytes);
        if let Some(file) = &mut *self.1.lock().unwrap_or_else(PoisonError::into_inner) {
            file.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn a_log_line_reaches_the_file_when_nobody_reads_stderr() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let file = RotatingFile::open(Disk::default(), &path, Limits::default()).unwrap();
        let (reader, writer) = pipe().unwrap();
        let file = Arc::new(Mutex::new(Some(file)));
        let mut log = Both(Inherited(writer), file);
        // More than the pipe holds.
        let line = format!("{}\n", "x".repeat(999));
        for _ in 0..200 {
            log.write_all(line.as_bytes()).unwrap();
        }
        drop(reader);
        log.write_all(line.as_bytes()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), line.repeat(201));
    }

    #[test]
    fn only_what_this_project_logs_is_shown_and_only_from_its_level_on() {
        use tracing::Level;
        let shown = from_us(LogLevel::Warn);
        assert!(shown.would_enable("cofferdam_actors::pod", &Level::WARN));
        assert!(!shown.would_enable("cofferdam_actors::pod", &Level::INFO));
        assert!(!shown.would_enable("actix", &Level::ERROR));
        assert!(!from_us(LogLevel::Off).would_enable("cofferdam", &Level::ERROR));
    }
}
