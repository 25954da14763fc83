//! The steps of a turn.

use std::io;
use std::path::{Path, PathBuf};

use actix::prelude::Recipient;
use cofferdam_storage::disk::Disk;
use cofferdam_storage::fs::Root;
use cofferdam_storage::path::RelPath;
use rustix::fs::{Mode, OFlags};
use tokio::sync::watch;

use super::{AgentEvent, scaled};

/// What an agent plays on.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) faster: u32,
    pub(super) task_dir: PathBuf,
    pub(super) may_write: bool,
    pub(super) system_prompt: String,
}

/// What a turn begins with.
pub(super) struct Cue {
    pub(super) turn: u64,
    pub(super) cancelled: watch::Receiver<bool>,
    pub(super) events: Recipient<AgentEvent>,
}

/// How a turn ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// So.
    Turn { reason: String, error: String },
    /// With its agent.
    Gone { message: String },
}

/// A line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Say(String),
    Think(String),
    Prompt,
    Tools(Vec<String>),
    Tool { name: String, input: String },
    Write { path: String, text: String },
    Sleep(u64),
    Hold,
    Stubborn,
    End { reason: String, error: String },
    Die(String),
}

impl Step {
    /// The step of a line; nothing for a blank one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        let (word, rest) = split(line);
        let own = str::to_owned;
        Some(match (word, rest) {
            ("", _) => return None,
            ("say", text) => Self::Say(own(text)),
            ("think", text) => Self::Think(own(text)),
            ("prompt", "") => Self::Prompt,
            ("tools", names) => Self::Tools(names.split(',').map(|name| own(name.trim())).collect()),
            ("tool", call) if !call.is_empty() => {
                let (name, input) = split(call);
                Self::Tool { name: own(name), input: own(input) }
            }
            ("write", file) if !file.is_empty() => {
                let (path, text) = split(file);
                Self::Write { path: own(path), text: own(text) }
            }
            ("hold", "") => Self::Hold,
            ("stubborn", "") => Self::Stubborn,
            ("end", how) if !how.is_empty() => {
                let (reason, error) = split(how);
                Self::End { reason: own(reason), error: own(error) }
            }
            ("die", message) => Self::Die(own(message)),
            ("sleep", ms) => match ms.parse() {
                Ok(ms) => Self::Sleep(ms),
                Err(_) => Self::Say(own(line)),
            },
            _ => Self::Say(own(line)),
        })
    }
}

/// The first word, and the rest.
fn split(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

impl Stage {
    /// Plays a script to its end, or until it is cancelled.
    pub(super) async fn play(self, script: String, cue: Cue) -> End {
        let Cue { turn, mut cancelled, events } = cue;
        // If nobody listens any more, nobody minds.
        let say = async |event| events.send(event).await.unwrap_or_default();
        say(AgentEvent::TurnStarted { turn }).await;
        let mut stubborn = false;
        for step in script.lines().filter_map(Step::parse) {
            stubborn |= step == Step::Stubborn;
            let minds = !stubborn;
            let ended = async {
                match step {
                    Step::Say(text) => say(AgentEvent::Text(text)).await,
                    Step::Think(text) => say(AgentEvent::Thinking(text)).await,
                    Step::Prompt => say(AgentEvent::Text(self.system_prompt.clone())).await,
                    Step::Tools(tools) => say(AgentEvent::Tools(tools)).await,
                    Step::Tool { name, input } => say(AgentEvent::ToolCall { name, input }).await,
                    Step::Write { path, text } => {
                        let input = path.clone();
                        say(AgentEvent::ToolCall { name: "write".to_owned(), input }).await;
                        say(AgentEvent::ToolResult { text: self.write(path, text).await }).await;
                    }
                    Step::Sleep(ms) => tokio::time::sleep(scaled(ms, self.faster)).await,
                    Step::Hold => std::future::pending().await,
                    Step::Stubborn => {}
                    Step::End { reason, error } => return Some(End::Turn { reason, error }),
                    Step::Die(message) => return Some(End::Gone { message }),
                }
                None
            };
            let ended = tokio::select! {
                biased;
                // The other end is dropped when the agent is disposed of, and this is not asked any more then.
                Ok(_) = cancelled.wait_for(|cancelled| *cancelled), if minds => Some(aborted()),
                ended = ended => ended,
            };
            if let Some(end) = ended {
                return end;
            }
        }
        End::Turn { reason: "completed".to_owned(), error: String::new() }
    }

    /// Writes a file below the task's directory. Says what became of it.
    async fn write(&self, path: String, text: String) -> String {
        if !self.may_write {
            return "refused: the task may not write".to_owned();
        }
        let (dir, name) = (self.task_dir.clone(), path.clone());
        match tokio::task::spawn_blocking(move || write_beneath(&dir, &name, text.as_bytes())).await {
            Ok(Ok(())) => format!("wrote {path}"),
            Ok(Err(error)) => format!("cannot write {path}: {error}"),
            Err(_) => format!("cannot write {path}: internal error"),
        }
    }
}

fn aborted() -> End {
    End::Turn { reason: "aborted".to_owned(), error: String::new() }
}

/// Writes a file, and makes the directories it is in: beneath a held directory, through no link.
fn write_beneath(dir: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
    let path = RelPath::new(path.as_bytes()).map_err(|error| invalid(&error.to_string()))?;
    let (parents, name) = path.split().ok_or_else(|| invalid("it names no file"))?;
    let (disk, root) = (Disk::default(), Root::open(dir)?);
    let mut parent = RelPath::ROOT;
    for name in parents.components() {
        match disk.mkdir(root.open_dir(&parent)?, name.as_bytes(), Mode::from_raw_mode(0o777)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => parent = parent.join(&name),
        }
    }
    let dir = root.open_dir(&parent)?;
    match disk.unlink(&dir, name.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(&dir, name.as_bytes(), OFlags::WRONLY, Mode::from_raw_mode(0o666))?;
    disk.write_all_at(&file.into(), bytes, 0)
}
