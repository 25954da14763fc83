//! The configuration file: a TOML file that may be absent, with keys that may be missing.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cofferdam_protocol::ckpt::CleanupRetention;
use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, Value};

use crate::disk::Disk;
use crate::durable;
use crate::path::Name;

/// The settings, each with its default where the file says nothing. Keys the file has beyond these are ignored.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Whether snapshots are removed on schedule.
    pub auto_cleanup: bool,
    /// What scheduled clean-up leaves.
    pub auto_cleanup_keep: CleanupRetention,
    /// Seconds between two scheduled clean-ups; 0 disables them.
    pub auto_cleanup_interval_secs: u64,
    /// Seconds between two health checks; 0 disables them.
    pub health_check_interval_secs: u64,
    /// Whether a checkpoint of a tree that equals the newest snapshot's is skipped.
    pub skip_unchanged: bool,
    /// The `[backend]` section.
    pub backend: BackendConfig,
}

/// The `[backend]` section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct BackendConfig {
    /// Which engine; the command line wins.
    #[serde(rename = "type")]
    pub kind: BackendKind,
    /// The `[backend.btrfs-loop]` section.
    #[serde(rename = "btrfs-loop")]
    pub btrfs_loop: LoopConfig,
}

/// Which engine keeps the snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// Whatever suits this machine.
    #[default]
    Auto,
    /// The one that works on any filesystem.
    Store,
    /// Kernel snapshots on a btrfs filesystem that is mounted already.
    BtrfsBase,
    /// Kernel snapshots in a btrfs image.
    BtrfsLoop,
}

/// The `[backend.btrfs-loop]` section. The store engine reads and checks it, and has no use for it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct LoopConfig {
    /// Size of the image in GB.
    pub img_size: u64,
    /// The most of the host's filesystem that the image may take, 0 to 100.
    pub img_max_percent: f64,
}

/// One key to change in the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// `auto_cleanup`.
    AutoCleanup(bool),
    /// `auto_cleanup_keep`.
    AutoCleanupKeep(CleanupRetention),
    /// `auto_cleanup_interval_secs`.
    AutoCleanupIntervalSecs(u64),
    /// `health_check_interval_secs`.
    HealthCheckIntervalSecs(u64),
    /// `skip_unchanged`.
    SkipUnchanged(bool),
    /// `backend.btrfs-loop.img_size`.
    ImgSize(u64),
    /// `backend.btrfs-loop.img_max_percent`.
    ImgMaxPercent(f64),
}

/// Why a configuration is not used. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// While doing what.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// It is not TOML, or a key has a value of the wrong type.
    #[error("{}{}: {message}", path.display(), line.map(|n| format!(" line {n}")).unwrap_or_default())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// A key has a value outside its range.
    #[error("{}: {key} is {value}; it must be {range}", path.display())]
    OutOfRange {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        range: &'static str,
    },
}

/// The result of reading or changing a configuration.
pub type Result<T> = std::result::Result<T, ConfigError>;

/// A configuration file is a page; whatever is larger is another file.
const MAX_BYTES: u64 = 1 << 20;

impl Default for Config {
    fn default() -> Self {
        Self {
            auto_cleanup: false,
            auto_cleanup_keep: CleanupRetention::Count(20),
            auto_cleanup_interval_secs: 86_400,
            health_check_interval_secs: 300,
            skip_unchanged: false,
            backend: BackendConfig::default(),
        }
    }
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self { img_size: 30, img_max_percent: 40.0 }
    }
}

