//! What is said with the program, which conversation it gets, and what is believed of what comes back.

use std::io::Write;
use std::path::Path;

use cofferdam_protocol::session::{Content, Envelope, SessionId};
use serde_json::{Value, json};

use super::recovery::{Recovery, Shown};
use super::seed::{Back, Beginning, Seed};
use super::talk::Talk;
use crate::host::agent::AgentEvent;
use crate::host::agent::command::output::Printed;
use crate::host::agent::command::texts::Tail;

const ID: &str = "2d711642-b726-4b04-8d2a-8a0470f4ed24";
const OTHER: &str = "3d711642-b726-4b04-8d2a-8a0470f4ed24";

fn talk() -> Talk {
    let mut talk = Talk::new("do it", ID, &["bash".to_owned(), "read".to_owned()]);
    let said = lines(&mut talk);
    assert_eq!(said[0]["request"]["subtype"], "initialize");
    assert_eq!((&said[1]["message"]["content"], &said[1]["session_id"]), (&json!("do it"), &json!(ID)));
    assert_eq!(said.len(), 2);
    talk
}

fn hear(talk: &mut Talk, line: Value) -> Vec<AgentEvent> {
    talk.push(format!("{line}\n").as_bytes(), &mut Tail::default());
    talk.waiting_mut().drain(..).collect()
}

fn lines(talk: &mut Talk) -> Vec<Value> {
    std::iter::from_fn(|| talk.answer()).map(|line| serde_json::from_str(&line).unwrap()).collect()
}

fn call(name: &str, id: &str) -> Value {
    json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": id, "name": name, "input": {}}]}})
}

fn asks(name: &str, id: &str) -> Value {
    json!({"type": "control_request", "request_id": "req-0", "request":
        {"subtype": "can_use_tool", "tool_name": name, "input": {}, "tool_use_id": id}})
}

fn gave(id: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content":
        [{"type": "tool_result", "tool_use_id": id, "is_error": false, "content": "ok"}]}})
}

fn called(name: &str) -> AgentEvent {
    AgentEvent::ToolCall { name: name.to_owned(), input: "{}".to_owned() }
}

