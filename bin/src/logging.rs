//! Logs go to stderr.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::terminal::colours_on;

/// What is logged unless said otherwise.
pub(crate) const DEFAULT_LEVEL: &str = "info";

/// Checks a level: `error`, `warn`, `info`, `debug`, `trace`, `off`, or directives such as `warn,cofferdam=debug`.
pub(crate) fn parse_level(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Starts logging at a level. A program in which something logs already goes on with that.
pub(crate) fn start(level: &str) {
    let started = tracing_subscriber::fmt()
        // The control socket's server reports its every thread.
        .with_env_filter(EnvFilter::new(format!("actix_server=warn,{level}")))
        .with_writer(|| Unbreakable(io::stderr()))
        .with_ansi(colours_on(io::stderr().is_terminal()))
        .with_target(false)
        .try_init();
    if let Err(error) = started {
        tracing::debug!(%error, "logging was set up before");
    }
}

/// A stream whose loss does not end the daemon: whoever read its log may have gone.
struct Unbreakable<W>(W);

impl<W: Write> Write for Unbreakable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
