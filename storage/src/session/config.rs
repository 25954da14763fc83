//! Settings, from up to three files; a later one wins key by key.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cofferdam_protocol::session::{bounded, limits};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::Deserialize;

/// What the files say, and what is in effect where they do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether conversations are written at all. Reading, resuming and removing work in any case.
    pub auto_persist: bool,
    /// Where the store is, as written: `~`, absolute, or relative to the workspace.
    pub persist_dir: String,
    /// What answers (headless only).
    pub ai: Ai,
}

/// Who answers in a conversation. The project's file does not choose the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ai {
    /// The name of the provider that was chosen. Where none was, the one named `default` is in effect.
    pub active_provider: Option<String>,
    /// The model, if it is not the provider's own.
    pub active_model: Option<String>,
    /// The table of the provider in effect.
    pub provider: Option<Provider>,
}

/// One provider's table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Provider {
    /// `mock` or `command`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its model.
    pub model: Option<String>,
    /// The program and its arguments (`command` only).
    pub command: Vec<String>,
    /// What the program writes: `text` or `events` (`command` only).
    pub output: Option<String>,
}

/// Where the files are, and what wins over them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The system's file, `/etc/copilot-shell/config.toml`.
    pub system: Option<PathBuf>,
    /// The home directory; the user's file is `.copilot-shell/config.toml` in it.
    pub home: Option<PathBuf>,
    /// The provider that the environment names.
    pub provider: Option<String>,
}

/// Where the file is in the home directory and in a workspace.
pub(super) const FILE: &str = ".copilot-shell/config.toml";

/// A configuration file is a page; whatever is larger is another file.
const MAX_BYTES: u64 = 1 << 20;

/// How many bytes of what is wrong with a file are told.
const LONGEST_ERROR: usize = 512;

/// The provider in effect where none was chosen.
const DEFAULT_PROVIDER: &str = "default";

impl Config {
    /// The store's directory if no file names one.
    pub const DEFAULT_DIR: &str = "~/.copilot-shell/cosh-core/sessions";

    /// Reads the files, the project's being `.copilot-shell/config.toml` in `workspace` (none for `None`). One that
    /// cannot be used is left out as a whole, and a warning says so. Writes nothing.
    pub fn load(places: &Places, workspace: Option<&Path>) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let mut layers = Layers::default();
        let user = places.home.as_ref().map(|home| home.join(FILE));
        for path in places.system.iter().chain(&user) {
            layers.take(read(path, &mut warnings));
        }
        if let Some(path) = workspace.map(|workspace| workspace.join(FILE)) {
            let mut layer = read(&path, &mut warnings);
            if layer.ai.active_provider.is_some() || !layer.ai.providers.is_empty() {
                warnings.push(format!(
                    "{}: a project does not choose the provider; [ai] active_provider and providers are ignored",
                    path.display()
                ));
            }
            layer.ai.active_provider = None;
            layer.ai.providers.clear();
            layers.take(layer);
        }
        (layers.settle(places.provider.clone()), warnings)
    }
}

/// One file, or several of them one over the other. Keys beyond these are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Layers {
    session: SessionKeys,
    ai: AiKeys,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionKeys {
    auto_persist: Option<bool>,
    persist_dir: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AiKeys {
    active_provider: Option<String>,
    active_model: Option<String>,
    providers: HashMap<String, Provider>,
}

impl Layers {
    /// Puts a layer over this one. A provider's table replaces one of its name as a whole.
    fn take(&mut self, above: Self) {
        let Self { session, ai } = above;
        self.session.auto_persist = session.auto_persist.or(self.session.auto_persist);
        self.session.persist_dir = session.persist_dir.or(self.session.persist_dir.take());
        self.ai.active_provider = ai.active_provider.or(self.ai.active_provider.take());
        self.ai.active_model = ai.active_model.or(self.ai.active_model.take());
        self.ai.providers.extend(ai.providers);
    }

    fn settle(mut self, provider: Option<String>) -> Config {
        let active_provider = provider.or(self.ai.active_provider);
        Config {
            auto_persist: self.session.auto_persist.unwrap_or(true),
            persist_dir: self.session.persist_dir.unwrap_or_else(|| Config::DEFAULT_DIR.to_owned()),
            ai: Ai {
                provider: self.ai.providers.remove(active_provider.as_deref().unwrap_or(DEFAULT_PROVIDER)),
                active_provider,
                active_model: self.ai.active_model,
            },
        }
    }
}

/// What a file says: nothing, if it is not there or cannot be used.
fn read(path: &Path, warnings: &mut Vec<String>) -> Layers {
    let parsed = match text(path) {
        Ok(text) => toml_edit::de::from_str(&text).map_err(|error| error.message().to_owned()),
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::NOTDIR)) => {
            return Layers::default();
        }
        Err(error) => Err(error.to_string()),
    };
    parsed.unwrap_or_else(|error| {
        // A path may be as long as a request, and an error repeats what is in the file.
        let path = bounded(&path.to_string_lossy(), limits::WORKSPACE);
        warnings.push(format!("{path} is ignored: {}", bounded(&error, LONGEST_ERROR)));
        Layers::default()
    })
}

