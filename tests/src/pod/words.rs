//! What a host says in most tests, and what it hears, in short.

use serde_json::{Value, json};

/// `base` with the keys of `more` put in.
pub fn with(base: &Value, more: Value) -> Value {
    let mut all = base.clone();
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

/// The params of a `task.reserve` whose lease is `L`.
pub fn reserve(task: &str) -> Value {
    json!({
        "taskId": task,
        "sessionId": format!("s-{task}"),
        "mainSessionId": "m",
        "label": "l",
        "description": "d",
        "subdir": "",
        "timeoutMs": 600_000,
        "allow": ["read"],
        "presetId": "",
        "model": {"provider": "", "model": "", "reasoningEffort": null},
        "leaseId": "L",
    })
}

/// Params that name a task and the lease `L`.
pub fn held(task: &str) -> Value {
    json!({"taskId": task, "leaseId": "L"})
}

/// Params of `task.turnStarted`.
pub fn turn(task: &str, turn: u64) -> Value {
    with(&held(task), json!({"turn": turn}))
}

/// Params of `task.turnEnded`.
pub fn ended(task: &str, turn_: u64, reason: &str) -> Value {
    with(&turn(task, turn_), json!({"reason": reason}))
}

/// Whether a line is an event of that kind.
pub fn is_event(line: &Value, kind: &str) -> bool {
    line["method"] == "event" && line["params"]["kind"] == kind
}

/// Lines as short texts: `answer ID`, `changed TASK STATUS`, `dispatch TASK`, `expired TASK TURN`, `warning`.
pub fn told(lines: &[Value]) -> Vec<String> {
    lines.iter().map(tell).collect()
}

fn tell(line: &Value) -> String {
    let Some(id) = line.get("id") else {
        let params = &line["params"];
        let text = |key: &str| params[key].as_str().unwrap_or("?");
        return match text("kind") {
            "task.changed" => format!("changed {} {}", text("taskId"), text("status")),
            "queue.dispatch" => format!("dispatch {}", text("taskId")),
            "deadline.expired" => format!("expired {} {}", text("taskId"), params["turn"]),
            "export.progress" => {
                format!("progress {} {}/{}", text("taskId"), params["done"], params["total"])
            }
            "core.warning" => "warning".to_owned(),
            other => panic!("an event of the kind {other:?}"),
        };
    };
    format!("answer {}", id.as_str().unwrap_or("null"))
}
