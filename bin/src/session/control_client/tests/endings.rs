//! However a program behaves, the call comes back in time and nothing of the program's group is left.

use super::super::leader::pause;
use super::*;

/// The answer to `inspect`.
const ANSWER: &str = r#"answer '{"ok":true,"data":{"action":"inspect","session":{"session_id":"x","workspace_scope":"/w","created_at_ms":0,"updated_at_ms":0,"message_count":0,"health":"ready"}}}'"#;

/// Longer than anything here takes, even on a machine that has much else to do; far shorter than scripts sleep.
const SOON: Duration = Duration::from_secs(30);

/// Asks for a session. In time, whatever comes of it, and no process of the group is left.
#[track_caller]
fn inspect(core: &Core, client: &SessionControlClient) -> Result<Summary, ClientError> {
    let (took, result) = timed(|| client.inspect("/w", ID));
    assert!(took < SOON, "{took:?}");
    assert_eq!(core.running(), [""; 0]);
    result
}

/// Asks for the removal of so much that no pipe holds the request. The error of the interruption.
#[track_caller]
fn clear_much(core: &Core, client: &SessionControlClient) -> String {
    let much = vec!["x".repeat(16 << 10); 128];
    let (took, outcome) = timed(|| client.clear("/w", &much, &[]).unwrap());
    assert!(took < SOON, "{took:?}");
    assert_eq!(core.running(), [""; 0]);
    assert!(outcome.deleted.is_empty());
    let interruption = outcome.interruption.unwrap();
    assert_eq!(interruption.unknown_session_ids.len(), 128);
    transport::<()>(Err(interruption.error))
}

#[test]
fn as_much_as_may_be_said_to_people_is_no_error() {
    let core = Core::new(&format!("take; head -c 262144 /dev/zero >&2; {ANSWER}"));
    assert!(inspect(&core, &core.client()).is_ok());
}

#[test]
fn an_answer_may_have_a_mebibyte() {
    // Blanks behind the answer, whose last newline is one of them.
    let core = Core::new(&format!(
        "take; a=$({ANSWER}); printf '%s' \"$a\"; head -c $((1048576 - ${{#a}})) /dev/zero | tr '\\0' ' '"
    ));
    assert!(inspect(&core, &core.client()).is_ok());
}

#[test]
fn a_byte_too_many_is_noticed_while_the_program_runs_on() {
    for (prints, stream) in [
        ("head -c 1048577 /dev/zero", "stdout"),
        ("head -c 2097152 /dev/zero", "stdout"),
        ("head -c 262145 /dev/zero >&2", "stderr"),
        ("head -c 524288 /dev/zero >&2", "stderr"),
    ] {
        let core = Core::new(&format!("take; {prints}; sleep 60"));
        let why = transport(inspect(&core, &core.client()));
        assert!(why.contains(&format!("{stream} exceeded")), "{why}");
    }
}

#[test]
fn a_byte_too_many_is_noticed_in_what_a_program_leaves() {
    let core = Core::new("take; head -c 262145 /dev/zero >&2");
    assert!(transport(inspect(&core, &core.client())).contains("stderr exceeded"));
}

#[test]
fn a_program_that_does_not_end_is_ended_when_its_time_is_up() {
    for script in ["take; sleep 60", "take; exec >&- 2>&-; sleep 60", "sleep 60", "kill -STOP $$"] {
        let core = Core::new(script);
        let why = transport(inspect(&core, &core.hurried(500)));
        assert!(why.contains("exceeded 500ms"), "{script}: {why}");
    }
}

#[test]
fn a_program_that_keeps_talking_within_bounds_is_ended_when_its_time_is_up() {
    let core = Core::new("take; while :; do echo x >&2; sleep 0.01; done");
    assert!(transport(inspect(&core, &core.hurried(500))).contains("exceeded 500ms"));
}

#[test]
fn a_program_that_ignores_being_asked_to_end_is_made_to() {
    let core = Core::new("trap '' TERM; take; while :; do sleep 60; done");
    assert!(transport(inspect(&core, &core.hurried(500))).contains("exceeded 500ms"));
}

#[test]
fn a_program_is_asked_to_end_before_it_is_made_to() {
    let core = Core::new("trap 'echo > asked; exit' TERM; take; sleep 60 & echo > trapping; wait");
    // Long enough for the trap to be set, on any machine.
    let client = core.hurried(2000);
    assert!(transport(inspect(&core, &client)).contains("exceeded 2000ms"));
    assert!(core.path("asked").exists() || !core.path("trapping").exists());
}

#[test]
fn without_time_nothing_is_run() {
    let core = Core::new(&format!("take; {ANSWER}"));
    assert!(transport(inspect(&core, &core.hurried(0))).contains("exceeded 0ms"));
    assert!(core.requests().is_empty());
}

