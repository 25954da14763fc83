//! Show or change the configuration.

use std::path::{Path, PathBuf};

use clap::Args;
use cofferdam_protocol::ckpt::{CleanupRetention, ConfigReport};
use cofferdam_storage::ckpt::config::{self, Config as Settings, Setting};
use cofferdam_storage::disk::Disk;

use crate::checkpoint::CkptError;
use crate::client::arguments::Shown;
use crate::client::failure::Failure;
use crate::client::invocation::Invocation;
use crate::client::shown::one_line;

#[derive(Args, Debug)]
pub(crate) struct Config {
    /// Seconds between two health checks; 0 disables them
    #[arg(long, value_name = "SECS")]
    health_check_interval: Option<u64>,
    /// Size of the btrfs image in GB; checked and written, but the store engine has no use for it
    #[arg(long, value_name = "GB")]
    img_size: Option<u64>,
    /// The most the btrfs image may take of its filesystem, in percent; no use either
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    img_max_percent: Option<f64>,
    /// Remove snapshots on a schedule
    #[arg(long, conflicts_with = "disable_auto_cleanup")]
    enable_auto_cleanup: bool,
    /// Remove no snapshots on a schedule
    #[arg(long)]
    disable_auto_cleanup: bool,
    /// What scheduled clean-up leaves: a number of snapshots, or an age such as 30d
    #[arg(long, value_name = "N|AGE")]
    auto_cleanup_keep: Option<CleanupRetention>,
    /// Seconds between two scheduled clean-ups; 0 disables them
    #[arg(long, value_name = "SECS")]
    auto_cleanup_interval: Option<u64>,
    /// Take no snapshot of a tree that equals the newest one's
    #[arg(long, conflicts_with = "disable_skip_unchanged")]
    enable_skip_unchanged: bool,
    /// Take a snapshot also of an unchanged tree
    #[arg(long)]
    disable_skip_unchanged: bool,
    /// The file [default: the one the daemon reads by default]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    shown: Shown,
}

impl Config {
    pub(crate) fn run(&self, invocation: &mut Invocation) -> Result<(), Failure> {
        let file = match self.config.clone().or_else(|| invocation.environment.config_file()) {
            Some(file) => std::path::absolute(file)?,
            None => {
                return Err(Failure::Said(
                    "no home directory is known; name the file with --config".to_owned(),
                ));
            }
        };
        let changes = self.changes();
        if changes.is_empty() { self.view(invocation, &file) } else { update(invocation, &file, &changes) }
    }

    fn changes(&self) -> Vec<Setting> {
        let switch = |on: bool, off: bool| (on || off).then_some(on);
        let changes = [
            switch(self.enable_auto_cleanup, self.disable_auto_cleanup).map(Setting::AutoCleanup),
            self.auto_cleanup_keep.clone().map(Setting::AutoCleanupKeep),
            self.auto_cleanup_interval.map(Setting::AutoCleanupIntervalSecs),
            self.health_check_interval.map(Setting::HealthCheckIntervalSecs),
            switch(self.enable_skip_unchanged, self.disable_skip_unchanged).map(Setting::SkipUnchanged),
            self.img_size.map(Setting::ImgSize),
            self.img_max_percent.map(Setting::ImgMaxPercent),
        ];
        changes.into_iter().flatten().collect()
    }

    /// What is in effect, if a daemon answers; else what the file says.
    fn view(&self, invocation: &mut Invocation, file: &Path) -> Result<(), Failure> {
        let (report, source) = match invocation.client.config() {
            Ok(report) => {
                let source = format!("in effect in the daemon at {}", invocation.client.path().display());
                (report, source)
            }
            Err(CkptError::Connection { .. }) => {
                (from_file(invocation, file)?, "no daemon is running".to_owned())
            }
            Err(error) => return Err(error.into()),
        };
        if self.shown.as_json(&mut invocation.terminal) {
            return Ok(invocation.terminal.print_json(&report)?);
        }
        // The wire's report has no place for this one.
        let skip_unchanged = match Settings::load(file) {
            Ok(settings) => settings.skip_unchanged.to_string(),
            Err(error) => {
                invocation
                    .terminal
                    .say(format_args!("{error}; the daemon keeps what it has until that is mended"));
                "unknown".to_owned()
            }
        };
        Ok(invocation.terminal.print(as_text(&report, &skip_unchanged, file, &source))?)
    }
}

