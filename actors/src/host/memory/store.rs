//! A task's conversation, in the store of sessions and as a copy in the task's directory.
//!
//! The store has the last word, with two exceptions: what it could not take, the copy has, until it can; and while what it has
//! cannot be read, the copy stands for it.

use std::io;
use std::sync::Arc;

use cofferdam_protocol::session::{Envelope, SessionError, SessionErrorCode};
use cofferdam_storage::pod::{AgentDirs, AgentFile};
use cofferdam_storage::session::SessionStore;

use super::envelope::{Added, Identity, empty, extends};
use super::heard::Heard;
use super::messages::Whose;
use super::{Kept, Slot, apart};
use crate::session::{LoadSession, OpenStore, PersistSession};

/// What is known of a conversation.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// It; nothing if nothing was said yet.
    pub(super) conversation: Option<Envelope>,
    /// Why what is stored cannot be read.
    pub(super) trouble: Option<String>,
    /// Whether somebody has removed it from the store.
    pub(super) removed: bool,
    /// Why nobody knows what the copy has, if that is so.
    pub(super) copy_unread: Option<io::Error>,
}

impl Recalled {
    /// What is known by what is stored and what the copy has.
    fn of(stored: Result<Option<Envelope>, SessionError>, copy: Option<Envelope>) -> Self {
        match (stored, copy) {
            (Ok(Some(stored)), Some(copy))
                if copy.generation == stored.generation
                    && copy.messages.len() > stored.messages.len()
                    && extends(&copy.messages, &stored.messages) =>
            {
                Self { conversation: Some(copy), ..Self::default() }
            }
            (Ok(Some(stored)), _) => Self { conversation: Some(stored), ..Self::default() },
            // It was never stored; otherwise what somebody has removed would come back.
            (Ok(None), Some(copy)) if copy.generation == 0 => {
                Self { conversation: Some(copy), ..Self::default() }
            }
            (Ok(None), copy) => Self { removed: copy.is_some(), ..Self::default() },
            (Err(error), copy) => {
                Self { conversation: copy, trouble: Some(error.message), ..Self::default() }
            }
        }
    }
}

impl Kept {
    /// What was said so far.
    pub(super) async fn recall(&self, whose: &Whose, slot: &Slot) -> Recalled {
        let read = match &slot.unstored {
            Some(unstored) => Ok(Some(Envelope::clone(unstored))),
            None => self.read_copy(whose).await,
        };
        let (copy, copy_unread) = match read {
            Ok(copy) => (copy, None),
            Err(error) => {
                tracing::warn!(task = whose.task.as_str(), %error, "the copy of a conversation cannot be read");
                (None, Some(error))
            }
        };
        let stored = match self.open(whose).await {
            Ok((store, _)) => self.load(store, whose).await,
            Err(error) => Err(error),
        };
        let recalled = apart(move || Recalled::of(stored, copy)).await;
        Recalled { copy_unread, ..recalled }
    }

    /// Stores what a turn adds to the conversation. Says what people should know.
    pub(super) async fn add(
        &self,
        whose: &Whose,
        slot: &mut Slot,
        given: Option<Arc<Envelope>>,
        mut heard: Heard,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let own = heard.own.take().map(|own| *own);
        let added = Arc::new(Added { given, own, said: heard.messages(), model: whose.model.clone() });
        let (mut next, mut said) = self.next(whose, slot, &added).await;
        let (mut stored, mut failure) = self.persist(whose, next).await;
        if failure.as_ref().is_some_and(|failure| failure.code == SessionErrorCode::Conflict) {
            // Somebody else wrote to it in this moment: what they wrote is the base now.
            (next, said) = self.next(whose, slot, &added).await;
            (stored, failure) = self.persist(whose, next).await;
        }
        notes.extend(said);
        self.stored(whose, slot, Arc::new(stored), failure, &mut notes).await;
        notes
    }

    /// What the conversation becomes by what a turn adds, and what people should know of that.
    async fn next(&self, whose: &Whose, slot: &Slot, added: &Arc<Added>) -> (Envelope, Vec<String>) {
        let recalled = self.recall(whose, slot).await;
        let given = || added.given.as_deref().cloned().filter(|_| !recalled.removed);
        let base = match recalled.conversation.or_else(given) {
            Some(base) => base,
            None => empty(&self.identity(whose).await, self.now_ms()),
        };
        let added = Arc::clone(added);
        apart(move || added.onto(base)).await
    }

    /// A conversation was made durable in the store, or was not: it is as a copy, too.
    async fn stored(
        &self,
        whose: &Whose,
        slot: &mut Slot,
        stored: Arc<Envelope>,
        failure: Option<SessionError>,
        notes: &mut Vec<String>,
    ) {
        let is_stored = failure.is_none();
        let unstored = (!is_stored).then(|| Arc::clone(&stored));
        if let Some(failure) = failure {
            notes.push(format!(
                "the conversation is not stored: {}; it is tried again with the next turn",
                failure.message
            ));
        }
        let copied = self.write_copy(whose, stored).await;
        // What the copy has need not be kept here, too.
        slot.unstored = unstored.filter(|_| copied.is_err() || self.dirs.is_none());
        if let Err(error) = copied {
            notes.push(format!("the copy of the conversation is not written: {error}"));
        }
    }