#[test]
fn a_program_that_does_not_read_holds_nobody_up() {
    let core = Core::new("sleep 60");
    assert!(clear_much(&core, &core.hurried(1000)).contains("exceeded 1000ms"));
}

#[test]
fn a_program_that_closes_its_input_is_not_waited_for() {
    let core = Core::new("exec <&-; sleep 60");
    assert!(clear_much(&core, &core.client()).contains("request write failed"));
}

#[test]
fn a_program_that_ends_before_it_has_read_everything_has_not_answered() {
    // Somebody else still holds its input, so that nothing but its end tells.
    let core = Core::new(&format!("escape; {ANSWER}"));
    assert!(clear_much(&core, &core.client()).contains("exited before consuming the complete request"));
}

#[test]
fn what_a_program_leaves_behind_in_its_group_is_killed() {
    let core = Core::new(&format!("take; sleep 60 & {ANSWER}"));
    assert!(inspect(&core, &core.client()).is_ok());
    let core = Core::new("take; sleep 60 & exit 0");
    assert!(transport(inspect(&core, &core.client())).contains("invalid JSON session response"));
    let core = Core::new(&format!("take; sh -c 'trap \"\" TERM HUP; while :; do sleep 60; done' & {ANSWER}"));
    assert!(inspect(&core, &core.client()).is_ok());
}

#[test]
fn a_process_that_has_left_the_group_and_holds_every_pipe_holds_nobody_up() {
    let core = Core::new(&format!("take; escape; {ANSWER}"));
    assert!(inspect(&core, &core.client()).is_ok());
    assert!(core.escaped().is_some());

    let core = Core::new("escape; take; sleep 60");
    assert!(transport(inspect(&core, &core.hurried(2000))).contains("exceeded 2000ms"));

    let core = Core::new("escape; sleep 60");
    assert!(clear_much(&core, &core.hurried(2000)).contains("exceeded 2000ms"));
}

#[test]
fn a_program_that_cannot_be_run_is_named() {
    let core = Core::new("");
    std::fs::write(core.path("text"), "no program").unwrap();
    for program in ["missing", "text", "."] {
        let program = core.path(program);
        let why = transport(SessionControlClient::new(&program).inspect("/w", ID));
        assert!(why.starts_with(&format!("failed to run {}: ", program.display())), "{why}");
    }
}

#[test]
fn a_program_that_is_being_installed_is_tried_again() {
    let core = Core::new(&format!("take; {ANSWER}"));
    let writer = std::fs::OpenOptions::new().append(true).open(core.path("core")).unwrap();
    let why = transport(core.hurried(300).inspect("/w", ID));
    assert!(why.contains("exceeded 300ms"), "{why}");
    let installing = std::thread::spawn(move || {
        pause(Duration::from_millis(50));
        drop(writer);
    });
    assert!(core.client().inspect("/w", ID).is_ok());
    installing.join().unwrap();
}

#[test]
fn no_call_leaves_a_descriptor_or_a_thread() {
    const ALONE: &str = "COFFERDAM_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // The other tests of this process open descriptors too.
        let name = std::thread::current().name().unwrap().to_owned();
        let alone = Command::new(std::env::current_exe().unwrap())
            .args([&name, "--exact"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(alone.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let count = |what| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let before = (count("fd"), count("task"));
    for (script, timeout) in [
        (&*format!("take; {ANSWER}"), 30_000),
        ("take; answer '{'", 30_000),
        ("take; head -c 2000000 /dev/zero", 30_000),
        ("take; sleep 60", 100),
        (&*format!("take; escape; {ANSWER}"), 30_000),
        ("escape; sleep 60", 1000),
    ] {
        let core = Core::new(script);
        let _ = core.hurried(timeout).inspect("/w", ID);
        let _ = core.hurried(0).inspect("/w", ID);
        assert_eq!((count("fd"), count("task")), before, "{script}");
    }
    let _ = SessionControlClient::new("/nonexistent/core").inspect("/w", ID);
    assert_eq!((count("fd"), count("task")), before);
}

#[test]
fn a_run_that_is_given_up_midway_is_ended() {
    use super::super::leader::Leader;
    let core = Core::new("trap '' TERM; echo > started; while :; do sleep 60; done");
    let mut command = Command::new(core.path("core"));
    command.arg("--session-control");
    let child = cofferdam_storage::sys::in_new_session(&mut command).spawn().unwrap();
    let leader = Leader::new(child).unwrap();
    while !core.path("started").exists() {
        pause(Duration::from_millis(5));
    }
    assert!(!core.running().is_empty());
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _leader = leader;
        panic!("midway");
    }));
    assert!(unwound.is_err());
    assert_eq!(core.running(), [""; 0]);
}
