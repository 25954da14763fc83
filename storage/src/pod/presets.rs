//! Presets of agents' programs, from a TOML file. One that cannot be used stays in the list, with the reason.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use toml_edit::{ArrayOfTables, DocumentMut, Table};

/// A file of presets is a few pages; whatever is larger is another file.
const MAX_BYTES: u64 = 1 << 20;
/// A file of presets for common agents' command lines, to be taken from.
pub const SAMPLE: &str = include_str!("presets/sample.toml");
/// The longest id, in bytes.
const MAX_ID: usize = 64;

/// A program that is run for each turn of a task: one `[[presets]]` of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandPreset {
    /// Its id, as the configuration names it: lower-case letters, digits, `-`, `_` and `.`, at most 64.
    pub id: String,
    /// What people call it; its id if that is left out.
    #[serde(default)]
    pub name: String,
    /// Program and arguments of the first turn.
    pub argv_first: Vec<Argument>,
    /// Those of every further one. Without it an agent has one turn, and cannot be resumed.
    #[serde(default)]
    pub argv_follow_up: Option<Vec<Argument>>,
    /// How the program gets what the agent is told.
    #[serde(default)]
    pub prompt: PromptBy,
    /// The tools without which it makes no sense.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Paths relative to the user's home that the program can read, in the private home it gets.
    #[serde(default)]
    pub from_home: Vec<PathBuf>,
    /// Whether its home stays from one turn of a task to the next, for what it must remember. Otherwise each turn has a new one.
    #[serde(default)]
    pub keep_home: bool,
    /// Absolute paths that it can write besides the task's directory.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Variables of the daemon's environment that it gets.
    #[serde(default)]
    pub env: Vec<String>,
    /// What its standard output is.
    #[serde(default)]
    pub output: OutputForm,
    /// Our names for its tools, by its own; a tool that is not here has the same name. For what it prints as `jsonl`, and for
    /// `{agent_tools}`.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
}

/// One argument, or several that go together: those are left out if a placeholder in them stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// Always there.
    One(String),
    /// There if all their placeholders stand for something.
    Together(Vec<String>),
}

/// How a program gets what the agent is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// In place of `{prompt}`.
    #[default]
    Argument,
    /// On standard input.
    Stdin,
}

/// What a program's standard output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputForm {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object a line: the headless stream of the session contract, or one of those that common agent programs print.
    Jsonl,
}

/// A preset that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPreset {
    /// Its id, or what stands for it.
    pub id: String,
    /// Why, and what to do.
    pub why: String,
}

/// The presets of a file, in its order. A file that cannot be read is one preset that cannot be used; one that `may_be_absent`
/// and is has none.
pub fn load(path: &Path, may_be_absent: bool) -> Vec<Result<CommandPreset, BrokenPreset>> {
    match read(path) {
        Ok(text) => parse(path, &text),
        Err(error) if may_be_absent && error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => vec![Err(unusable(path, &format!("{} cannot be read: {error}", path.display())))],
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is longer than 1 MiB")),
        false => Ok(text),
    }
}

/// What stands for the presets of a file that has none to offer.
fn unusable(path: &Path, why: &str) -> BrokenPreset {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    BrokenPreset { id: name, why: why.to_owned() }
}

fn parse(path: &Path, text: &str) -> Vec<Result<CommandPreset, BrokenPreset>> {
    let document = match text.parse::<DocumentMut>() {
        Ok(document) => document,
        Err(error) => {
            let why = format!("{} is not TOML: {}", path.display(), error.to_string().trim_end());
            return vec![Err(unusable(path, &why))];
        }
    };
    let none = ArrayOfTables::new();
    let tables = match document.get("presets") {
        None => &none,
        Some(item) => match item.as_array_of_tables() {
            Some(tables) => tables,
            None => {
                let why = format!("presets in {} must be written as [[presets]]", path.display());
                return vec![Err(unusable(path, &why))];
            }
        },
    };
    let mut presets: Vec<Result<CommandPreset, BrokenPreset>> = Vec::new();
    for (number, table) in (1..).zip(tables.iter()) {
        let mut preset = preset(table, number);
        if let Ok(CommandPreset { id, .. }) = &preset
            && presets.iter().flatten().any(|former| former.id == *id)
        {
            let why = format!("another preset before it is called {id}, too; give it another id");
            preset = Err(BrokenPreset { id: format!("{id} ({number})"), why });
        }
        presets.push(preset);
    }
    presets
}

