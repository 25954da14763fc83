//! Logs go to stderr.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::terminal::colours_on;

/// What is logged unless said otherwise.
pub(crate) const DEFAULT_LEVEL: &str = "info";

/// Checks a level: `error`, `warn`, `info`, `debug`, `trace`, `off`, or directives such as `warn,cofferdam=debug`.
pub(crate) fn parse_level(text: &str) -> Result<String, String> {
    // A lone word that is no level would be taken for a module, and all others would log nothing.
    let is_word = |part: &&str| !part.contains(['=', '[', ':']);
    let mut words = text.split(',').map(str::trim).filter(is_word);
    if let Some(unknown) = words.find(|word| word.is_empty() || word.parse::<LevelFilter>().is_err()) {
        return Err(format!("'{unknown}' is not one of error, warn, info, debug, trace and off"));
    }
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Starts logging at a level. A program in which something logs already goes on with that.
pub(crate) fn start(level: &str) {
    // The control socket's server reports its every thread.
    let server = level.parse().unwrap_or(LevelFilter::WARN).min(LevelFilter::WARN);
    let started = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(format!("actix_server={server},{level}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_one_of_six_words_or_directives() {
        for good in ["error", "INFO", "off", "warn,cofferdam=debug", "cofferdam::socket=trace"] {
            assert_eq!(parse_level(good).as_deref(), Ok(good));
        }
        for bad in ["", "verbose", "info,loud", "a=b=c", "cofferdam=loud"] {
            assert!(parse_level(bad).is_err(), "{bad}");
        }
    }
}