fn result(is_error: bool, more: Value) -> Value {
    let mut line = json!({"type": "result", "is_error": is_error, "result": "why", "session_id": ID});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

#[test]
fn what_the_task_allows_may_be_called_by_the_programs_names_and_nothing_else() {
    for (name, ours, allowed) in [
        ("shell", "bash", true),
        ("read_file", "read", true),
        ("write_file", "write", false),
        ("edit", "edit", false),
        ("grep", "grep", false),
        ("bash2", "bash2", false),
    ] {
        let mut talk = talk();
        let told = hear(&mut talk, call(name, "c"));
        assert_eq!(told, if allowed { vec![called(ours)] } else { vec![] }, "{name}");
        assert_eq!(hear(&mut talk, asks(name, "c")), []);
        let answers = lines(&mut talk);
        let answer = &answers[0]["response"];
        assert_eq!((answers.len(), &answer["request_id"]), (1, &json!("req-0")));
        assert_eq!(answer["response"]["behavior"], if allowed { "allow" } else { "deny" }, "{name}");
        // What was refused is not carried out; so nothing is left for the guard.
        let told = hear(&mut talk, gave("c"));
        assert_eq!(told, [AgentEvent::ToolResult { text: "ok".to_owned() }], "{name}");
    }
}

#[test]
fn a_tool_that_is_carried_out_though_nobody_allowed_it_is_for_the_guard() {
    let mut talk = talk();
    assert_eq!(hear(&mut talk, call("write_file", "c")), []);
    let told = hear(&mut talk, gave("c"));
    assert_eq!(told, [called("write"), AgentEvent::ToolResult { text: "ok".to_owned() }]);
    // However many there are.
    let told: Vec<_> = (0..300).flat_map(|n| hear(&mut talk, call("edit", &format!("e{n}")))).collect();
    assert_eq!(told, vec![called("edit"); 300 - 256]);
}

#[test]
fn what_waits_for_a_program_that_reads_nothing_takes_little_memory() {
    let mut talk = talk();
    let long = "x".repeat(100_000);
    // A call that waits keeps the beginning of its name and arguments.
    let mut large = call(&long, "c");
    large["message"]["content"][0]["input"] = json!({ "text": long });
    assert_eq!(hear(&mut talk, large), []);
    let told = hear(&mut talk, gave("c"));
    let AgentEvent::ToolCall { name, input } = &told[0] else { panic!("{:?}", told[0]) };
    assert!(name.len() <= 256 && input.len() <= 4000, "{} {}", name.len(), input.len());
    // One with an id that is not kept does not wait.
    assert_eq!(hear(&mut talk, call("edit", &long)), [called("edit")]);
    // What is to be answered to such an id is not answered.
    let mut asked = asks("shell", "d");
    asked["request_id"] = json!(long);
    hear(&mut talk, asked.clone());
    assert_eq!(lines(&mut talk), [json!(null); 0]);
    asked["request_id"] = json!("x".repeat(256));
    hear(&mut talk, asked);
    assert_eq!(lines(&mut talk).len(), 1);
}

#[test]
fn what_an_agent_does_with_itself_needs_nobodys_leave_and_questions_have_nobody_to_answer_them() {
    let mut talk = talk();
    let told = hear(&mut talk, call("todo", "c"));
    assert_eq!(told, [AgentEvent::Thinking("todo {}".to_owned())]);
    hear(&mut talk, asks("todo", "c"));
    assert_eq!(lines(&mut talk)[0]["response"]["response"]["behavior"], "allow");
    hear(&mut talk, asks("ask_user_question", "d"));
    assert_eq!(lines(&mut talk)[0]["response"]["response"]["behavior"], "deny");
    let wanted =
        json!({"type": "control_request", "request_id": "a", "request": {"subtype": "auth_required"}});
    assert!(!talk.is_over());
    hear(&mut talk, wanted);
    assert!(talk.is_over() && talk.patience().is_some());
    assert!(talk.printed().outcome.unwrap().text.contains("config.toml"));
}

#[test]
fn an_interrupt_is_a_line_and_the_first_result_is_the_turns_end() {
    let mut talk = talk();
    assert!(talk.interrupt() > std::time::Duration::ZERO);
    assert_eq!(lines(&mut talk)[0]["request"]["subtype"], "interrupt");
    assert_eq!(talk.patience(), None);
    hear(&mut talk, result(true, json!({})));
    hear(&mut talk, result(false, json!({})));
    assert!(talk.printed().outcome.unwrap().is_error);
}

#[test]
fn a_line_that_nobody_can_read_ends_the_program() {
    let mut talk = talk();
    let mut tail = Tail::default();
    talk.push(b"warning: something\n", &mut tail);
    assert_eq!(tail.text(), "warning: something");
    talk.push(&vec![b'x'; 5 << 20], &mut tail);
    assert_eq!(talk.patience(), Some(std::time::Duration::ZERO));
    assert!(talk.printed().unusable.is_some());
}

/// Plays a turn that prints these lines.
fn turn(recovery: &mut Recovery, printed: &[Value], ended: Shown) -> (Option<Shown>, Option<String>) {
    let attempt = recovery.begin("/w", ID);
    let resumed = attempt.resume().map(str::to_owned);
    let mut talk = talk();
    for line in printed {
        hear(&mut talk, line.clone());
    }
    let Printed { session, .. } = talk.printed();
    (recovery.finish(&attempt, &session, ended), resumed)
}

#[test]
fn every_turn_resumes_the_conversation_whatever_became_of_the_one_before() {
    let mut recovery = Recovery::default();
    let failed = |why: &str| Shown::Failed(why.to_owned());
    let init = |resumable: bool| json!({"type": "system", "subtype": "init", "session_id": ID, "session_resumable": resumable});
    let good = [init(true), result(false, json!({}))];
    let corrupt = json!({"session_error_code": "corrupt", "session_error_phase": "load"});
    let conflict = json!({"session_error_code": "conflict", "session_error_phase": "persist"});
    for (printed, ended, expected) in [
        // The first turn of an agent is in the conversation that the host has chosen.
        (vec![result(true, json!({}))], failed("why"), "why"),
        (vec![], Shown::Cancelled, "cancelled"),
        (vec![result(true, corrupt.clone())], failed("why"), "why. Refresh"),
        (vec![result(false, json!({"session_id": OTHER}))], Shown::Completed, "[restore_failed] identity"),
        (vec![init(false), result(false, json!({}))], Shown::Completed, "enable persistence"),
        (good.to_vec(), Shown::Completed, "completed"),
        // From here on it is the active one.
        (vec![result(true, json!({}))], failed("why"), "why"),
        (vec![], Shown::Cancelled, "cancelled"),
        (vec![result(true, conflict)], failed("why"), "why. Resolve"),
        (good.to_vec(), Shown::Completed, "completed"),
        (vec![result(true, corrupt)], failed("why"), "why. Refresh"),
        (good.to_vec(), Shown::Completed, "completed"),
    ] {
        let (shown, resumed) = turn(&mut recovery, &printed, ended);
        assert_eq!(resumed.as_deref(), Some(ID), "{printed:?}");
        let text = match shown.unwrap() {
            Shown::Completed => "completed".to_owned(),
            Shown::Cancelled => "cancelled".to_owned(),
            Shown::Failed(why) => why,
        };
        assert!(text.contains(expected), "{text}: {printed:?}");
    }
}

#[test]
fn a_turn_whose_place_another_has_taken_ends_unheard() {
    let mut recovery = Recovery::default();
    let late = recovery.begin("/w", ID);
    turn(&mut recovery, &[result(false, json!({}))], Shown::Completed);
    let mut talk = talk();
    hear(&mut talk, result(false, json!({})));
    let Printed { session, .. } = talk.printed();
    assert_eq!(recovery.finish(&late, &session, Shown::Completed), None);
}

fn beginning(root: &Path, stored: Option<Envelope>) -> Beginning {
    Beginning {
        root: root.to_owned(),
        id: SessionId::new(ID).unwrap(),
        stored,
        system_prompt: "you are here".to_owned(),
        home: None,
        now: 7,
    }
}

/// The conversation as the program gets it.
fn given(seed: &Seed) -> Envelope {
    let file = seed.content.last().unwrap();
    let bytes = cofferdam_storage::sandbox::home_file_content(file, 1 << 20).unwrap();
    Envelope::read(&bytes, &SessionId::new(ID).unwrap(), &seed.workspace, 0).unwrap()
}

/// Has the program leave this.
fn left(seed: &Seed, bytes: &[u8]) {
    let mut file = std::fs::File::from(seed.content.last().unwrap().try_clone().unwrap());
    file.set_len(0).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_conversation_is_begun_with_the_system_prompt_and_gone_on_with_as_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let seed = beginning(dir.path(), None).seed().unwrap();
    let begun = given(&seed);
    assert_eq!((begun.generation, begun.created_at_ms, begun.messages.len()), (1, 7, 1));
    assert_eq!(begun.messages[0].content, Content::Text("you are here".to_owned()));
    assert!(seed.session().unwrap().ends_with(format!("{ID}.json")));
    // Of another scope, and as the host keeps it.
    let stored = Envelope { generation: 5, workspace_scope: "/elsewhere".to_owned(), ..begun.clone() };
    let again = given(&beginning(dir.path(), Some(stored)).seed().unwrap());
    assert_eq!(again, Envelope { generation: 5, ..begun });
}

#[test]
fn a_stored_conversation_that_was_never_told_where_the_agent_is_is_told_without_keeping_it() {
    let dir = tempfile::tempdir().unwrap();
    let begun = given(&beginning(dir.path(), None).seed().unwrap());
    let mut said = begun.messages[0].clone();
    said.role = "user".to_owned();
    let heard = Envelope { messages: vec![said.clone()], ..begun.clone() };
    let seed = beginning(dir.path(), Some(heard)).seed().unwrap();
    let mut told = given(&seed);
    assert_eq!(told.messages, [begun.messages[0].clone(), said.clone()]);
    told.messages.push(said.clone());
    told.generation += 1;
    left(&seed, &told.write().unwrap());
    let Back::Stored(stored) = seed.back(Some(&None), 8) else { panic!("it was not stored") };
    assert_eq!(stored.messages, [said.clone(), said]);
}

#[test]
fn only_what_was_written_into_this_conversation_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let seed = beginning(dir.path(), None).seed().unwrap();
    let begun = given(&seed);
    let back = |bytes: &[u8]| {
        left(&seed, bytes);
        seed.back(Some(&None), 8)
    };
    assert!(matches!(back(&begun.write().unwrap()), Back::Untouched));
    let next = Envelope { generation: 2, ..begun.clone() };
    assert!(matches!(back(&next.write().unwrap()), Back::Stored(stored) if *stored == next));
    for bad in [
        Envelope { session_id: OTHER.to_owned(), ..next.clone() }.write().unwrap(),
        Envelope { workspace_scope: "/elsewhere".to_owned(), ..next }.write().unwrap(),
        b"damaged".to_vec(),
        Vec::new(),
    ] {
        assert!(matches!(back(&bad), Back::Unusable(_)));
    }
    let gone = Some("no such file".to_owned());
    assert!(matches!(seed.back(Some(&gone), 8), Back::Unusable(why) if why == "no such file"));
    assert!(matches!(seed.back(None, 8), Back::Unusable(_)));
}