fn preset(table: &Table, number: usize) -> Result<CommandPreset, BrokenPreset> {
    let id = table.get("id").and_then(|id| id.as_str()).unwrap_or_default().to_owned();
    let broken = |why: String| {
        let id = if id.is_empty() { format!("preset {number}") } else { id.clone() };
        BrokenPreset { id, why }
    };
    let mut preset: CommandPreset = toml_edit::de::from_document(DocumentMut::from(table.clone()))
        .map_err(|error| broken(error.message().to_owned()))?;
    preset.check().map_err(broken)?;
    if preset.name.is_empty() {
        preset.name.clone_from(&preset.id);
    }
    Ok(preset)
}

impl CommandPreset {
    /// Why it cannot be used, if it cannot.
    fn check(&self) -> Result<(), String> {
        let in_id = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
        if self.id.is_empty() || self.id.len() > MAX_ID || !self.id.bytes().all(in_id) {
            return Err("its id must be of lower-case letters, digits, -, _ and ., at most 64".to_owned());
        }
        for (key, argv) in
            [("argv_first", Some(&self.argv_first)), ("argv_follow_up", self.argv_follow_up.as_ref())]
        {
            let Some(argv) = argv else { continue };
            if !matches!(argv.first(), Some(Argument::One(program)) if !program.is_empty()) {
                return Err(format!("{key} must begin with a program"));
            }
            let told = argv.iter().flat_map(Argument::texts).any(|text| text.contains("{prompt}"));
            if told != (self.prompt == PromptBy::Argument) {
                return Err(format!(
                    "{key} must contain {{prompt}} if prompt = \"argument\", and must not if prompt = \"stdin\""
                ));
            }
        }
        for path in &self.from_home {
            if path.as_os_str().is_empty()
                || !path.components().all(|part| matches!(part, Component::Normal(_)))
            {
                return Err(format!(
                    "from_home has {}; name a path below the home, without ..",
                    path.display()
                ));
            }
        }
        if let Some(path) = self.writable.iter().find(|path| !path.is_absolute()) {
            return Err(format!("writable has {}; name an absolute path", path.display()));
        }
        if self.tools.iter().any(|(theirs, ours)| theirs.is_empty() || ours.is_empty()) {
            return Err(
                "tools has a name that is empty; write tools = { \"Its name\" = \"our name\" }".to_owned()
            );
        }
        if let Some(name) = self.env.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("env has {name:?}; name a variable"));
        }
        Ok(())
    }
}

