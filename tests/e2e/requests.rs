//! What each of the twelve requests promises, on its own ground.

use cofferdam_protocol::ckpt::{CleanupRetention, WsCkptErrorCode, WsCkptRequest, WsCkptResponse};
use cofferdam_tests::files;
use cofferdam_tests::site::run;
use cofferdam_tests::tree::Tree;
use cofferdam_tests::wire::ask;

use crate::site;

#[test]
fn all_twelve_requests_are_answered_each_by_its_own_response() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let id = daemon.init(&ws);
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("file"), "changed\n");
    daemon.checkpoint(&ws, "two");

    let rolled_back = daemon.call(&ask::rollback(&ws, "one"));
    assert_eq!(rolled_back, WsCkptResponse::RollbackOk { from: id.clone(), to: "one".into() });
    assert_eq!(files::read(ws.join("file")), b"content\n");
    assert_eq!(daemon.diff(&ws, "one", "two").len(), 1);
    assert_eq!(daemon.ids(&ws), ["one", "two"]);
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status(&ws)) else { panic!() };
    assert_eq!(report.workspaces.len(), 1);
    let WsCkptResponse::ConfigOk { .. } = daemon.call(&WsCkptRequest::Config) else { panic!() };
    assert_eq!(daemon.call(&WsCkptRequest::ReloadConfig), WsCkptResponse::ReloadConfigOk);
    let WsCkptResponse::HealthAdvisoryOk { .. } = daemon.call(&WsCkptRequest::HealthAdvisory) else {
        panic!()
    };
    let deleted = daemon.call(&ask::delete(&ws, "two", false));
    assert_eq!(deleted, WsCkptResponse::DeleteOk { target: "two".into() });
    let cleaned = daemon.call(&ask::cleanup(&ws, Some(0)));
    assert_eq!(cleaned, WsCkptResponse::CleanupOk { removed: vec!["one".into()] });
    let recovered = daemon.call(&ask::recover(&ws));
    assert_eq!(recovered, WsCkptResponse::RecoverOk { workspace: ws.to_str().unwrap().into() });
    assert_eq!(site.check(), 0);
}

