//! The program's names for tools, and ours.

/// What is only between the agent and itself: it reaches no file and no process.
const OWN: [&str; 3] = ["ask_user_question", "skill", "todo"];

/// Our name for a tool.
pub(super) fn ours(name: &str) -> &str {
    match name {
        "shell" => "bash",
        "read_file" => "read",
        "write_file" => "write",
        other => other,
    }
}

/// Whether a task need not allow it.
pub(super) fn is_own(name: &str) -> bool {
    OWN.contains(&name)
}

/// Whether it asks a person.
pub(super) fn asks(name: &str) -> bool {
    name == "ask_user_question"
}