impl Config {
    /// What the file at `path` says; the defaults if there is none.
    pub fn load(path: &Path) -> Result<Self> {
        match read(path) {
            Ok(bytes) => Self::parse(path, &text(path, bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(io_error("cannot read", path, source)),
        }
    }

    /// Reads the text of the file that `path` names in errors.
    fn parse(path: &Path, text: &str) -> Result<Self> {
        let config: Self = toml_edit::de::from_str(text)
            .map_err(|error| syntax(path, text, error.message(), error.span()))?;
        config.check_ranges(path)?;
        Ok(config)
    }

    fn check_ranges(&self, path: &Path) -> Result<()> {
        let LoopConfig { img_size, img_max_percent } = &self.backend.btrfs_loop;
        let out_of_range = |key, value: &dyn fmt::Display, range| ConfigError::OutOfRange {
            path: path.to_owned(),
            key,
            value: value.to_string(),
            range,
        };
        if *img_size == 0 {
            return Err(out_of_range("img_size", img_size, "at least 1"));
        }
        // Not a number is in no range.
        if !(0.0..=100.0).contains(img_max_percent) {
            return Err(out_of_range("img_max_percent", img_max_percent, "0 to 100"));
        }
        Ok(())
    }
}

/// Where the file is when the command line does not say: `/etc/ws-ckpt/config.toml` for root, else
/// `$XDG_CONFIG_HOME/ws-ckpt/config.toml`, else `~/.config/ws-ckpt/config.toml`. `var` gives the environment. `None`
/// for a user without a home.
pub fn default_path(uid: u32, var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if uid == 0 {
        return Some(PathBuf::from("/etc/ws-ckpt/config.toml"));
    }
    // A relative one is to be ignored, says the XDG specification.
    let absolute = |name| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("ws-ckpt/config.toml"))
}

/// Changes keys of the file and leaves everything else in it, comments included, as it is. The result is checked
/// before anything is written. A missing file and its directory are made. Returns the new configuration.
pub fn update(disk: &Disk, path: &Path, settings: &[Setting]) -> Result<Config> {
    // Through a link, so that a file kept elsewhere is changed there.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (old, mode) = match read(path) {
        Ok(bytes) => (text(path, bytes)?, mode_of(path)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (String::new(), Mode::from_raw_mode(0o644)),
        Err(source) => return Err(io_error("cannot read", path, source)),
    };
    let mut document: DocumentMut = old
        .parse()
        .map_err(|error: toml_edit::TomlError| syntax(path, &old, error.message(), error.span()))?;
    for setting in settings {
        set(&mut document, setting).ok_or_else(|| ConfigError::Syntax {
            path: path.to_owned(),
            line: None,
            message: "backend and backend.btrfs-loop must be tables".to_owned(),
        })?;
    }
    let new = document.to_string();
    let config = Config::parse(path, &new)?;
    write(disk, path, new.as_bytes(), mode).map_err(|source| io_error("cannot write", path, source))?;
    Ok(config)
}

/// Sets one key; `None` if something that is no table stands where a table must.
fn set(document: &mut DocumentMut, setting: &Setting) -> Option<()> {
    let integer = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let root = document.as_table_mut();
    match setting {
        Setting::AutoCleanup(on) => put(root, "auto_cleanup", (*on).into()),
        Setting::AutoCleanupKeep(CleanupRetention::Count(count)) => {
            put(root, "auto_cleanup_keep", i64::from(*count).into());
        }
        Setting::AutoCleanupKeep(CleanupRetention::Age(age)) => {
            put(root, "auto_cleanup_keep", age.as_str().into());
        }
        Setting::AutoCleanupIntervalSecs(secs) => put(root, "auto_cleanup_interval_secs", integer(*secs)),
        Setting::HealthCheckIntervalSecs(secs) => put(root, "health_check_interval_secs", integer(*secs)),
        Setting::SkipUnchanged(on) => put(root, "skip_unchanged", (*on).into()),
        Setting::ImgSize(size) => put(loop_section(root)?, "img_size", integer(*size)),
        Setting::ImgMaxPercent(percent) => put(loop_section(root)?, "img_max_percent", (*percent).into()),
    }
    Some(())
}

/// Replaces a value and keeps what stands around it.
fn put(table: &mut dyn toml_edit::TableLike, key: &str, mut value: Value) {
    match table.get_mut(key) {
        Some(item) => {
            if let Some(old) = item.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(value);
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

fn loop_section(root: &mut Table) -> Option<&mut dyn toml_edit::TableLike> {
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let backend = root.entry("backend").or_insert_with(implicit).as_table_like_mut()?;
    backend.entry("btrfs-loop").or_insert_with(implicit).as_table_like_mut()
}

/// Writes the file, making its directory if need be.
fn write(disk: &Disk, path: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let dir = path.parent().ok_or_else(invalid)?;
    let name = path.file_name().and_then(|name| Name::new(name.as_bytes()).ok()).ok_or_else(invalid)?;
    durable::make_dirs(disk, dir, Mode::from_raw_mode(0o755))?;
    let dir = rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    durable::write_atomic(disk, dir, &name, bytes, mode)
}

/// Reads a file, or as much of it as shows that it is too large.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn mode_of(path: &Path) -> Result<Mode> {
    let metadata = std::fs::metadata(path).map_err(|source| io_error("cannot read", path, source))?;
    Ok(Mode::from_raw_mode(metadata.permissions().mode() & 0o7777))
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String> {
    let bad = |message: &str| ConfigError::Syntax {
        path: path.to_owned(),
        line: None,
        message: message.to_owned(),
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(bad("more than a mebibyte is no configuration"));
    }
    String::from_utf8(bytes).map_err(|_| bad("not UTF-8 text"))
}

fn syntax(path: &Path, text: &str, message: &str, span: Option<std::ops::Range<usize>>) -> ConfigError {
    let line = span.and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    // One line, whatever the parser says.
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    ConfigError::Syntax { path: path.to_owned(), line, message }
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> ConfigError {
    ConfigError::Io { what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config> {
        Config::parse(Path::new("config.toml"), text)
    }

    #[test]
    fn an_absent_or_empty_file_means_the_defaults() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Config::load(&dir.path().join("none.toml")).unwrap(), Config::default());
        assert_eq!(parse("").unwrap(), Config::default());
        assert_eq!(Config::default().auto_cleanup_keep, CleanupRetention::Count(20));
    }

    #[test]
    fn every_key_is_read_and_unknown_ones_are_ignored() {
        let config = parse(
            "auto_cleanup = true\nauto_cleanup_keep = \"30d\"\nauto_cleanup_interval_secs = 0\n\
             health_check_interval_secs = 60\nskip_unchanged = true\nfuture = [1]\n\
             [backend]\ntype = \"btrfs-loop\"\n[backend.btrfs-base]\nbtrfs_mount = \"/x\"\n\
             [backend.btrfs-loop]\nimg_size = 7\nimg_max_percent = 12.5\n",
        )
        .unwrap();
        assert_eq!(
            config,
            Config {
                auto_cleanup: true,
                auto_cleanup_keep: "30d".parse().unwrap(),
                auto_cleanup_interval_secs: 0,
                health_check_interval_secs: 60,
                skip_unchanged: true,
                backend: BackendConfig {
                    kind: BackendKind::BtrfsLoop,
                    btrfs_loop: LoopConfig { img_size: 7, img_max_percent: 12.5 },
                },
            }
        );
    }

    #[test]
    fn a_percentage_may_be_written_without_a_point() {
        let config = parse("[backend.btrfs-loop]\nimg_max_percent = 40\n").unwrap();
        assert_eq!(config.backend.btrfs_loop.img_max_percent, 40.0);
    }

    #[test]
    fn a_bad_value_is_an_error_on_one_line_that_says_where() {
        for (text, expected) in [
            ("auto_cleanup = maybe", "config.toml line 1: "),
            ("\nauto_cleanup = 3", "config.toml line 2: "),
            ("auto_cleanup_keep = -1", "config.toml line 1: "),
            ("auto_cleanup_keep = \"soon\"", "'soon' is not a duration"),
            ("health_check_interval_secs = -5", "config.toml line 1: "),
            ("[backend]\ntype = \"zfs\"", "config.toml line 2: "),
            ("[backend.btrfs-loop]\nimg_max_percent = 200", "img_max_percent is 200; it must be 0 to 100"),
            ("[backend.btrfs-loop]\nimg_max_percent = nan", "img_max_percent is NaN"),
            ("[backend.btrfs-loop]\nimg_size = 0", "img_size is 0"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn an_update_keeps_comments_and_keys_it_does_not_know() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, "# mine\nauto_cleanup = false # for now\nfuture = 1\n").unwrap();
        let settings = [
            Setting::AutoCleanup(true),
            Setting::AutoCleanupKeep("30D".parse().unwrap()),
            Setting::ImgMaxPercent(12.5),
        ];
        let config = update(&Disk::default(), &path, &settings).unwrap();
        assert_eq!(Config::load(&path).unwrap(), config);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "# mine\nauto_cleanup = true # for now\nfuture = 1\nauto_cleanup_keep = \"30D\"\n\n\
             [backend.btrfs-loop]\nimg_max_percent = 12.5\n"
        );
    }

    #[test]
    fn an_update_that_would_be_invalid_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        for (before, setting) in [
            ("auto_cleanup = true\n", Setting::ImgMaxPercent(200.0)),
            ("backend = 3\n", Setting::ImgSize(3)),
            ("not toml", Setting::AutoCleanup(true)),
        ] {
            std::fs::write(&path, before).unwrap();
            assert!(update(&Disk::default(), &path, &[setting]).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
        }
    }

    #[test]
    fn an_update_makes_a_missing_file_and_follows_a_link_to_an_existing_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/config.toml");
        update(&Disk::default(), &path, &[Setting::SkipUnchanged(true)]).unwrap();
        assert!(Config::load(&path).unwrap().skip_unchanged);
        let link = dir.path().join("link.toml");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        update(&Disk::default(), &link, &[Setting::HealthCheckIntervalSecs(7)]).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Config::load(&path).unwrap().health_check_interval_secs, 7);
    }

    #[test]
    fn the_default_path_follows_root_then_xdg_then_home() {
        let find = |uid, vars: &[(&str, &str)]| {
            let vars: Vec<_> = vars.iter().map(|(k, v)| (k.to_string(), OsString::from(v))).collect();
            default_path(uid, |name| vars.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(find(0, &[("HOME", "/root")]), path("/etc/ws-ckpt/config.toml"));
        assert_eq!(find(7, &[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), path("/x/ws-ckpt/config.toml"));
        assert_eq!(
            find(7, &[("XDG_CONFIG_HOME", "x"), ("HOME", "/h")]),
            path("/h/.config/ws-ckpt/config.toml")
        );
        assert_eq!(find(7, &[]), None);
    }
}
