//! Agents: whatever works on a task. A backend runs agents of one kind; the host talks to it with four messages and hears
//! what its agents do.

pub mod command;
#[cfg(any(test, feature = "fake-agent"))]
pub mod fake;
mod jsonl;

use std::path::PathBuf;
use std::sync::Arc;

use actix::prelude::{Message, Recipient};
use cofferdam_protocol::pod::{ModelChoice, SandboxCheck, SandboxMode, SandboxPolicy};
use cofferdam_protocol::session::Envelope;

use crate::mailbox::mailboxes;

/// One way to run an agent.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its id, as the configuration names it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Why it cannot be used, if it cannot.
    pub broken: Option<String>,
    /// The tools without which it makes no sense; a task that does not allow them does not start.
    pub needs: Vec<String>,
    /// Whether it can go on with a conversation whose agent is gone.
    pub resumable: bool,
    /// Who runs it.
    pub backend: AgentBackend,
}

mailboxes! {
    /// Whoever runs agents.
    pub struct AgentBackend {
        start: StartAgent,
        follow_up: FollowUpAgent,
        cancel: CancelTurn,
        dispose: DisposeAgent,
    }
}

/// Makes an agent ready, without a turn: sets its sandbox up and tests it. Sent by `LiveTask`; the reply comes when the agent
/// can be told something, and says what the test found. An agent of the same task that is still there is an error.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<ReadyAgent, AgentError>")]
pub struct StartAgent {
    /// The task's id.
    pub task_id: String,
    /// The conversation's id, `pod-session-…`.
    pub session_id: String,
    /// Which preset.
    pub preset: String,
    /// Which model, if the preset lets that be chosen.
    pub model: ModelChoice,
    /// Where it may write.
    pub policy: SandboxPolicy,
    /// Whether it may write there.
    pub mode: SandboxMode,
    /// The tools it may use.
    pub tools: Vec<String>,
    /// What it is told about its surroundings, before anything else.
    pub system_prompt: String,
    /// A directory of this task's own that stays from turn to turn, outside of what the task is shown and below the state
    /// directory; what an agent must remember between its processes is in `home` in it. It goes with the task's record. Nothing: none is
    /// kept.
    pub agent_dir: Option<PathBuf>,
    /// Whether it goes on with the conversation that is there.
    pub resume: bool,
    /// The number of the last turn that is known of: the next turn has the number after that, unless the agent counts otherwise.
    pub turns: u64,
    /// Who hears what it does.
    pub events: Recipient<AgentEvent>,
}

/// An agent that can be told something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyAgent {
    /// What the test of its sandbox found.
    pub check: SandboxCheck,
    /// The tools it has, as far as that can be seen before a turn; empty: it cannot.
    pub tools: Vec<String>,
}

/// Tells an agent something: it begins a turn. Sent by `LiveTask`, for the first turn too. The reply only says whether the
/// turn begins; an agent that is in a turn refuses.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<(), AgentError>")]
pub struct FollowUpAgent {
    /// Whose agent.
    pub task_id: String,
    /// What it is told.
    pub prompt: String,
    /// The conversation as it is stored, without what the agent is told now; nothing if none is stored yet.
    pub conversation: Option<Arc<Envelope>>,
}

/// Ends an agent's turn, if it is in one; the turn's end is an event as usual. Sent by `LiveTask`.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct CancelTurn {
    /// Whose agent.
    pub task_id: String,
    /// Why, for the agent and its conversation.
    pub cause: CancelCause,
}

/// Why a turn is cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelCause {
    /// Somebody wanted it.
    User {
        /// What they said; may be empty.
        reason: String,
    },
    /// Its time was up.
    Timeout,
    /// It did what it may not.
    Guard {
        /// What.
        what: String,
    },
}

/// Ends an agent and everything it started. Sent by `LiveTask`; the reply comes when nothing of it runs any more. No event of
/// it follows.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct DisposeAgent {
    /// Whose agent.
    pub task_id: String,
}

/// What an agent does. Sent by a backend, in the order in which it happens.
#[derive(Clone, Debug, PartialEq, Message)]
#[rtype(result = "()")]
pub enum AgentEvent {
    /// A turn began.
    TurnStarted {
        /// The agent's number for it, from 1.
        turn: u64,
    },
    /// It has these tools.
    Tools(Vec<String>),
    /// It said something.
    Text(String),
    /// It thought something.
    Thinking(String),
    /// It calls a tool.
    ToolCall {
        /// Which.
        name: String,
        /// With what, for people.
        input: String,
    },
    /// A tool has answered.
    ToolResult {
        /// What, for people.
        text: String,
    },
    /// Something about it that people should know.
    Note(String),
    /// The whole conversation as the agent has it, before its turn ends: from an agent that keeps it itself. It is stored in
    /// place of what was heard of the turn.
    Conversation(Box<Envelope>),
    /// The program of its turn has ended; until the turn ends, what that has left is ended and cleared, which takes a minute at
    /// most.
    Exited,
    /// A turn ended.
    TurnEnded {
        /// Which.
        turn: u64,
        /// Why, in the words of spec §5: `completed`, `aborted`, `error`, `blocked`, `max-tokens`, `forked`, `interrupted`, or
        /// one of the agent's own.
        reason: String,
        /// What went wrong, for people; empty if nothing did.
        error: String,
    },
    /// The agent is gone by itself, and whatever turn it was in with it.
    Gone {
        /// Why, for people.
        message: String,
    },
}

/// Why an agent does not do as it is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// It cannot be started as it was asked for.
    #[error("{0}")]
    Config(String),
    /// It is in a turn.
    #[error("the agent is in a turn; wait for its end, or cancel it")]
    Busy,
    /// There is no agent for this task.
    #[error("the agent is gone")]
    Gone,
    /// The conversation cannot be gone on with.
    #[error("{0}")]
    NotResumable(String),
    /// Something failed.
    #[error("{0}")]
    Failed(String),
}

/// The presets of scripted agents, in a build that is made for tests; none in any other. Starts who runs them in the running
/// actix system.
pub fn scripted(faster: u32) -> Vec<Preset> {
    #[cfg(any(test, feature = "fake-agent"))]
    return fake::start(faster);
    #[cfg(not(any(test, feature = "fake-agent")))]
    {
        let _ = faster;
        Vec::new()
    }
}

/// The program that confines agents: `own`, or in a build that is made for tests the one that `COFFERDAM_POD_SUPERVISOR` names,
/// which finds what a test wants found.
pub fn supervisor(own: PathBuf) -> PathBuf {
    #[cfg(any(test, feature = "fake-agent"))]
    if let Some(other) = std::env::var_os("COFFERDAM_POD_SUPERVISOR") {
        return other.into();
    }
    own
}

/// Finds a preset.
pub(super) fn preset<'a>(presets: &'a [Preset], id: &str) -> Option<&'a Preset> {
    presets.iter().find(|preset| preset.id == id)
}