/// The text of a regular file, links followed. Waits for nobody.
pub(super) fn text(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use cofferdam_tests::files::{fifo, mkdir, write};

    use super::*;

    /// A system's file, a home and a workspace.
    struct Site(tempfile::TempDir);

    impl Site {
        fn new(system: &str, user: &str, project: &str) -> Self {
            let site = Self(tempfile::tempdir().unwrap());
            for (name, text) in [("system.toml", system), ("home", user), ("workspace", project)] {
                if !text.is_empty() {
                    let path = site.0.path().join(name);
                    write(if name == "system.toml" { path } else { path.join(FILE) }, text);
                }
            }
            site
        }

        fn places(&self) -> Places {
            let home = Some(self.0.path().join("home"));
            Places { system: Some(self.0.path().join("system.toml")), home, provider: None }
        }

        fn load(&self) -> (Config, Vec<String>) {
            Config::load(&self.places(), Some(&self.0.path().join("workspace")))
        }
    }

    #[test]
    fn without_a_file_everything_is_as_documented_and_nothing_is_made() {
        let site = Site::new("", "", "");
        let (config, warnings) = site.load();
        assert_eq!((config.auto_persist, config.persist_dir.as_str()), (true, Config::DEFAULT_DIR));
        assert_eq!((config.ai, warnings), (Ai::default(), vec![]));
        assert_eq!(std::fs::read_dir(site.0.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_later_file_wins_key_by_key() {
        let site = Site::new(
            "[session]\nauto_persist = false\npersist_dir = \"a\"\n[ai]\nactive_model = \"one\"\nactive_provider = \"p\"",
            "[session]\npersist_dir = \"b\"\n[ai]\nactive_model = \"two\"",
            "[session]\nauto_persist = true\n[ai]\nactive_model = \"three\"\n[other]\nkey = 1",
        );
        let (config, warnings) = site.load();
        assert_eq!((config.auto_persist, config.persist_dir.as_str()), (true, "b"));
        assert_eq!(config.ai.active_model.as_deref(), Some("three"));
        assert_eq!(config.ai.active_provider.as_deref(), Some("p"));
        assert!(warnings.is_empty(), "{warnings:?}");
        assert!(!Config::load(&site.places(), None).0.auto_persist);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_left_out_as_a_whole_and_said_to_be() {
        let good = "[session]\npersist_dir = \"b\"";
        for bad in [
            "[session]\nauto_persist = false\npersist_dir = 5",
            "[session\n",
            "session = 1",
            "[session]\nauto_persist = \"no\"",
        ] {
            let (config, warnings) = Site::new("", good, bad).load();
            assert_eq!((config.auto_persist, config.persist_dir.as_str()), (true, "b"), "{bad}");
            assert_eq!(warnings.len(), 1, "{bad}");
            assert!(warnings[0].contains("workspace/.copilot-shell/config.toml"), "{warnings:?}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let site = Site::new("", "", "");
        fifo(site.0.path().join("system.toml"));
        mkdir(site.0.path().join("home").join(FILE));
        write(site.0.path().join("workspace").join(FILE), "#".repeat(1 << 20) + "#");
        let (config, warnings) = site.load();
        assert!(config.auto_persist);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }

    #[test]
    fn a_warning_is_short_however_long_the_path_is_or_what_is_wrong_in_the_file() {
        let long = "a".repeat(300_000);
        let (_, path) = Config::load(&Places::default(), Some(Path::new(&long)));
        let (_, content) = Site::new("", "", &format!("[session]\nauto_persist = \"{long}\"")).load();
        for warnings in [path, content] {
            assert_eq!(warnings.len(), 1);
            let most = limits::WORKSPACE + LONGEST_ERROR + 100;
            assert!(warnings[0].len() < most, "{}", warnings[0].len());
        }
    }

    #[test]
    fn a_provider_is_the_users_choice_and_its_table_is_replaced_as_a_whole() {
        let system = "[ai.providers.p]\ntype = \"mock\"\nmodel = \"m\"";
        let user =
            "[ai]\nactive_provider = \"p\"\n[ai.providers.p]\ntype = \"command\"\ncommand = [\"x\", \"y\"]";
        let project = "[ai]\nactive_provider = \"q\"\n[ai.providers.p]\ntype = \"evil\"";
        let site = Site::new(system, user, project);
        let (config, warnings) = site.load();
        let provider = config.ai.provider.unwrap();
        assert_eq!((provider.kind.as_str(), provider.model), ("command", None));
        assert_eq!(provider.command, ["x", "y"]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    #[test]
    fn the_environment_chooses_before_the_files_and_default_is_what_nobody_chose() {
        let tables = "[ai.providers.default]\ntype = \"mock\"\n[ai.providers.other]\ntype = \"command\"";
        let site = Site::new(tables, "", "");
        let (config, _) = site.load();
        assert_eq!((config.ai.active_provider, config.ai.provider.unwrap().kind), (None, "mock".to_owned()));
        let places = Places { provider: Some("other".to_owned()), ..site.places() };
        assert_eq!(Config::load(&places, None).0.ai.provider.unwrap().kind, "command");
    }
}
