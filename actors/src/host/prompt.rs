//! What an agent is told about its surroundings, before anything else.

use cofferdam_protocol::pod::{SandboxPolicy, TaskSummary};

use super::context::ReadContext;

/// The system prompt of a task's agent.
pub(super) fn system_prompt(_task: &TaskSummary, _policy: &SandboxPolicy, _context: &ReadContext) -> String {
    String::new()
}
