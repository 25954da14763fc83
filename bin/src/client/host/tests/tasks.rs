//! `cofferdam task`, but for following.

use cofferdam_protocol::host::*;
use cofferdam_protocol::pod::*;
use serde_json::json;

use crate::client::host::testing::*;
use crate::terminal::testing::Input;

/// A host with three tasks, the last of which is a migrated one.
fn host() -> Stub {
    Stub::new(|method, args| {
        let mut done = row("pod-done", TaskStatus::Completed);
        (done.task.label, done.task.ended_at, done.task.main_session_id) =
            ("first".into(), NOW, "main-1".into());
        let mut runs = row("pod-runs", TaskStatus::Running);
        (runs.task.label, runs.live) = ("second".into(), true);
        let mut old = row("pod-old", TaskStatus::Failed);
        (old.task.legacy, old.task.ended_at) = (true, NOW);
        let mut queued = row("pod-new", TaskStatus::Queued);
        queued.task.queued_position = 2;
        match method {
            "getState" => ok(state(&[done, runs, old])),
            "startTask" if args["description"] == "hurry" => Err((409, "TASK_BUSY", "all slots are taken")),
            "startTask" => ok(StartedTask {
                task_id: "pod-new".into(),
                session_id: "pod-session-2".into(),
                task: queued,
            }),
            "cancelTask" => ok(OneTask { task: runs }),
            "followUp" => ok(OneTask { task: runs }),
            "resumeTask" => ok(ResumedTask { session_id: "s".into(), task: done, live: true }),
            "openTask" => ok(OpenedTask {
                session_id: "s".into(),
                task: done,
                live: false,
                resume_error: Some("its conversation\x1b is gone".into()),
            }),
            "getTranscript" => ok(Transcript { truncated: true, ..said() }),
            "getLegacyTask" => ok(LegacyLog {
                entries: vec![LegacyLogEntry {
                    seq: 1,
                    event: "assistant/message".into(),
                    kind: "assistant".into(),
                    time: NOW,
                    text: "long ago".into(),
                    think: "hm".into(),
                }],
                truncated: true,
                notes: None,
            }),
            "listFiles" => ok(files(&[("a", FileType::File, 5)])),
            "readSandboxFile" => ok(FileText {
                text: "one\ttwo\x1b[2J\r\nthree\n".into(),
                truncated: true,
                bytes: 2048,
                chars: 18,
                encoding: "utf-8".into(),
                binary: false,
            }),
            "cleanup" => {
                ok(CleanedUp { task_id: "pod-done".into(), removed_files: true, removed_record: true })
            }
            "previewReturn" => ok(ReturnPreview { text: "it is done\x1b[2J".into(), truncated: false }),
            "returnToMain" => ok(Returned { id: "ipp-ret-1".into(), truncated: false }),
            "listTurns" => ok(TurnList { turns: [1, 2].map(turn).into(), undo: None }),
            "rewindTask" => {
                ok(Rewound { task: done, turn: 2, undid: None, changed: 3, notes: vec!["a\x1b note".into()] })
            }
            "undoRewind" => ok(Rewound {
                task: done,
                turn: 2,
                undid: Some(WayBack::Rewind),
                changed: 1,
                notes: Vec::new(),
            }),
            other => panic!("{other}"),
        }
    })
}

fn turn(turn: u64) -> TurnRow {
    TurnRow {
        turn,
        at: NOW,
        asked: format!("ask {turn}\x1b"),
        checkpoint: true,
        note: String::new(),
        incomplete: String::new(),
        stands: true,
        after: Some(turn - 1),
    }
}

fn said() -> Transcript {
    transcript(&[entry(1, EntryKind::Prompt, "do it"), entry(2, EntryKind::Assistant, "done\x1b[2J")], 0)
}