impl Argument {
    /// The texts it is made of.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        match self {
            Self::One(text) => std::slice::from_ref(text).iter(),
            Self::Together(texts) => texts.iter(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presets(text: &str) -> Vec<Result<CommandPreset, BrokenPreset>> {
        parse(Path::new("/s/pods.toml"), text)
    }

    #[track_caller]
    fn why(text: &str) -> (String, String) {
        let BrokenPreset { id, why } = presets(text).pop().unwrap().unwrap_err();
        (id, why)
    }

    #[test]
    fn a_preset_says_only_what_differs_from_the_usual() {
        let text = "[[presets]]\nid = 'a'\nargv_first = ['p', ['--model', '{model}'], '{prompt}']\n\
                    [[presets]]\nid = 'b'\nname = 'B'\nargv_first = ['p']\nargv_follow_up = ['p', '-c']\nprompt = 'stdin'\n\
                    needs = ['bash']\nfrom_home = ['.b']\nwritable = ['/b']\nkeep_home = true\nenv = ['B']\noutput = 'jsonl'\n\
                    tools = { B = 'bash' }\n";
        let [Ok(a), Ok(b)] = &presets(text)[..] else { panic!("{:?}", presets(text)) };
        assert_eq!((a.name.as_str(), a.prompt, &a.argv_follow_up), ("a", PromptBy::Argument, &None));
        assert_eq!(a.argv_first[1], Argument::Together(vec!["--model".to_owned(), "{model}".to_owned()]));
        assert_eq!((b.name.as_str(), b.prompt, b.output), ("B", PromptBy::Stdin, OutputForm::Jsonl));
        assert_eq!((a.output, b.tools["B"].as_str()), (OutputForm::Text, "bash"));
        assert_eq!((a.keep_home, b.keep_home), (false, true));
        assert_eq!(b.argv_follow_up.as_ref().map(Vec::len), Some(2));
    }

    #[test]
    fn the_sample_can_be_used_as_it_is() {
        let sample: Vec<_> = presets(SAMPLE).into_iter().map(Result::unwrap).collect();
        assert!(sample.len() >= 8);
        for preset in &sample {
            let told = |argv: &Vec<Argument>, part: &str| {
                argv.iter().flat_map(Argument::texts).any(|text| text.contains(part))
            };
            // What follows is a conversation only if the agent finds what it said before.
            let follow_up = preset.argv_follow_up.as_ref().unwrap();
            assert!(preset.keep_home || told(follow_up, "--restore-chat-history"), "{}", preset.id);
            assert_ne!(preset.argv_first, *follow_up, "{}", preset.id);
            assert_eq!(preset.output == OutputForm::Jsonl, !preset.tools.is_empty(), "{}", preset.id);
            // With `{agent_tools}` an agent has those that are allowed; others need all that they have.
            assert!(told(&preset.argv_first, "{agent_tools}") || preset.needs.contains(&"edit".to_owned()));
            let ours = ["bash", "read", "write", "edit", "glob", "grep"];
            assert!(preset.needs.iter().all(|tool| ours.contains(&tool.as_str())), "{}", preset.id);
        }
    }

    #[test]
    fn a_bad_preset_is_kept_with_its_reason_and_spoils_no_other() {
        let good = "[[presets]]\nid = 'good'\nargv_first = ['p', '{prompt}']\n";
        for (bad, part) in [
            ("id = 'x'", "argv_first"),
            ("argv_first = ['p', '{prompt}']", "id"),
            ("id = 'X'\nargv_first = ['p', '{prompt}']", "its id"),
            ("id = 'x'\nargv_first = []", "begin with a program"),
            ("id = 'x'\nargv_first = [['p'], '{prompt}']", "begin with a program"),
            ("id = 'x'\nargv_first = ['p']", "must contain {prompt}"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\nprompt = 'stdin'", "must not"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\nargv_follow_up = ['p']", "argv_follow_up"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\nfrom_home = ['../y']", "from_home"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\nfrom_home = ['/y']", "from_home"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\nwritable = ['y']", "writable"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\nenv = ['A=b']", "env"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\noutput = 'xml'", "xml"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\ntools = { A = '' }", "tools"),
            ("id = 'x'\nargv_first = ['p', '{prompt}']\nargv_frist = 1", "argv_frist"),
            ("id = 'good'\nargv_first = ['p', '{prompt}']", "another id"),
        ] {
            let text = format!("{good}[[presets]]\n{bad}\n");
            let all = presets(&text);
            assert!(all.len() == 2 && all[0].is_ok(), "{bad}: {all:?}");
            let (id, reason) = why(&text);
            assert!(!id.is_empty() && id != "good" && reason.contains(part), "{bad}: {id}: {reason}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_one_preset_that_says_so() {
        for text in ["[[presets", "presets = 1"] {
            assert_eq!(why(text).0, "pods.toml", "{text}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pods.toml");
        assert_eq!(load(&path, true), []);
        assert!(load(&path, false)[0].is_err());
        std::fs::write(&path, b"\xff").unwrap();
        assert!(load(&path, true)[0].is_err());
        assert_eq!(presets(""), []);
    }
}
