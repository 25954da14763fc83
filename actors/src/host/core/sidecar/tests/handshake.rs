//! What is said first, and cores of other releases.

use cofferdam_protocol::host::CoreStatus;
use cofferdam_protocol::pod::*;
use serde_json::{Value, json};

use super::Script;
use crate::host::core::testing::{refused, unavailable};

#[actix::test]
async fn the_host_says_who_it_is_and_the_core_is_up_with_what_it_answers() {
    let script = Script::new("initialize()\nserve()");
    let mut core = script.start();
    assert_eq!(refused(core.ask::<Health>(json!({})).await), unavailable("STARTING"));
    let (state, initialized) = core.up().await;
    assert_eq!((state.status, state.embedded, state.starts), (CoreStatus::Ready, false, 1));
    assert_eq!((state.protocol, state.schema_version, &*state.version), (1, 1, "0.2.0"));
    assert_eq!(initialized.unwrap().db_path, "/pod.db");
    assert_eq!(core.ask::<Health>(json!({})).await.unwrap().pid, state.pid);
    let told = core.describe().await;
    assert_eq!((told.state, told.path), (state, script.parts.program.display().to_string()));

    let said: Value = serde_json::from_str(&script.noted("initialize")[0]).unwrap();
    assert_eq!(said["method"], "initialize");
    let expected = json!({
        "protocol": 1, "pluginVersion": "0.2.0", "dbPath": "/pod.db", "legacyJsonPath": null,
        "hostPid": std::process::id(), "platform": "linux", "features": ["export.progress"],
    });
    assert_eq!(said["params"], expected);
}

#[actix::test]
async fn a_core_of_another_release_is_a_mismatch_and_can_be_asked_all_the_same() {
    let lean = |protocol| format!("answer(next(requests()), {{'protocol': {protocol}, 'other': []}})");
    let refuses = |code| format!("refuse(next(requests()), '{code}', 'no', {{'expected': 2}})");
    for (begins, code, says, answered) in [
        ("initialize(protocol=2)".to_owned(), PodErrorCode::ProtocolMismatch, "protocol 2", true),
        (lean(2), PodErrorCode::ProtocolMismatch, "protocol 2", false),
        (refuses("PROTOCOL_MISMATCH"), PodErrorCode::ProtocolMismatch, "no", false),
        ("initialize(schemaVersion=7)".to_owned(), PodErrorCode::SchemaMismatch, "schema 7", true),
        (refuses("SCHEMA_MISMATCH"), PodErrorCode::SchemaMismatch, "no", false),
        ("initialize(coreVersion='0.2.1')".to_owned(), PodErrorCode::ProtocolMismatch, "0.2.1", true),
        ("initialize(coreVersion='0.2.0-rc1')".to_owned(), PodErrorCode::ProtocolMismatch, "0.2.0-rc1", true),
    ] {
        let script = Script::new(&format!("{begins}\nserve()"));
        let mut core = script.start();
        let (state, initialized) = core.up().await;
        assert_eq!((state.status, state.code), (CoreStatus::Mismatch, Some(code)), "{begins}");
        assert!(state.message.contains(says), "{begins}: {}", state.message);
        assert_eq!(initialized.is_some(), answered, "{begins}");
        let health = core.ask::<Health>(json!({})).await.unwrap();
        assert_eq!((health.pid, core.starts().await), (state.pid, 1), "{begins}");
        // Which is no failure of the restart.
        core.restart().await.unwrap();
        core.down().await;
        assert_eq!(core.up().await.0.status, CoreStatus::Mismatch, "{begins}");
    }
}

#[actix::test]
async fn nobody_else_says_initialize_or_shutdown() {
    let script = Script::new("initialize()\nserve()");
    let mut core = script.start();
    let state = core.ready().await;
    let initialize = json!({"protocol": 1, "dbPath": "/other.db"});
    assert_eq!(refused(core.ask::<Initialize>(initialize).await).0, PodErrorCode::BadRequest);
    assert_eq!(refused(core.ask::<Shutdown>(json!({})).await).0, PodErrorCode::BadRequest);
    assert_eq!(core.ask::<Health>(json!({})).await.unwrap().pid, state.pid);
    assert_eq!(script.noted("initialize").len(), 1);
}

#[actix::test]
async fn a_core_that_cannot_open_its_database_is_ended_and_tried_again_until_it_can() {
    let script = Script::new(
        "if START < 4:
            refuse(next(requests()), 'DB_ERROR', 'locked by %d' % min(START, 2), {'reason': 'LOCKED'})
            serve()
        initialize()
        serve()",
    );
    let mut core = script.start();
    let down = core.down().await;
    assert_eq!((down.status, down.code), (CoreStatus::Down, Some(PodErrorCode::DbError)));
    assert_eq!((&*down.message, down.starts), ("locked by 1", 1));
    let down = core.down().await;
    assert_eq!((&*down.message, down.starts), ("locked by 2", 2));
    // The third time there was nothing new to say.
    assert_eq!(core.ready().await.starts, 4);
    assert_eq!(script.noted("ended"), ["input"; 3], "each could end by itself");
}

#[actix::test]
async fn what_a_core_says_before_it_is_up_is_nothing_to_the_host() {
    let script = Script::new(
        "event(kind='queue.dispatch', taskId='early')
        initialize()
        event(kind='queue.dispatch', taskId='a')
        serve()",
    );
    let mut core = script.start();
    core.ready().await;
    assert_eq!(core.said().await, PodEvent::QueueDispatch { task_id: "a".to_owned() });
}