#[test]
fn results_are_told_in_a_line_or_a_few() {
    let host = host();
    for (line, out, err) in [
        (&["task", "run", "do it"][..], "pod-new  queued, place 2\n", ""),
        (&["task", "cancel", "pod-runs"], "pod-runs  running, being cancelled\n", ""),
        (&["task", "resume", "done"], "pod-done  completed; its agent is there\n", ""),
        (&["task", "tell", "runs", "more"], "Told: pod-runs  running\n", ""),
        (&["task", "logs", "pod-done"], "> do it\ndone\\u{1b}[2J\n", "(older entries are gone)\n"),
        (&["task", "logs", "old"], "~ hm\nlong ago\n", "(older entries are left out)\n"),
        (
            &["task", "read", "done", "a"],
            "one\ttwo\\u{1b}[2J\nthree\n",
            "(the first 18 characters of 2.0 KiB)\n",
        ),
        (&["task", "clean", "done", "--yes"], "Removed: pod-done, its record and its files\n", ""),
        (
            &["task", "rewind", "done", "--turn", "2", "--yes"],
            "pod-done is what it was before turn 2 (3 paths changed); --undo brings back what there was\n",
            "Note: a\\u{1b} note\n",
        ),
        (
            &["task", "rewind", "done", "--undo", "-y"],
            "The rewind of pod-done to before turn 2 is undone (1 path changed); --undo rewinds it again\n",
            "",
        ),
        (&["task", "return", "done", "-y"], "Sent to main-1: ipp-ret-1\n", ""),
    ] {
        assert_eq!(host.run(line), ran(0, out, err), "{line:?}");
    }
}

#[test]
fn flags_become_the_args_of_the_method() {
    for (line, method, args) in [
        (
            &["task", "run", "x", "--preset", "p", "--subdir", "s", "--label", "l", "--main", "m"][..],
            "startTask",
            json!({"mainSessionId": "m", "description": "x", "subdir": "s", "label": "l", "presetId": "p"}),
        ),
        (
            &["task", "run", "x"],
            "startTask",
            json!({"mainSessionId": "", "description": "x", "subdir": "", "label": null, "presetId": null}),
        ),
        (
            &["task", "cancel", "runs", "--reason", "enough"],
            "cancelTask",
            json!({"taskId": "pod-runs", "reason": "enough"}),
        ),
        (&["task", "tell", "pod-d", "more"], "followUp", json!({"taskId": "pod-done", "text": "more"})),
        (&["task", "resume", "pod-d"], "resumeTask", json!({"taskId": "pod-done"})),
        (&["task", "open", "pod-d"], "openTask", json!({"taskId": "pod-done"})),
        (&["task", "logs", "pod-d"], "getTranscript", json!({"taskId": "pod-done", "from": 0})),
        (&["task", "turns", "pod-d"], "listTurns", json!({"taskId": "pod-done"})),
        (
            &["task", "rewind", "pod-d", "--turn", "2", "-y"],
            "rewindTask",
            json!({"taskId": "pod-done", "turn": 2}),
        ),
        (&["task", "rewind", "pod-d", "--undo", "-y"], "undoRewind", json!({"taskId": "pod-done"})),
        (&["task", "files", "pod-d"], "listFiles", json!({"taskId": "pod-done"})),
        (
            &["task", "read", "d", "a/b", "--max-chars", "300"],
            "readSandboxFile",
            json!({"taskId": "pod-done", "relPath": "a/b", "maxChars": 300}),
        ),
        (&["task", "clean", "d", "-y"], "cleanup", json!({"taskId": "pod-done", "scope": "record"})),
        (
            &["task", "clean", "d", "-y", "--scope", "all"],
            "cleanup",
            json!({"taskId": "pod-done", "scope": "all"}),
        ),
        (
            &["task", "return", "d", "-y", "--file", "a", "--text", "look"],
            "previewReturn",
            json!({"taskId": "pod-done", "parts": {
                "status": true, "conclusion": true, "file": {"relPath": "a"}, "customText": "look"}}),
        ),
    ] {
        let host = host();
        let ran = host.run(line);
        assert_eq!(ran.code, 0, "{line:?}: {ran:?}");
        assert_eq!(host.args(method), args, "{line:?}");
    }
}