#[test]
fn a_workspace_is_named_by_the_hash_of_its_canonical_path() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let mut sum = site.command("sh");
    sum.args(["-c", r#"printf %s "$1" | sha256sum"#, "sh"]).arg(ws.canonicalize().unwrap());
    let expected = format!("ws-{}", &run(&mut sum).stdout[..6]);
    assert_eq!(daemon.init(&ws), expected);
    // Every request takes the id as well as the path.
    daemon.checkpoint(&expected, "one");
    assert_eq!(daemon.ids(&expected), ["one"]);
    assert_eq!(daemon.ids(format!("{}/", ws.display())), ["one"]);
}

#[test]
fn list_tells_all_that_was_said_about_each_snapshot_oldest_first() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let metadata = r#" { "tool" : "write", "a": [1.0, null, "ü"] } "#;
    daemon.call(&ask::checkpoint_with(&ws, "z first", Some("a message"), Some(metadata), true));
    daemon.call(&ask::checkpoint_with(&ws, "a second", None, Some("null"), false));
    let list = daemon.list(&ws);
    assert_eq!(list.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["z first", "a second"]);
    for entry in &list {
        assert_eq!(entry.workspace, ws.to_str().unwrap());
        assert!(!entry.meta.missing);
        assert!(entry.meta.created_at.as_str().ends_with('Z'), "{}", entry.meta.created_at);
    }
    let [first, second] = list.as_slice() else { panic!("{list:?}") };
    assert_eq!(first.meta.message.as_deref(), Some("a message"));
    assert_eq!(first.meta.metadata.as_deref(), Some(r#"{"a":[1.0,null,"ü"],"tool":"write"}"#));
    assert!(first.meta.pinned);
    assert_eq!((&second.meta.message, &second.meta.metadata, second.meta.pinned), (&None, &None, false));
    assert!(first.meta.created_at.unix_nanos() <= second.meta.created_at.unix_nanos());
}

#[test]
fn list_and_status_without_a_workspace_mean_all_of_them() {
    let site = site();
    let daemon = site.start();
    let (one, two) = (site.workspace("one"), site.workspace("two"));
    daemon.checkpoint(&one, "a");
    daemon.checkpoint(&two, "b");
    daemon.checkpoint(&two, "c");
    let WsCkptResponse::ListOk { snapshots } = daemon.call(&ask::list_all()) else { panic!() };
    assert_eq!(snapshots.into_iter().map(|entry| entry.id).collect::<Vec<_>>(), ["a", "b", "c"]);
    let WsCkptResponse::StatusOk { report } = daemon.call(&ask::status_all()) else { panic!() };
    let mut counts: Vec<_> =
        report.workspaces.iter().map(|info| (info.path.clone(), info.snapshot_count)).collect();
    counts.sort();
    assert_eq!(counts, [(one.display().to_string(), 1), (two.display().to_string(), 2)]);
    assert!(report.fs_total_bytes > 0 && report.fs_used_bytes <= report.fs_total_bytes);
    let WsCkptResponse::HealthAdvisoryOk { over_limit_workspace_count, fs_total_bytes, .. } =
        daemon.call(&WsCkptRequest::HealthAdvisory)
    else {
        panic!()
    };
    assert_eq!((over_limit_workspace_count, fs_total_bytes), (0, report.fs_total_bytes));
}

#[test]
fn config_reports_the_defaults_where_nothing_is_configured() {
    let site = site();
    let daemon = site.start();
    let WsCkptResponse::ConfigOk { config } = daemon.call(&WsCkptRequest::Config) else { panic!() };
    assert_eq!(config.mount_path, site.state().to_str().unwrap());
    assert_eq!(config.socket_path, site.socket().to_str().unwrap());
    assert!(!config.auto_cleanup);
    assert_eq!(config.auto_cleanup_keep, CleanupRetention::Count(20));
    assert_eq!((config.auto_cleanup_interval_secs, config.health_check_interval_secs), (86_400, 300));
    assert_eq!((config.img_size, config.img_max_percent), (0, 0.0));
}

#[test]
fn a_snapshot_is_meant_by_its_name_or_else_by_a_prefix_that_is_unique() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    for id in ["step-1", "step-10", "step-2", "other"] {
        daemon.checkpoint(&ws, id);
    }
    let reached = |to: &str| match daemon.call(&ask::rollback(&ws, to)) {
        WsCkptResponse::RollbackOk { to, .. } => Ok(to),
        WsCkptResponse::Error { code, message } => Err((code, message)),
        other => panic!("{other:?}"),
    };
    assert_eq!(reached("step-1"), Ok("step-1".to_owned()), "an exact name wins over a prefix");
    assert_eq!(reached("o"), Ok("other".to_owned()));
    let ambiguous = "ambiguous snapshot prefix 'step': 3 matches".to_owned();
    assert_eq!(reached("step"), Err((WsCkptErrorCode::SnapshotNotFound, ambiguous)));
    let absent = "snapshot not found: nothing".to_owned();
    assert_eq!(reached("nothing"), Err((WsCkptErrorCode::SnapshotNotFound, absent)));
}

#[test]
fn delete_finds_a_snapshot_without_being_told_the_workspace_if_only_one_has_it() {
    let site = site();
    let daemon = site.start();
    let (one, two) = (site.workspace("one"), site.workspace("two"));
    daemon.checkpoint(&one, "mine");
    daemon.checkpoint(&one, "both");
    daemon.checkpoint(&two, "both");
    let deleted = daemon.call(&ask::delete_anywhere("mi", false));
    assert_eq!(deleted, WsCkptResponse::DeleteOk { target: "mine".into() });
    let (code, message) = daemon.refused(&ask::delete_anywhere("both", false));
    assert_eq!(code, WsCkptErrorCode::SnapshotNotFound);
    assert_eq!(message, "snapshot 'both' matches in multiple workspaces, please specify --workspace/-w");
    assert_eq!((daemon.ids(&one), daemon.ids(&two)), (vec!["both".to_owned()], vec!["both".to_owned()]));
}

#[test]
fn a_pinned_snapshot_goes_only_by_force() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.call(&ask::checkpoint_with(&ws, "kept", None, None, true));
    let (code, message) = daemon.refused(&ask::delete(&ws, "kept", false));
    assert_eq!(code, WsCkptErrorCode::ConfirmationRequired);
    assert_eq!(message, "Snapshot is pinned, use --force to confirm deletion");
    assert_eq!(daemon.ids(&ws), ["kept"]);
    assert_eq!(
        daemon.call(&ask::delete(&ws, "kept", true)),
        WsCkptResponse::DeleteOk { target: "kept".into() }
    );
    assert_eq!(daemon.ids(&ws), Vec::<String>::new());
    // And then it is gone: its name is free, and to delete it again is an error.
    assert_eq!(daemon.refused(&ask::delete(&ws, "kept", true)).0, WsCkptErrorCode::SnapshotNotFound);
    daemon.checkpoint(&ws, "kept");
}