    /// Makes a conversation durable in the store. What comes back has the generation that is stored.
    pub(super) async fn persist(
        &self,
        whose: &Whose,
        mut envelope: Envelope,
    ) -> (Envelope, Option<SessionError>) {
        let (store, identity) = match self.open(whose).await {
            Ok(opened) => opened,
            Err(error) => return (envelope, Some(error)),
        };
        envelope.session_id = identity.session_id;
        envelope.workspace_scope = identity.scope;
        let before = envelope.generation;
        let (envelope, sent) = apart(move || (envelope.clone(), envelope)).await;
        match self.sessions.ask(PersistSession { store, envelope: sent }).await {
            Err(error) => (envelope, Some(error)),
            Ok(persisted) => match persisted.result {
                Ok(()) => (persisted.envelope, None),
                // It is stored, and only what was to be done after that is not.
                Err(_) if persisted.envelope.generation > before => (persisted.envelope, None),
                Err(error) => (persisted.envelope, Some(error)),
            },
        }
    }

    /// Puts a conversation that is whole in the place of the stored one, whatever that is. Nothing: one in which nothing was
    /// said.
    pub(super) async fn restore(&self, whose: &Whose, wanted: Option<Envelope>) -> Result<(), SessionError> {
        let (store, identity) = self.open(whose).await?;
        let stored = self.load(store, whose).await?;
        if wanted.is_none() && stored.is_none() {
            return Ok(());
        }
        let mut next = wanted.unwrap_or_else(|| empty(&identity, self.now_ms()));
        (next.generation, next.updated_at_ms) = (0, 0);
        if let Some(stored) = stored {
            (next.generation, next.created_at_ms) = (stored.generation, stored.created_at_ms);
            next.updated_at_ms = stored.updated_at_ms;
            next.compaction_revision = next.compaction_revision.max(stored.compaction_revision);
        }
        let (stored, failure) = self.persist(whose, next).await;
        match failure {
            Some(error) => Err(error),
            None => self.write_copy(whose, Arc::new(stored)).await.map_err(|error| failed(&error)),
        }
    }

    /// The store, and whose conversation is which there.
    async fn open(&self, whose: &Whose) -> Result<(Arc<SessionStore>, Identity), SessionError> {
        let open = OpenStore { workspace: whose.root.clone(), project_settings: false };
        let store = self.sessions.ask(open).await?.store?;
        let identity =
            Identity { session_id: whose.session.to_string(), scope: store.workspace().to_owned() };
        Ok((store, identity))
    }

    async fn load(&self, store: Arc<SessionStore>, whose: &Whose) -> Result<Option<Envelope>, SessionError> {
        let load = LoadSession { store, session_id: whose.session.to_string() };
        match self.sessions.ask(load).await {
            Ok(envelope) => Ok(Some(envelope)),
            Err(error) if error.code == SessionErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn identity(&self, whose: &Whose) -> Identity {
        match self.open(whose).await {
            Ok((_, identity)) => identity,
            // It is told again when it is stored.
            Err(_) => Identity {
                session_id: whose.session.to_string(),
                scope: whose.root.to_string_lossy().into_owned(),
            },
        }
    }

    /// The copy; nothing if there is none, or it is another session's. What is there and cannot be read is an error: that is
    /// not the same as nothing.
    pub(super) async fn read_copy(&self, whose: &Whose) -> io::Result<Option<Envelope>> {
        let (task, session) = (whose.task.clone(), whose.session.clone());
        let read = self.on_disk(move |dirs| {
            let Some(bytes) = dirs.read(&task, AgentFile::Conversation)? else { return Ok(None) };
            // Whose it is shows when it is stored.
            let envelope: Envelope = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
            Ok(Some(envelope).filter(|envelope| envelope.session_id == session.as_str()))
        });
        Ok(read.await?.flatten())
    }

    /// Replaces the copy, durably, unless it is that already.
    pub(super) async fn write_copy(&self, whose: &Whose, envelope: Arc<Envelope>) -> io::Result<()> {
        let task = whose.task.clone();
        let written = self.on_disk(move |dirs: &AgentDirs| {
            let bytes = envelope.write().map_err(io::Error::other)?;
            if dirs.read(&task, AgentFile::Conversation).ok().flatten().as_deref() == Some(&bytes) {
                return Ok(());
            }
            dirs.write(&task, AgentFile::Conversation, &bytes)
        });
        written.await.map(drop)
    }

    /// Removes the copy, durably, if there is one. The directory is there after that.
    pub(super) async fn remove_copy(&self, whose: &Whose) -> io::Result<()> {
        let task = whose.task.clone();
        let removed = self.on_disk(move |dirs| {
            dirs.make(&task)?;
            dirs.remove_file(&task, AgentFile::Conversation)
        });
        removed.await.map(drop)
    }
}

fn failed(error: &io::Error) -> SessionError {
    SessionError::new(SessionErrorCode::Io, &format!("the copy of the conversation is not written: {error}"))
}
