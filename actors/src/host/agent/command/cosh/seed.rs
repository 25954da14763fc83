//! What is put into the private home for a turn: the settings, and the conversation as a session's file; and what the program
//! has made of that.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cofferdam_protocol::session::{Content, Envelope, Message, SCHEMA_VERSION, SessionId, limits};
use cofferdam_storage::sandbox::{HomeFile, home_file, home_file_content};
use cofferdam_storage::session::private::{session_path, settings, settings_path};

/// What a turn goes on from.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    /// The sandbox root.
    pub(super) root: PathBuf,
    /// The conversation's id.
    pub(super) id: SessionId,
    /// It, as the host has stored it.
    pub(super) stored: Option<Envelope>,
    /// What the agent is told before anything else.
    pub(super) system_prompt: String,
    /// The user's own home.
    pub(super) home: Option<PathBuf>,
    /// Now, in milliseconds since 1970.
    pub(super) now: u64,
}

/// What is put into the private home.
#[derive(Debug)]
pub(super) struct Seed {
    /// The canonical path of the sandbox root, whose conversation it is.
    pub(super) workspace: String,
    /// The files, and what they hold.
    pub(super) files: Vec<HomeFile>,
    pub(super) content: Vec<OwnedFd>,
    /// What people should know of it.
    pub(super) warning: Option<String>,
    id: SessionId,
    generation: u64,
    /// What the stored conversation does not have, and gets for the program alone.
    lent: Option<Message>,
}

/// What the program has made of the conversation.
#[derive(Debug)]
pub(super) enum Back {
    /// This.
    Stored(Box<Envelope>),
    /// Nothing: it is as it was.
    Untouched,
    /// Nothing that can be used.
    Unusable(String),
}

impl Beginning {
    /// Makes the files. Blocks. The error is for people.
    pub(super) fn seed(self) -> Result<Seed, String> {
        let workspace = std::fs::canonicalize(&self.root)
            .map_err(|error| format!("{} cannot be found: {error}", self.root.display()))?
            .into_os_string()
            .into_string()
            .map_err(|path| format!("the sandbox root {} is not UTF-8", path.display()))?;
        let (envelope, added) = self.envelope(&workspace);
        let lent = added.filter(|_| self.stored.is_some());
        let session = envelope.write().map_err(|error| {
            format!("the conversation is too long to go on with: {error}; start a new task")
        })?;
        let (settings, warning) = settings(self.home.as_deref());
        let place = session_path(&workspace, &self.id);
        let files = vec![
            HomeFile { path: settings_path().to_owned(), back: None },
            HomeFile { path: place, back: Some(limits::SESSION_FILE) },
        ];
        let content = [home_file(settings.as_bytes()), home_file(&session)];
        let content = content.into_iter().collect::<io::Result<Vec<_>>>();
        let content = content.map_err(|error| format!("there is no memory for the conversation: {error}"))?;
        Ok(Seed { workspace, files, content, warning, id: self.id, generation: envelope.generation, lent })
    }

    /// The conversation as the program gets it: in this scope, written at least once, and with the system prompt. And that, if it
    /// was not in it.
    fn envelope(&self, workspace: &str) -> (Envelope, Option<Message>) {
        let mut envelope = self.stored.clone().unwrap_or_else(|| Envelope {
            schema_version: SCHEMA_VERSION,
            session_id: String::new(),
            workspace_scope: String::new(),
            created_at_ms: self.now,
            updated_at_ms: self.now,
            model: String::new(),
            generation: 1,
            messages: Vec::new(),
            compaction: None,
            compaction_revision: 0,
        });
        envelope.session_id = self.id.to_string();
        envelope.workspace_scope = workspace.to_owned();
        envelope.generation = envelope.generation.max(1);
        let told = envelope.messages.iter().any(|message| message.role == "system");
        // A summary counts messages from the first.
        if told || envelope.compaction.is_some() || self.system_prompt.is_empty() {
            return (envelope, None);
        }
        let content = Content::Text(self.system_prompt.clone());
        let role = "system".to_owned();
        let system = Message { role, content, tool_call_id: None, name: None, tool_calls: None };
        envelope.messages.insert(0, system.clone());
        (envelope, Some(system))
    }
}

impl Seed {
    /// What came back, if it came back without this problem. Blocks. The program may have written anything.
    pub(super) fn back(&self, problem: Option<&Option<String>>, now: u64) -> Back {
        let bytes = match problem {
            None => return Back::Unusable("the sandbox was ended before it could be read".to_owned()),
            Some(Some(problem)) => return Back::Unusable(problem.clone()),
            Some(None) => {
                let session = self.content.last().ok_or(io::ErrorKind::NotFound.into());
                session.and_then(|file| home_file_content(file, limits::SESSION_FILE))
            }
        };
        let read = bytes.map_err(|error| error.to_string()).and_then(|bytes| {
            Envelope::read(&bytes, &self.id, &self.workspace, now).map_err(|defect| defect.to_string())
        });
        match read {
            Ok(envelope) if envelope.generation == self.generation => Back::Untouched,
            Ok(mut envelope) => {
                // So that it goes on from what is stored.
                if self.lent.is_some()
                    && envelope.messages.first() == self.lent.as_ref()
                    && envelope.compaction.is_none()
                {
                    envelope.messages.remove(0);
                }
                Back::Stored(Box::new(envelope))
            }
            Err(why) => Back::Unusable(why),
        }
    }

    /// Where the conversation is, relative to the home.
    pub(super) fn session(&self) -> Option<&Path> {
        self.files.last().map(|file| file.path.as_path())
    }
}