#[test]
fn with_json_each_verb_prints_the_document_it_got() {
    let host = host();
    for (line, key, value) in [
        (&["task", "run", "x"][..], "taskId", json!("pod-new")),
        (&["task", "show", "done"], "id", json!("pod-done")),
        (&["task", "cancel", "runs"], "status", json!("running")),
        (&["task", "tell", "runs", "x"], "id", json!("pod-runs")),
        (&["task", "resume", "done"], "live", json!(true)),
        (&["task", "open", "done"], "resumeError", json!("its conversation\x1b is gone")),
        (&["task", "logs", "done"], "next", json!(3)),
        (&["task", "logs", "old"], "truncated", json!(true)),
        (&["task", "files", "done"], "root", json!("/pods/pod-1")),
        (&["task", "read", "done", "a"], "chars", json!(18)),
        (&["task", "clean", "done", "-y"], "removedFiles", json!(true)),
        (&["task", "return", "done", "-y"], "id", json!("ipp-ret-1")),
    ] {
        let ran = host.run(&[line, &["--format", "json"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line:?}");
        let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(document[key], value, "{line:?}: {document}");
        assert!(!ran.out.contains('\x1b'), "{line:?}");
    }
}

#[test]
fn a_list_can_be_narrowed_to_some_statuses() {
    let host = host();
    let ids = |line: &[&str]| {
        let ran = host.run(&[&["task", "list", "--format", "json"], line].concat());
        let rows: Vec<TaskRow> = serde_json::from_str(&ran.out).unwrap();
        rows.into_iter().map(|row| row.task.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["pod-done", "pod-runs", "pod-old"]);
    assert_eq!(ids(&["--status", "failed", "--status", "running"]), ["pod-runs", "pod-old"]);
    assert_eq!(ids(&["--status", "failed,completed"]), ["pod-done", "pod-old"]);
}

#[test]
fn what_an_agent_is_told_may_come_through_the_standard_input_and_has_limits() {
    let from = |input| {
        let host = host();
        let ran = host.run_with(&["task", "run", "-"], Input::Piped(input));
        (ran.code, ran.err, host.asked().into_iter().find(|(method, _)| method == "startTask"))
    };
    let (code, _, asked) = from("line one\nline two\n");
    assert_eq!((code, &asked.unwrap().1["description"]), (0, &json!("line one\nline two\n")));
    for (input, why) in [("", "nothing to tell"), (" \n", "nothing to tell")] {
        let (code, err, asked) = from(input);
        assert!(code == 1 && err.contains(why) && asked.is_none(), "{err}");
    }
    let host = host();
    let most = "x".repeat(64 << 10);
    assert_eq!(host.run(&["task", "run", &most]).code, 0);
    let ran = host.run(&["task", "run", &format!("{most}x")]);
    assert!(ran.code == 1 && ran.err.contains("64 KiB at most"), "{}", ran.err);
}

#[test]
fn a_refusal_says_what_to_do_and_is_a_failure() {
    let expected = "Error [TASK_BUSY]: all slots are taken\n\
                    Hint: wait, or cancel a task that runs: cofferdam task cancel <task>\n";
    assert_eq!(host().run(&["task", "run", "hurry"]), ran(1, "", expected));
    let none = "Error: no task has an id that begins with 'x'; see cofferdam task list\n";
    for line in [
        &["task", "show", "x"][..],
        &["task", "cancel", "x"],
        &["task", "resume", "x"],
        &["task", "tell", "x", "more"],
        &["task", "open", "x"],
        &["task", "logs", "x"],
        &["task", "files", "x"],
        &["task", "read", "x", "a"],
        &["task", "return", "x", "--yes"],
        &["task", "clean", "x", "--yes"],
        &["export", "create", "x", "--to", "/out", "--yes"],
    ] {
        assert_eq!(host().run(line), ran(1, "", none), "{line:?}");
    }
    let two = "Error: o begins the id of more than one task: pod-old, pod-other\n";
    let host = Stub::new(|_, _| ok(state(&["pod-old", "pod-other"].map(|id| row(id, TaskStatus::Failed)))));
    assert_eq!(host.run(&["task", "show", "o"]), ran(1, "", two));
}

#[test]
fn opening_shows_the_task_and_why_it_has_no_agent() {
    let opened = host().run(&["task", "open", "done"]);
    assert_eq!(opened.code, 0);
    assert!(opened.out.starts_with("Task:         pod-done\nStatus:       completed\n"), "{}", opened.out);
    assert_eq!(opened.err, "Warning: it could not be resumed: its conversation\\u{1b} is gone\n");
}

#[test]
fn a_core_that_is_not_there_is_mentioned_beside_the_list() {
    let host = Stub::new(|_, _| {
        let mut state = state(&[]);
        state.core.message = "the core is gone\x1b".into();
        ok(state)
    });
    let expected = ran(0, "No tasks found.\n", "Warning: the core is gone\\u{1b}\n");
    assert_eq!(host.run(&["task", "list"]), expected);
}

#[test]
fn cleaning_one_task_says_what_goes_and_what_stays_and_asks() {
    let ask = "Remove this for good? [y/N] ";
    for (line, plan) in [
        (
            &["task", "clean", "done"][..],
            "pod-done  completed  first\n\
             \u{20} its record is removed\n\
             \u{20} its directory /pods/pod-done, with everything in it, stays\n",
        ),
        (
            &["task", "clean", "done", "--scope", "files"],
            "pod-done  completed  first\n\
             \u{20} its record stays\n\
             \u{20} its directory /pods/pod-done, with everything in it, is removed\n",
        ),
        (
            &["task", "clean", "runs", "--scope", "all"],
            "pod-runs  running  second\n\
             \u{20} it has not ended, and is cancelled first\n\
             \u{20} its record is removed\n\
             \u{20} its directory /pods/pod-runs, with everything in it, is removed\n",
        ),
    ] {
        let declining = host();
        let declined = declining.run_with(line, Input::Typed("n\n"));
        assert_eq!(declined, ran(0, "", &format!("{plan}{ask}Nothing was removed.\n")), "{line:?}");
        assert!(!declining.was_asked("cleanup"));
        let agreed = host().run_with(line, Input::Typed("y\n"));
        assert_eq!(agreed, ran(0, "Removed: pod-done, its record and its files\n", &format!("{plan}{ask}")));
        // What comes through a pipe is no person's word.
        for input in ["", "y\n"] {
            let host = host();
            let nobody = host.run_with(line, Input::Piped(input));
            let refusal = "Error: nobody is here to confirm it; --yes does\n";
            assert_eq!(nobody, ran(1, "", &format!("{plan}{refusal}")));
            assert!(!host.was_asked("cleanup"));
        }
    }
}

/// A host with a task of three turns, of which the second and third were taken back and the fourth came since, if there
/// was a rewind.
fn rewound(undo: Option<WayBack>) -> Stub {
    Stub::new(move |method, _| {
        let turns = vec![
            turn(1),
            turn(2),
            TurnRow { incomplete: "a\x1b could not be read".into(), stands: undo.is_none(), ..turn(3) },
            TurnRow { after: Some(1), ..turn(4) },
        ];
        let undo = undo.map(|of| Undoable {
            of,
            turn: 2,
            at: 0,
            brings: vec![2, 3],
            takes: vec![4],
            incomplete: "b\x1b is a mount".into(),
        });
        match method {
            "getState" => ok(state(&[row("pod-done", TaskStatus::Completed)])),
            "listTurns" => ok(TurnList { turns, undo }),
            other => panic!("{other}"),
        }
    })
}

#[test]
fn before_a_rewind_is_told_what_goes_and_before_an_undo_what_of() {
    let undo = &["task", "rewind", "done", "--undo"][..];
    let kept =
        "  what there is now is kept; --undo brings it back\nBring it back? [y/N] Nothing was changed.\n";
    let files = "Files and conversation become again what they were just before that.\n\
                 \u{20} turn 4 is taken back\n\
                 \u{20} turns 2 to 3 come back\n\
                 \u{20} not all of it will be as it was: b\\u{1b} is a mount\n";
    for (of, line, plan) in [
        (
            None,
            &["task", "rewind", "done", "--turn", "3"][..],
            "pod-done goes back to what it was before turn 3: files and conversation.\n\
             \u{20} turn 3 was asked: ask 3\\u{1b}\n\
             \u{20} turns 3 to 4 are taken back\n\
             \u{20} not all of it will be as it was: a\\u{1b} could not be read\n"
                .to_owned(),
        ),
        (Some(WayBack::Rewind), undo, format!("pod-done: it was rewound to before turn 2. {files}")),
        (Some(WayBack::Undo), undo, format!("pod-done: the rewind to before turn 2 was undone. {files}")),
    ] {
        let told = rewound(of).run_with(line, Input::Typed("\n"));
        assert_eq!(told, ran(0, "", &format!("{plan}{kept}")), "{line:?}");
    }
}

#[test]
fn where_there_is_nothing_to_go_back_to_nobody_is_asked() {
    for (line, why) in [
        (
            &["task", "rewind", "done", "--undo"][..],
            "pod-done has no rewind that could be undone; cofferdam task turns shows to which turns it can be rewound",
        ),
        (
            &["task", "rewind", "done", "--turn", "9"],
            "pod-done has no turn 9 that is known; see cofferdam task turns",
        ),
    ] {
        let told = rewound(None).run_with(line, Input::Typed("y\n"));
        assert_eq!(told, ran(1, "", &format!("Error: {why}\n")), "{line:?}");
    }
}

/// A host whose tasks ended two days ago, just now, and not yet; cleaning fails for one of them.
fn with_ended() -> Stub {
    Stub::new(|method, _| {
        let now = crate::client::host::task::clean::now();
        let task = |id, status, age: i64| {
            let mut row = row(id, status);
            row.task.ended_at = if age < 0 { 0 } else { now - age - 1000 };
            row
        };
        let rows = [
            task("pod-1", TaskStatus::Completed, 2 * 86_400_000),
            task("pod-2", TaskStatus::Completed, 0),
            task("pod-3", TaskStatus::Failed, 2 * 86_400_000),
            task("pod-4", TaskStatus::Running, -1),
        ];
        let result = |id: &str, code: &str, message: &str| BulkCleanupRow {
            task_id: id.into(),
            ok: code.is_empty(),
            code: code.into(),
            message: message.into(),
        };
        match method {
            "getState" => ok(state(&rows)),
            "bulkCleanup" => ok(BulkCleanupResult {
                results: vec![
                    result("pod-1", "", ""),
                    result("pod-3", "DB_ERROR", "the disk\x1b is sulking"),
                ],
                deleted: 1,
                more: true,
            }),
            other => panic!("{other}"),
        }
    })
}

#[test]
fn cleaning_many_shows_them_all_and_removes_none_that_was_not_shown() {
    let host = with_ended();
    let line = &["task", "clean", "--status", "completed,failed", "--older-than", "1d", "--files"];
    let cleaned = host.run_with(line, Input::Typed("yes\n"));
    assert_eq!(
        cleaned,
        ran(
            1,
            "Removed 1 task(s).\n\
             Not removed, 1:\n\
             \u{20} pod-3: [DB_ERROR] the disk\\u{1b} is sulking\n\
             There are more; clean again.\n",
            "Records, and directories with everything in them, that are to be removed:\n\
             \u{20} pod-1  completed  /pods/pod-1  \n\
             \u{20} pod-3  failed  /pods/pod-3  \n\
             Exported files stay.\n\
             Remove 2 task(s) for good? [y/N] "
        )
    );
    let args = host.args("bulkCleanup");
    assert_eq!((&args["statuses"], &args["deleteFiles"]), (&json!(["completed", "failed"]), &json!(true)));
    // As long before now as what was shown had ended at least.
    let age = args["olderThanMs"].as_i64().unwrap() - 86_400_000;
    assert!((0..60_000).contains(&age), "{age}");
}

#[test]
fn cleaning_many_asks_nobody_where_nothing_is_to_be_removed_or_nobody_is() {
    let host = with_ended();
    let none = host.run(&["task", "clean", "--status", "cancelled"]);
    assert_eq!(none, ran(0, "No tasks to remove.\n", ""));
    let nobody = host.run_with(&["task", "clean", "--status", "failed"], Input::Piped("y\n"));
    assert!(
        nobody.code == 1 && nobody.err.ends_with("nobody is here to confirm it; --yes does\n"),
        "{nobody:?}"
    );
    assert!(!host.was_asked("bulkCleanup"));
}

#[test]
fn a_return_is_shown_before_it_is_sent_and_has_a_name_of_its_own() {
    let shown = "To be told to main-1:\n\nit is done\\u{1b}[2J\n\nSend this? [y/N] ";
    let host_1 = host();
    let sent = host_1.run_with(&["task", "return", "done"], Input::Typed("y\n"));
    assert_eq!(sent, ran(0, "Sent to main-1: ipp-ret-1\n", shown));
    let args = host_1.args("returnToMain");
    assert_eq!((&args["mainSessionId"], &args["text"]), (&json!("main-1"), &json!("it is done\x1b[2J")));
    assert!(args["requestId"].as_str().unwrap().len() >= 32, "{args}");
    let host_2 = host();
    let declined = host_2.run_with(&["task", "return", "done", "--main", "other"], Input::Typed("\n"));
    assert!(
        declined.err.contains("told to other:") && declined.err.ends_with("Nothing was sent.\n"),
        "{declined:?}"
    );
    assert!(!host_2.was_asked("returnToMain"));
    let nowhere = host().run(&["task", "return", "runs", "--yes"]);
    let why = "Error: the task was started from no main session; name one with --main\n";
    assert_eq!(nowhere, ran(1, "", why));
    assert_eq!(host().run(&["task", "return", "done"]).code, 1);
}
