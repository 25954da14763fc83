//! `cofferdam export`.

use cofferdam_protocol::host::{ExportList, Exported, HostEvent, ListExports};
use cofferdam_protocol::pod::*;
use serde_json::json;

use crate::client::host::testing::*;
use crate::control::{Answered, Listener};
use crate::terminal::testing::Input;

/// A host with one task of two files, and one export.
fn host() -> Stub {
    Stub::new(|method, args| match method {
        "getState" => ok(state(&[row("pod-1", TaskStatus::Completed)])),
        "listFiles" => {
            ok(files(&[("d", FileType::Directory, 0), ("d/a", FileType::File, 5), ("b", FileType::File, 7)]))
        }
        "exportEntries" => {
            let status = match args["entries"][0].as_str() {
                Some("b") => ExportItemStatus::Fail,
                _ => ExportItemStatus::Ok,
            };
            let message = (args["mode"] == "move").then(|| "some stayed\x1b".to_owned());
            ok(Exported { export: export("exp-1", &[(status, "/out/a", "")]), message })
        }
        "listExports" => ok(ExportList {
            exports: vec![export("exp-1", &[(ExportItemStatus::Ok, "/out/a", "")]), export("exp-2", &[])],
            remembered: std::collections::BTreeMap::new(),
            truncated: true,
        }),
        "undoExport" => {
            let conflict = UndoConflict { path: "/out/a".into(), message: "it was changed".into() };
            let conflicts = if args["exportId"] == "exp-2" { vec![conflict] } else { Vec::new() };
            let removed = vec!["/out/b".into()];
            ok(ExportUndone { export: export("exp-1", &[]), removed, restored: Vec::new(), conflicts })
        }
        other => panic!("{other}"),
    })
}

#[test]
fn an_export_says_what_goes_where_and_asks() {
    for (line, question) in [
        (
            &["export", "create", "pod-1", "--to", "/out"][..],
            "Copy 2 file(s), 12 B, of pod-1 to /out; files in the way are replaced? [y/N] ",
        ),
        (
            &["export", "create", "pod-1", "d", "--to", "/out/../o", "--move", "--conflict", "skip"],
            "Move 1 file(s), 5 B, of pod-1 to /o; files in the way stay? [y/N] ",
        ),
        (
            &["export", "create", "pod-1", "d", "--to", "/out", "--conflict", "rename"],
            "Copy 1 file(s), 5 B, of pod-1 to /out; files in the way stay, and the new ones get other names? [y/N] ",
        ),
    ] {
        let declining = host();
        let declined = declining.run_with(line, Input::Typed("\n"));
        assert_eq!(declined, ran(0, "", &format!("{question}Nothing was exported.\n")), "{line:?}");
        let nobody = declining.run_with(line, Input::Piped("y\n"));
        assert_eq!(nobody, ran(1, "", "Error: nobody is here to confirm it; --yes does\n"));
        assert!(!declining.was_asked("exportEntries"));
        let agreed = host().run_with(line, Input::Typed("y\n"));
        assert!(
            agreed.code == 0 && agreed.out.ends_with("exp-1: 1 written, 5 B; 0 skipped, 0 failed\n"),
            "{agreed:?}"
        );
    }
}

#[test]
fn flags_become_the_args_of_the_method_and_a_relative_target_is_made_absolute() {
    let here = std::env::current_dir().unwrap();
    let host_1 = host();
    host_1.run(&["export", "create", "pod-1", "--to", "out", "-y"]);
    assert_eq!(
        host_1.args("exportEntries"),
        json!({"taskId": "pod-1", "entries": ["."], "targetDir": here.join("out"), "mode": "copy",
               "conflict": "overwrite", "remember": false})
    );
    let host_2 = host();
    let moved = host_2.run(&[
        "export",
        "create",
        "1",
        "d",
        "b",
        "--to",
        "/o",
        "-y",
        "--move",
        "--remember",
        "--conflict",
        "rename",
    ]);
    assert_eq!(
        host_2.args("exportEntries"),
        json!({"taskId": "pod-1", "entries": ["d", "b"], "targetDir": "/o", "mode": "move",
               "conflict": "rename", "remember": true})
    );
    assert_eq!((moved.code, moved.err.as_str()), (0, "some stayed\\u{1b}\n"));
}

