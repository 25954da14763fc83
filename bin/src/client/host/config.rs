//! `cofferdam config`: the configuration of tasks.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use cofferdam_protocol::host::{GetState, SetConfig};
use cofferdam_protocol::pod::Config as PodConfig;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::{Run, paths};
use crate::client::arguments::{Connection, Shown};
use crate::client::shown::one_line;

/// What `cofferdam config` is followed by.
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Show all of it, or one key
    Get(Get),
    /// Change some keys; what is out of range is adjusted, and said
    Set(Set),
}

#[derive(Args, Debug)]
pub(super) struct Get {
    /// Which key, such as timeoutMs
    key: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Args, Debug)]
#[command(
    after_help = "For example: cofferdam config set sandboxRoot=~/pods timeoutMs=300000 allowedTools=bash,read,write"
)]
pub(super) struct Set {
    /// Keys with their new values: JSON, or text as it is; items of a list may be separated by commas
    #[arg(value_name = "KEY=VALUE", required = true)]
    changes: Vec<String>,
    #[command(flatten)]
    shown: Shown,
}

impl Config {
    /// Carries the verb out.
    pub(crate) fn run(&self) -> ExitCode {
        super::run(&self.connection, |run| self.verb.run(run))
    }
}

impl Verb {
    pub(super) fn run(&self, run: &mut Run) -> Result<(), Failure> {
        match self {
            Self::Get(verb) => verb.run(run),
            Self::Set(verb) => verb.run(run),
        }
    }
}

impl Get {
    fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let config = keys(&current(run)?);
        let json = self.shown.as_json(&mut run.terminal);
        let Some(key) = &self.key else {
            return match json {
                true => Ok(run.terminal.print_json(&config)?),
                false => Ok(run.terminal.print(as_lines(&config))?),
            };
        };
        let known = || config.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let value = config
            .get(key)
            .ok_or_else(|| Failure::Said(format!("there is no key {key}; there are {}", known())))?;
        match json {
            true => Ok(run.terminal.print_json(value)?),
            false => Ok(run.terminal.print(plain(value))?),
        }
    }
}

impl Set {
    fn run(&self, run: &mut Run) -> Result<(), Failure> {
        let patch = patch(&self.changes)?;
        let before = keys(&current(run)?);
        let patched = run.control.host(&SetConfig { patch: patch.clone() })?;
        let after = keys(&patched.config);
        let applied: Vec<_> =
            patch.keys().filter(|key| is_applied(key, &before, &after, &patched.messages)).collect();
        if self.shown.as_json(&mut run.terminal) {
            run.terminal.print_json(&patched)?;
        } else {
            for key in &applied {
                run.terminal.print(format_args!("{key} = {}", plain(&after[*key])))?;
            }
        }
        for message in &patched.messages {
            run.terminal.warn(one_line(message));
        }
        match applied.is_empty() {
            true => Err(Failure::Said("nothing was changed".to_owned())),
            false => Ok(()),
        }
    }
}

/// The configuration as it is stored.
fn current(run: &Run) -> Result<PodConfig, Failure> {
    let state = run.control.host(&GetState::default())?;
    let why = || match state.core.message.as_str() {
        "" => "the configuration cannot be read now; try again".to_owned(),
        message => format!("the configuration cannot be read now: {message}"),
    };
    state.config.ok_or_else(|| Failure::Said(why()))
}

/// The configuration by its keys.
fn keys(config: &PodConfig) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(keys)) => keys,
        // A configuration is an object.
        _ => Map::new(),
    }
}

/// Whether the key has the value that was asked for, or the nearest to it. Each key that was not taken as it was given has
/// a message.
fn is_applied(
    key: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    messages: &[String],
) -> bool {
    let said =
        messages.iter().any(|message| message.strip_prefix(key).is_some_and(|rest| rest.starts_with(": ")));
    after.contains_key(key) && (!said || before.get(key) != after.get(key))
}

/// What is to be changed.
fn patch(changes: &[String]) -> Result<Map<String, Value>, Failure> {
    let kinds = keys(&PodConfig::default());
    let mut patch = Map::new();
    for change in changes {
        let (key, text) = change
            .split_once('=')
            .ok_or_else(|| Failure::Said(format!("{change} is no change; write KEY=VALUE")))?;
        let key = key.trim();
        if patch.insert(key.to_owned(), value(key, text, kinds.get(key))?).is_some() {
            return Err(Failure::Said(format!("{key} is given twice")));
        }
    }
    Ok(patch)
}