#[test]
fn recover_forgets_the_workspace_and_leaves_the_directory_exactly_as_it_is() {
    let site = site();
    let mut daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    files::write(ws.join("newer"), "work since\n");
    let before = Tree::read(&ws);
    let id = daemon.init(&ws);
    let answer = daemon.call(&ask::recover(&id));
    assert_eq!(answer, WsCkptResponse::RecoverOk { workspace: ws.to_str().unwrap().into() });
    before.assert_same(&Tree::read(&ws), "after recover");
    before.assert_same_inodes(&Tree::read(&ws), before.paths(), "after recover");
    for again in [false, true] {
        if again {
            daemon.kill();
            daemon = site.start();
        }
        assert_eq!(daemon.refused(&ask::list(&ws)).0, WsCkptErrorCode::WorkspaceNotFound);
        assert_eq!(daemon.refused(&ask::recover(&ws)).0, WsCkptErrorCode::WorkspaceNotFound);
    }
    daemon.checkpoint(&ws, "one");
    assert_eq!(daemon.ids(&ws), ["one"]);
    assert_eq!(site.check(), 1);
}

#[test]
fn everything_acknowledged_is_there_after_the_daemon_is_killed() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    for n in 0..5 {
        files::write(ws.join("file"), format!("version {n}\n"));
        daemon.call(&ask::checkpoint_with(&ws, &format!("v{n}"), Some("said"), Some("{\"n\":1}"), n == 2));
    }
    daemon.call(&ask::delete(&ws, "v1", false));
    let before = daemon.list(&ws);
    let id = daemon.init(&ws);
    daemon.kill();
    let daemon = site.start();
    assert_eq!(daemon.list(&ws), before);
    assert_eq!(daemon.init(&ws), id);
    for n in [0, 2, 3, 4] {
        daemon.rollback(&ws, &format!("v{n}"));
        assert_eq!(files::read(ws.join("file")), format!("version {n}\n").into_bytes());
    }
    assert_eq!(site.check(), 4);
}

#[test]
fn several_requests_on_one_connection_are_answered_in_their_order() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let mut wire = daemon.connect();
    // Sent ahead, without waiting for answers.
    wire.send(&ask::init(&ws));
    wire.send(&ask::checkpoint(&ws, "one"));
    wire.send(&ask::list(&ws));
    wire.send(&ask::recover(&ws));
    wire.end();
    assert!(matches!(wire.receive(), Some(WsCkptResponse::InitOk { .. })));
    assert!(matches!(wire.receive(), Some(WsCkptResponse::CheckpointOk { .. })));
    assert!(matches!(wire.receive(), Some(WsCkptResponse::ListOk { snapshots }) if snapshots.len() == 1));
    assert!(matches!(wire.receive(), Some(WsCkptResponse::RecoverOk { .. })));
    assert_eq!(wire.receive(), None);
}