#[test]
fn a_file_that_failed_is_a_failure_and_one_that_is_not_there_is_not_asked_for() {
    let failed = host().run(&["export", "create", "pod-1", "b", "--to", "/out", "-y"]);
    assert_eq!(failed, ran(1, "failed   /out/a\nexp-1: 0 written, 0 B; 0 skipped, 1 failed\n", ""));
    let host = host();
    let missing = host.run(&["export", "create", "pod-1", "c", "--to", "/out", "-y"]);
    let why = "Error: the task has no file c; see which there are: cofferdam task files <task>\n";
    assert_eq!(missing, ran(1, "", why));
    assert!(!host.was_asked("exportEntries"));
}

#[test]
fn a_terminal_shows_how_far_an_export_is_and_nothing_else_does() {
    let progress = |done, task: &str| HostEvent::ExportProgress {
        export_id: "exp-1".into(),
        task_id: task.into(),
        done,
        total: 2,
    };
    let line = &["export", "create", "pod-1", "--to", "/out", "-y"];
    let stream = Stream::of(&[progress(0, "pod-1"), progress(1, "pod-2")]);
    let seen = host().stream(stream).run_with(line, Input::Typed(""));
    // The events and the answer come by two ways; whatever was seen is gone at the end.
    assert!(seen.code == 0 && seen.err.ends_with("\r\x1b[K") && !seen.err.contains("1/2"), "{seen:?}");
    let host = host();
    assert_eq!(host.run(line).err, "");
    assert!(!host.was_asked("events"));
}

#[test]
fn what_is_said_while_an_answer_is_awaited_is_heard_at_once() {
    let (heard, is_heard) = std::sync::mpsc::channel::<()>();
    let is_heard = std::sync::Mutex::new(is_heard);
    let stub = Stub::new(move |_, _| {
        // Not before.
        is_heard.lock().unwrap().recv().unwrap();
        ok(ExportList {
            exports: Vec::new(),
            remembered: std::collections::BTreeMap::new(),
            truncated: false,
        })
    });
    let stub = stub.stream(Stream::of(&[HostEvent::StateChanged]));
    let mut listener = Listener::open(&stub.control(), None).unwrap();
    let answer = listener.ask_hearing(&ListExports {}, |event| {
        assert_eq!(*event, HostEvent::StateChanged);
        heard.send(()).unwrap();
    });
    assert!(matches!(answer, Answered::Answer(Ok(_))), "{answer:?}");
}

#[test]
fn exports_are_listed_and_undone_after_a_yes() {
    let listed = host().run(&["export", "list"]);
    assert!(listed.out.ends_with("\nTotal: 2 export(s)\n"), "{}", listed.out);
    assert_eq!(listed.err, "There are older ones than can be listed.\n");
    let line = &["export", "undo", "1"];
    let question = "Undo exp-1: take back 1 file(s) in /out? [y/N] ";
    let out = "removed   /out/b\nexp-1: 1 removed, 0 restored, 0 kept\n";
    assert_eq!(host().run_with(line, Input::Typed("y\n")), ran(0, out, question));
    let host = host();
    let declined = ran(0, "", &format!("{question}Nothing was undone.\n"));
    assert_eq!(host.run_with(line, Input::Typed("n\n")), declined);
    assert_eq!(host.run(line).code, 1);
    assert!(!host.was_asked("undoExport"));
    let none = "Error: no export has an id that begins with '9'; see cofferdam export list\n";
    assert_eq!(host.run(&["export", "undo", "9", "-y"]), ran(1, "", none));
}

#[test]
fn a_conflict_of_an_undo_is_a_failure() {
    let kept = host().run(&["export", "undo", "exp-2", "-y"]);
    let out = "removed   /out/b\nkept      /out/a: it was changed\nexp-1: 1 removed, 0 restored, 1 kept\n";
    assert_eq!(kept, ran(1, out, ""));
    let json = host().run(&["export", "undo", "exp-2", "-y", "--format", "json"]);
    let undone: ExportUndone = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.code, undone.conflicts.len()), (1, 1));
}