/// A value as it was meant: `like` is another value of this key.
fn value(key: &str, text: &str, like: Option<&Value>) -> Result<Value, Failure> {
    let json = serde_json::from_str::<Value>(text).ok();
    Ok(match (like, json) {
        (Some(Value::String(_)), Some(Value::String(given))) => path_or_text(key, &given)?,
        (Some(Value::String(_)), _) => path_or_text(key, text)?,
        (Some(Value::Array(_)), Some(list @ Value::Array(_))) => list,
        (Some(Value::Array(_)), _) => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(Value::from).collect()
        }
        (_, Some(value)) => value,
        (_, None) => text.into(),
    })
}

fn path_or_text(key: &str, text: &str) -> Result<Value, Failure> {
    match (key, text) {
        // Nothing is a value: no root.
        ("sandboxRoot", root) if !root.is_empty() => Ok(paths::absolute(root)?.into()),
        _ => Ok(text.into()),
    }
}

fn as_lines(config: &Map<String, Value>) -> String {
    let width = config.keys().map(String::len).max().unwrap_or_default();
    let line =
        |(key, value): (&String, &Value)| format!("{key:<width$}  {}", plain(value)).trim_end().to_owned();
    config.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A value as it can be given to `config set`.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(change: &str, expected: Value) {
        let patch = patch(&[change.to_owned()]).unwrap();
        assert_eq!(Value::Object(patch), expected, "{change}");
    }

    #[test]
    fn values_are_json_or_text_as_their_key_wants_it() {
        check("timeoutMs=60000", json!({"timeoutMs": 60000}));
        check("timeoutMs=soon", json!({"timeoutMs": "soon"}));
        check("allowWrites=false", json!({"allowWrites": false}));
        check("allowedTools=bash, read,", json!({"allowedTools": ["bash", "read"]}));
        check(r#"allowedTools=["a,b"]"#, json!({"allowedTools": ["a,b"]}));
        check("allowedTools=", json!({"allowedTools": []}));
        check("presetId=123", json!({"presetId": "123"}));
        check(r#"presetId="a b""#, json!({"presetId": "a b"}));
        check("logLevel=off", json!({"logLevel": "off"}));
        check("sandboxRoot=", json!({"sandboxRoot": ""}));
        check("sandboxRoot=/a=b/", json!({"sandboxRoot": "/a=b"}));
        check("what=[1]", json!({"what": [1]}));
        check("what=ever", json!({"what": "ever"}));
    }

    #[test]
    fn a_relative_root_is_made_absolute() {
        let here = std::env::current_dir().unwrap();
        check("sandboxRoot=pods", json!({"sandboxRoot": here.join("pods").to_str().unwrap()}));
    }

    #[test]
    fn what_is_no_change_and_what_is_given_twice_is_refused() {
        let refused = |changes: &[&str]| {
            let changes: Vec<_> = changes.iter().map(|change| (*change).to_owned()).collect();
            patch(&changes).unwrap_err().to_string()
        };
        assert_eq!(refused(&["timeoutMs"]), "timeoutMs is no change; write KEY=VALUE");
        assert_eq!(refused(&["a=1", "a=2"]), "a is given twice");
    }

    #[test]
    fn a_key_with_a_message_is_applied_only_if_its_value_changed() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let (before, after) = (map(json!({"a": 1, "b": 2, "ab": 3})), map(json!({"a": 1, "b": 8, "ab": 3})));
        let messages =
            ["a: must be true or false; ignored".to_owned(), "b: 10 is too much; 8 is used".to_owned()];
        for (key, applied) in [("a", false), ("b", true), ("ab", true), ("c", false)] {
            assert_eq!(is_applied(key, &before, &after, &messages), applied, "{key}");
        }
    }

    #[test]
    fn a_configuration_reads_as_it_can_be_written() {
        let config = keys(&PodConfig::default());
        assert_eq!(config.len(), 19);
        let text = as_lines(&config);
        assert!(text.contains("\nallowedTools         pwsh,bash,read,write,edit,glob,grep\n"), "{text}");
        assert!(text.contains("\nsandboxRoot\n"), "{text}");
        for (key, value) in &config {
            if key != "sandboxRoot" {
                check(&format!("{key}={}", plain(value)), json!({ key: value }));
            }
        }
    }
}
