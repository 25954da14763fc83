//! One turn of a conversation, in a process of its own that may die.

use std::process::{Command, ExitStatus, Stdio};

use cofferdam_protocol::session::Envelope;
use serde_json::Value;

use super::{SessionSite, id};
use crate::files::read;

/// What a turn left behind.
#[derive(Debug)]
pub struct Turn {
    /// How the program ended.
    pub status: ExitStatus,
    /// The lines it printed.
    pub lines: Vec<Value>,
    /// What it complained about.
    pub stderr: String,
}

impl SessionSite {
    /// The program as it says one thing in the site's workspace and ends: in a conversation that is stored, or in a new
    /// one.
    pub fn turn_command(&self, resume: Option<u32>, prompt: &str) -> Command {
        let workspace = self.workspace();
        let mut arguments = vec!["--headless", "--workspace", workspace.to_str().unwrap()];
        let resume = resume.map(|n| id(n).to_string());
        if let Some(resume) = &resume {
            arguments.extend(["--resume", resume]);
        }
        arguments.push(prompt);
        self.core(&arguments)
    }

    /// Goes on with a stored conversation.
    #[track_caller]
    pub fn turn(&self, resume: u32, prompt: &str) -> Turn {
        Turn::of(&mut self.turn_command(Some(resume), prompt))
    }

    /// A stored conversation as it is in its file.
    #[track_caller]
    pub fn envelope(&self, n: u32) -> Envelope {
        serde_json::from_slice(&read(self.file(n))).unwrap()
    }
}

impl Turn {
    /// Runs a command.
    #[track_caller]
    pub fn of(command: &mut Command) -> Self {
        let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let text = String::from_utf8(output.stdout).unwrap();
        Self {
            status: output.status,
            lines: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// `ok`, or the code of the session's failure and its phase.
    #[track_caller]
    pub fn outcome(&self) -> String {
        assert!(self.status.success(), "{self:?}");
        let result = self.lines.last().unwrap();
        assert_eq!(result["type"], "result", "{self:?}");
        if result["is_error"] == false {
            return "ok".to_owned();
        }
        let text = |key: &str| result[key].as_str().unwrap_or_else(|| panic!("{self:?}"));
        format!("{}/{}", text("session_error_code"), text("session_error_phase"))
    }
}
