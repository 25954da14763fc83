//! From a slot to the first turn, and everything that can go wrong on the way.

use cofferdam_protocol::pod::{PodErrorCode, Probe, SandboxProbeMode, TaskStatus};

use super::bench::{Bench, SESSION, policy};
use crate::host::agent::{AgentError, AgentEvent};
use crate::host::live_task::{Begin, GiveBackSlot};
use crate::host::memory::{BeginTurn, Whose};
use crate::host::{HostFailure, MainSession};
use crate::mailbox::Carries;

const CHECK: &str = r#"task.setSandboxCheck {"check":{"at":7,"fsDenied":true,"mode":"workspace-write","note":"","probe":"denied","root":"/root"}}"#;

fn code(begun: Result<(), HostFailure>) -> String {
    begun.unwrap_err().code.word()
}

#[actix::test]
async fn a_task_with_a_slot_gets_an_agent_and_its_first_turn_in_the_contracts_order() {
    let bench = Bench::new();
    bench.ready(|ready| ready.tools = ["bash", "read", "bash"].map(str::to_owned).into());
    bench.begin().await.unwrap();
    let expected = [
        "task.markStarting",
        "agent: start workspace-write read,bash,write",
        CHECK,
        r#"task.setAvailableTools {"tools":["bash","read"]}"#,
        "task.markRunning",
        "live",
        "agent: told the task",
    ];
    assert_eq!(bench.take(), expected);
    bench.agent(AgentEvent::TurnStarted { turn: 1 }).await;
    assert_eq!(bench.take(), [r#"task.turnStarted {"turn":1}"#]);
    let expected = [
        "Note: the main conversation was not read: reading it is off in the configuration",
        "Prompt: the task",
        "Turn: turn 1 began",
    ];
    assert_eq!(bench.entries().await, expected);
    let start = bench.started();
    assert_eq!(
        (start.session_id.as_str(), start.preset.as_str()),
        (format!("pod-session-{SESSION}").as_str(), "p")
    );
    assert_eq!(start.turns, 0);
    assert!(start.agent_dir.is_some_and(|dir| dir.is_dir()));
    assert_eq!(start.policy, policy());
    assert!(start.system_prompt.contains("/root/t"), "{}", start.system_prompt);
}

#[actix::test]
async fn where_the_policy_is_not_known_it_is_asked_for() {
    let bench = Bench::new();
    bench.task.send(Begin { policy: None, ..bench.message() }).await.unwrap().unwrap();
    assert_eq!(bench.take()[..2], ["sandbox.prepare", "task.markStarting"]);
    assert_eq!(bench.started().policy, policy());
}

#[actix::test]
async fn an_agent_that_goes_on_with_its_conversation_gets_no_turn() {
    let bench = Bench::new();
    bench.shows(|task| task.turns = 3);
    bench.task.send(Begin { resume: true, ..bench.message() }).await.unwrap().unwrap();
    bench.after(1).await;
    let expected = ["task.markStarting", "agent: start again workspace-write read,bash,write", CHECK, "live"];
    assert_eq!(bench.take(), expected);
    assert_eq!(bench.started().turns, 3);
    bench.tell("go on").await.unwrap();
    assert_eq!(bench.take(), ["agent: told go on"]);
}

#[actix::test]
async fn a_slot_is_given_back_once_and_not_under_a_turn() {
    let bench = Bench::new();
    let resumed = Begin { resume: true, ..bench.message() };
    bench.task.send(resumed.clone()).await.unwrap().unwrap();
    bench.take();
    bench.shows(|task| task.status = TaskStatus::Completed);
    let task = bench.task.send(GiveBackSlot).await.unwrap();
    assert_eq!(task.map(|task| task.status), Some(TaskStatus::Completed));
    assert_eq!(bench.task.send(GiveBackSlot).await.unwrap(), None);
    assert_eq!(bench.take(), ["task.cancel"]);

    // Told something at once: a cancellation would be that of its turn.
    let bench = Bench::new();
    bench.task.send(resumed.clone()).await.unwrap().unwrap();
    bench.tell("go on").await.unwrap();
    bench.agent(AgentEvent::TurnStarted { turn: 1 }).await;
    assert_eq!(bench.task.send(GiveBackSlot).await.unwrap(), None);
    bench
        .agent(AgentEvent::TurnEnded { turn: 1, reason: "completed".to_owned(), error: String::new() })
        .await;
    assert_eq!(bench.task.send(GiveBackSlot).await.unwrap(), None);
    let said = bench.take();
    assert!(!said.contains(&"task.cancel".to_owned()), "{said:?}");

    // Told something that it does not take.
    let bench = Bench::new();
    bench.task.send(resumed).await.unwrap().unwrap();
    bench.follow_up_fails(AgentError::Busy);
    bench.tell("go on").await.unwrap_err();
    assert_eq!(bench.take().last().unwrap(), "task.cancel");
}

#[actix::test]
async fn turns_are_counted_on_from_one_of_which_only_its_beginning_is_kept() {
    let bench = Bench::new();
    bench.shows(|task| task.turns = 1);
    let kept = |turn, told: &str| {
        let whose = Whose::of(&bench.message().task).unwrap();
        bench.parts.memory.recipient().send(BeginTurn { whose, turn, told: told.to_owned() })
    };
    kept(1, "one").await.unwrap().unwrap();
    kept(2, "two, of which the core had not heard when the host died").await.unwrap().unwrap();
    bench.task.send(Begin { resume: true, ..bench.message() }).await.unwrap().unwrap();
    assert_eq!(bench.started().turns, 2);
    bench.tell("three").await.unwrap();
    bench.agent(AgentEvent::TurnStarted { turn: 3 }).await;
    let expected = ["1 one", "2 two, of which the core had not heard when the host died", "3 three"];
    assert_eq!(bench.turns().await, expected);
}

#[actix::test]
async fn an_agent_that_may_not_write_is_started_so_and_without_the_tools_for_it() {
    let mut bench = Bench::new();
    bench.config.allow_writes = false;
    bench.begin().await.unwrap();
    assert!(bench.take().contains(&"agent: start read-only read,bash".to_owned()));
    bench.agent(AgentEvent::TurnStarted { turn: 1 }).await;
    bench.agent(AgentEvent::ToolCall { name: "write".to_owned(), input: String::new() }).await;
    assert!(bench.take().iter().any(|line| line.starts_with("agent: cancel Guard")));
}

#[actix::test]
async fn a_task_that_has_ended_meanwhile_is_told_nothing() {
    let bench = Bench::new();
    bench.shows(|task| task.status = TaskStatus::Interrupted);
    bench.begin().await.unwrap();
    assert_eq!(bench.take()[2..], [CHECK, "live"]);
}

#[actix::test]
async fn the_context_is_a_part_of_the_system_prompt_and_its_note_one_of_the_transcript() {
    let mut bench = Bench::new();
    bench.config.read_context = true;
    bench.main = Some(MainSession { id: "not-an-id".to_owned(), cwd: "/".to_owned(), subagent: false });
    bench.begin().await.unwrap();
    let entries = bench.entries().await;
    assert!(
        entries[0].starts_with("Note: no context: the main session not-an-id is not stored for /"),
        "{entries:?}"
    );
    assert!(!bench.started().system_prompt.contains("Context"));
}

#[actix::test]
async fn a_preset_that_does_not_go_with_the_task_fails_it_before_anything_is_started() {
    let bench = Bench::with(|preset| preset.needs = ["bash", "grep", "glob"].map(str::to_owned).into());
    assert_eq!(code(bench.begin().await), "CONFIG_INVALID");
    let message = "the preset p needs tools that the task may not use: grep, glob; allow them in the configuration, or \
                   choose another preset";
    let expected = [
        format!("warning task t has no agent: {message}"),
        format!(r#"task.setError {{"code":"CONFIG_INVALID","message":"{message}"}}"#),
        "agent: dispose".to_owned(),
        "ended".to_owned(),
    ];
    assert_eq!(bench.take(), expected);

    let bench = Bench::with(|preset| preset.broken = Some("it is not installed".to_owned()));
    let failure = bench.begin().await.unwrap_err();
    let message = "the preset p cannot be used: it is not installed; choose another one in the configuration";
    assert_eq!(failure.message, message);
}

#[actix::test]
async fn an_agent_that_does_not_start_fails_the_task_and_says_why() {
    let table = [
        (AgentError::Config("no such model".to_owned()), "CONFIG_INVALID", "no such model"),
        (AgentError::NotResumable("it is lost".to_owned()), "TASK_NOT_RESUMABLE", "it is lost"),
        (AgentError::Failed("no such program".to_owned()), "INTERNAL", "no such program"),
    ];
    for (error, expected, why) in table {
        let bench = Bench::new();
        bench.start_fails(error.clone());
        assert_eq!(code(bench.begin().await), expected);
        let said = bench.take();
        let set =
            format!(r#"task.setError {{"code":"{expected}","message":"the agent does not start: {why}"}}"#);
        assert!(said.contains(&set), "{said:?}");
        assert_eq!(said[said.len() - 2..], ["agent: dispose", "ended"]);
        // A task that was only resumed keeps its record.
        let bench = Bench::new();
        bench.start_fails(error);
        let begun = bench.task.send(Begin { resume: true, ..bench.message() }).await.unwrap();
        assert_eq!(code(begun), expected);
        bench.settle().await;
        let said = bench.take();
        assert!(!said.iter().any(|line| line.starts_with("task.setError")), "{said:?}");
        assert!(said.contains(&"task.cancel".to_owned()), "its slot is given back: {said:?}");
        assert_eq!(said[said.len() - 2..], ["agent: dispose", "ended"]);
    }
}

#[actix::test]
async fn an_agent_that_is_not_ready_in_thirty_seconds_is_ended() {
    let bench = Bench::new();
    bench.deaf("start");
    let begins = bench.begins();
    bench.after(29).await;
    assert_eq!(bench.take().len(), 2);
    bench.after(1).await;
    assert_eq!(code(begins.await.unwrap()), "INTERNAL");
    let said = bench.take();
    assert!(
        said[1].starts_with(
            r#"task.setError {"code":"INTERNAL","message":"the agent was not ready within 30 s"#
        )
    );
    assert_eq!(said[2..], ["agent: dispose", "ended"]);
}

#[actix::test]
async fn an_agent_that_ends_while_it_is_made_ready_fails_the_task() {
    let bench = Bench::new();
    bench.deaf("start");
    let begins = bench.begins();
    bench.settle().await;
    bench.agent(AgentEvent::Gone { message: "out of memory".to_owned() }).await;
    assert_eq!(
        begins.await.unwrap().unwrap_err().message,
        "the agent ended while it was made ready: out of memory"
    );
    assert_eq!(bench.take().last().unwrap(), "ended");
}

#[actix::test]
async fn a_sandbox_that_is_not_proven_to_hold_gets_nothing_to_do() {
    use Probe::{Allowed, Ambiguous, Denied, Failed, SkippedNoParent};
    use SandboxProbeMode::{Strict, Warn};
    let table = [
        (Denied, Strict, true),
        (SkippedNoParent, Strict, true),
        (Allowed, Strict, false),
        (Ambiguous, Strict, false),
        (Failed, Strict, false),
        (Denied, Warn, true),
        (SkippedNoParent, Warn, true),
        (Allowed, Warn, false),
        (Ambiguous, Warn, true),
        (Failed, Warn, true),
    ];
    for (probe, mode, holds) in table {
        for resume in [false, true] {
            let mut bench = Bench::new();
            bench.config.sandbox_probe_mode = mode;
            bench.ready(|ready| ready.check.probe = probe);
            let begun = bench.task.send(Begin { resume, ..bench.message() }).await.unwrap();
            bench.settle().await;
            let said = bench.take();
            assert_eq!(begun.is_ok(), holds, "{probe:?} {mode:?} {begun:?}");
            assert_eq!(said.contains(&"agent: told the task".to_owned()), holds && !resume, "{said:?}");
            assert_eq!(said.contains(&"ended".to_owned()), !holds, "{said:?}");
        }
    }
}

#[actix::test]
async fn what_the_core_thinks_of_the_sandbox_counts_too() {
    let bench = Bench::new();
    bench.holds("task.setSandboxCheck");
    bench.shows(|task| {
        task.status = TaskStatus::Failed;
        task.error = "the sandbox does not hold".to_owned();
    });
    let begins = bench.begins();
    bench.settle().await;
    bench.let_go().await;
    let failure = begins.await.unwrap().unwrap_err();
    assert_eq!(failure.message, "the sandbox did not pass its test: the sandbox does not hold");
    // It has said so itself.
    assert!(!bench.take().iter().any(|line| line.starts_with("task.setError")));
}

#[actix::test]
async fn a_core_that_is_busy_is_asked_again() {
    let bench = Bench::new();
    bench.refuses("task.markStarting", PodErrorCode::CoreUnavailable, 2);
    bench.refuses("task.markRunning", PodErrorCode::DbError, 1);
    bench.begin().await.unwrap();
    bench.after(3).await;
    let said = bench.take();
    assert_eq!(said.iter().filter(|line| *line == "task.markStarting").count(), 3);
    assert_eq!(said.iter().filter(|line| *line == "task.markRunning").count(), 2);
    assert_eq!(said.last().unwrap(), "agent: told the task");
}

#[actix::test]
async fn a_core_that_refuses_for_good_ends_it_and_a_task_that_has_ended_keeps_its_record() {
    for (code, set) in [(PodErrorCode::TaskBusy, true), (PodErrorCode::TaskNotResumable, false)] {
        let bench = Bench::new();
        bench.refuses("task.markStarting", code, 1);
        assert_eq!(bench.begin().await.unwrap_err().code, code.into());
        let said = bench.take();
        assert_eq!(said.iter().any(|line| line.starts_with("task.setError")), set, "{said:?}");
        assert_eq!(said.last().unwrap(), "ended");
    }
}

#[actix::test]
async fn a_cancellation_while_the_agent_is_made_ready_comes_before_the_first_turn() {
    for held in ["task.markStarting", "task.setSandboxCheck", "task.markRunning"] {
        let bench = Bench::new();
        bench.holds(held);
        let begins = bench.begins();
        bench.settle().await;
        bench.cancel().await;
        assert_eq!(code(begins.await.unwrap()), "TASK_NOT_RESUMABLE");
        bench.let_go().await;
        let said = bench.take();
        assert!(!said.contains(&"agent: told the task".to_owned()), "{said:?}");
        let ended = r#"task.turnEnded {"lastText":null,"reason":"aborted","timedOut":false,"turn":1}"#;
        assert!(said.contains(&ended.to_owned()), "{said:?}");
        assert_eq!(said.last().unwrap(), "ended");
    }
}

#[actix::test]
async fn a_cancellation_before_the_beginning_is_not_forgotten() {
    let bench = Bench::new();
    bench.cancel().await;
    assert_eq!(code(bench.begin().await), "TASK_NOT_RESUMABLE");
    let ended = r#"task.turnEnded {"lastText":null,"reason":"aborted","timedOut":false,"turn":1}"#;
    assert_eq!(bench.take(), [ended, "agent: dispose", "ended"]);
}

#[actix::test]
async fn a_task_that_has_an_agent_begins_no_second_time() {
    let bench = Bench::idle().await;
    assert_eq!(code(bench.begin().await), "TASK_BUSY");
    let bench = Bench::new();
    bench.deaf("start");
    let first = bench.begins();
    bench.settle().await;
    assert_eq!(code(bench.begin().await), "TASK_BUSY");
    first.abort();
}

#[actix::test]
async fn an_agent_that_does_not_take_its_task_fails_it() {
    let bench = Bench::new();
    bench.follow_up_fails(AgentError::Failed("it is confused".to_owned()));
    bench.begin().await.unwrap();
    let set = r#"task.setError {"code":"AGENT_FAILED","message":"the agent did not take what it was told: it is confused"}"#;
    assert_eq!(bench.take().last().unwrap(), set);
    // It is there still.
    bench.follow_up_fails(AgentError::Gone);
    assert_eq!(code(bench.tell("again").await), "TASK_NOT_RESUMABLE");
    assert_eq!(bench.take(), ["agent: told again", "not live"]);
}