/// What a daemon that starts now would report.
fn from_file(invocation: &Invocation, file: &Path) -> Result<ConfigReport, Failure> {
    let settings = Settings::load(file)?;
    let state_dir = invocation.state_dir()?;
    Ok(ConfigReport {
        mount_path: state_dir.to_string_lossy().into_owned(),
        socket_path: invocation
            .environment
            .daemon_socket(None, &state_dir)
            .path
            .to_string_lossy()
            .into_owned(),
        log_level: crate::logging::DEFAULT_LEVEL.to_owned(),
        auto_cleanup: settings.auto_cleanup,
        auto_cleanup_keep: settings.auto_cleanup_keep,
        auto_cleanup_interval_secs: settings.auto_cleanup_interval_secs,
        health_check_interval_secs: settings.health_check_interval_secs,
        img_size: 0,
        img_max_percent: 0.0,
    })
}

fn as_text(report: &ConfigReport, skip_unchanged: &str, file: &Path, source: &str) -> String {
    let keep = match &report.auto_cleanup_keep {
        CleanupRetention::Count(count) => count.to_string(),
        CleanupRetention::Age(age) => format!("\"{}\"", age.as_str()),
    };
    let lines = [
        ("auto_cleanup", report.auto_cleanup.to_string()),
        ("auto_cleanup_keep", keep),
        ("auto_cleanup_interval_secs", report.auto_cleanup_interval_secs.to_string()),
        ("health_check_interval_secs", report.health_check_interval_secs.to_string()),
        ("skip_unchanged", format!("{skip_unchanged} (as the file says)")),
        ("log_level", report.log_level.clone()),
        ("socket", report.socket_path.clone()),
        ("state directory", report.mount_path.clone()),
        ("file", file.display().to_string()),
    ];
    let mut text = format!("Configuration ({source})");
    for (name, value) in lines {
        text.push_str(&format!("\n  {name:<26}  {}", one_line(&value)));
    }
    text
}

/// Checks, writes, and has the daemon read the file.
fn update(invocation: &mut Invocation, file: &Path, changes: &[Setting]) -> Result<(), Failure> {
    config::update(&Disk::default(), file, changes)?;
    invocation.terminal.print(format_args!("Configuration written: {}", file.display()))?;
    match invocation.client.reload() {
        Ok(()) => Ok(invocation.terminal.print("Daemon reloaded configuration")?),
        Err(CkptError::Connection { .. }) => {
            invocation.terminal.say("No daemon is running; the next one reads it when it starts.");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_says_where_its_values_come_from() {
        let report = ConfigReport {
            mount_path: "/state".to_owned(),
            socket_path: "/run/s.sock".to_owned(),
            log_level: "info".to_owned(),
            auto_cleanup: true,
            auto_cleanup_keep: "30d".parse().unwrap(),
            auto_cleanup_interval_secs: 86_400,
            health_check_interval_secs: 300,
            img_size: 0,
            img_max_percent: 0.0,
        };
        let text = as_text(&report, "true", Path::new("/etc/c.toml"), "no daemon is running");
        assert_eq!(
            text,
            "Configuration (no daemon is running)\n\
             \u{20} auto_cleanup                true\n\
             \u{20} auto_cleanup_keep           \"30d\"\n\
             \u{20} auto_cleanup_interval_secs  86400\n\
             \u{20} health_check_interval_secs  300\n\
             \u{20} skip_unchanged              true (as the file says)\n\
             \u{20} log_level                   info\n\
             \u{20} socket                      /run/s.sock\n\
             \u{20} state directory             /state\n\
             \u{20} file                        /etc/c.toml"
        );
    }
}
