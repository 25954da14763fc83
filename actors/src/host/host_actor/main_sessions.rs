//! Conversations outside of this host: what their clients said of them, and messages to them.

use std::collections::VecDeque;

use actix::prelude::{Context, Handler};
use cofferdam_protocol::host::{MAX_RETURN, MainMessage, ReturnToMain, Returned};
use cofferdam_protocol::pod::cut;

use super::HostActor;
use crate::host::failure::{HostFailure, HostRefusal};
use crate::host::messages::{Ask, MainSession};

/// Of how many main sessions it is remembered where they work.
const SESSIONS: usize = 1000;
/// How many delivered messages are remembered.
const DELIVERED: usize = 200;

/// What is remembered of main sessions, also after their client has gone: a task that waited in the queue needs it then.
#[derive(Debug, Default)]
pub(super) struct MainSessions {
    /// What clients said, oldest first.
    known: VecDeque<MainSession>,
    /// Messages that were delivered under a name that their sender chose.
    delivered: VecDeque<Delivered>,
}

#[derive(Debug)]
struct Delivered {
    session: String,
    request: String,
    /// As it was delivered.
    text: String,
    answer: Returned,
}

impl MainSessions {
    /// A client says where a session works.
    pub(super) fn learn(&mut self, main: &MainSession) {
        self.known.retain(|known| known.id != main.id);
        if self.known.len() == SESSIONS {
            self.known.pop_front();
        }
        self.known.push_back(main.clone());
    }

    /// What is known of a session.
    pub(super) fn get(&self, id: &str) -> Option<&MainSession> {
        self.known.iter().find(|known| known.id == id)
    }
}

impl HostActor {
    /// The conversation of a person that is meant: a task's own conversation stands for the one the task was started from.
    pub(super) fn main_of(&self, session: &str) -> String {
        let mut session = session.to_owned();
        // A task that was started from another task's conversation leads further; a ring would not end.
        for _ in 0..8 {
            match self.cache.task_of_session(&session) {
                Some(task) => session = task.main_session_id.clone(),
                None => break,
            }
        }
        session
    }

    /// Where a conversation works, if its client said so. A subagent's directory says nothing about its user's workspace.
    pub(super) fn main_cwd(&self, main: &str) -> Option<String> {
        let known = self.mains.get(main)?;
        (!known.subagent && known.cwd.starts_with('/')).then(|| known.cwd.clone())
    }

    /// A conversation as an agent's context needs it.
    pub(super) fn main_session(&self, id: &str) -> Option<MainSession> {
        if id.is_empty() {
            return None;
        }
        let unknown = || MainSession { id: id.to_owned(), cwd: String::new(), subagent: false };
        Some(self.mains.get(id).cloned().unwrap_or_else(unknown))
    }

    fn return_to_main(&mut self, request: ReturnToMain) -> Result<Returned, HostFailure> {
        let ReturnToMain { main_session_id: session, text, request_id } = request;
        let text = text.trim();
        let refuse = |why: &str| Err(HostRefusal::BadRequest(why.to_owned()).into());
        if session.is_empty() {
            return refuse("mainSessionId is empty: say which conversation the message is for");
        }
        if text.is_empty() {
            return refuse("text is empty: there is nothing to tell");
        }
        if self.cache.task_of_session(&session).is_some() {
            return refuse(
                "that is a task's own conversation; a return goes to the one the task was started from",
            );
        }
        let shortened = cut(text, MAX_RETURN);
        let same = |delivered: &&Delivered| {
            Some(&delivered.request) == request_id.as_ref() && delivered.session == session
        };
        if let Some(delivered) = self.mains.delivered.iter().find(same) {
            return match delivered.text == shortened {
                true => Ok(delivered.answer.clone()),
                false => refuse("that requestId was used for another text; choose a new one"),
            };
        }
        let message = MainMessage {
            session_id: session.clone(),
            id: format!("ipp-ret-{}", self.parts.ids.fresh()),
            text: shortened.to_owned(),
            at: self.now(),
        };
        if !self.listeners.deliver(&message) {
            return Err(HostRefusal::MainSessionNotLive(session).into());
        }
        let answer = Returned { truncated: shortened.len() < text.len(), id: message.id };
        if let Some(request) = request_id {
            if self.mains.delivered.len() == DELIVERED {
                self.mains.delivered.pop_front();
            }
            let (text, answer) = (message.text, answer.clone());
            self.mains.delivered.push_back(Delivered { session, request, text, answer });
        }
        Ok(answer)
    }
}

impl Handler<Ask<ReturnToMain>> for HostActor {
    type Result = Result<Returned, HostFailure>;

    fn handle(&mut self, Ask(request): Ask<ReturnToMain>, _: &mut Context<Self>) -> Self::Result {
        self.return_to_main(request)
    }
}
