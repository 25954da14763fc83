//! Cores that do not come, and when they are tried again.

use std::time::Duration;

use cofferdam_protocol::host::CoreStatus;
use cofferdam_protocol::pod::*;
use serde_json::json;

use super::{Script, Watched};
use crate::host::core::testing::{refused, unavailable};

#[actix::test]
async fn a_program_that_is_missing_is_named_and_found_as_soon_as_it_is_there() {
    let script = Script::missing();
    let mut core = script.start();
    let down = core.down().await;
    assert_eq!((down.status, down.code), (CoreStatus::Down, Some(PodErrorCode::CoreUnavailable)));
    assert!(
        down.message.starts_with(&format!("{} cannot", script.parts.program.display())),
        "{}",
        down.message
    );
    assert_eq!(refused(core.ask::<Health>(json!({})).await), unavailable("DOWN"));
    while core.starts().await < 3 {
        tokio::task::yield_now().await;
    }
    assert!(core.heard().is_none(), "there is nothing new to say");
    script.write("initialize()\nserve()");
    // The third start may have been under way.
    assert!(core.ready().await.starts >= 3);
}

#[actix::test]
async fn what_is_no_program_is_down() {
    let script = Script::missing();
    std::fs::write(&script.parts.program, "no program").unwrap();
    let message = script.start().down().await.message;
    assert!(message.contains("cannot be started"), "{message}");
}

#[actix::test]
async fn a_core_that_ends_at_once_is_tried_again_later_each_time() {
    let script = Script::new("if START < 7: sys.exit(1)\ninitialize()\nserve()");
    let mut core = script.start();
    core.down().await;
    assert_eq!(core.ready().await.starts, 7);
    let starts: Vec<u64> = script.noted("starts").iter().map(|nanos| nanos.parse().unwrap()).collect();
    let waits: Vec<_> = starts.windows(2).map(|two| Duration::from_nanos(two[1] - two[0])).collect();
    // A hundred times faster than 1, 2, 4, 8, 16, 30 s.
    for (wait, least) in waits.iter().zip([10, 20, 40, 80, 160, 300]) {
        assert!(*wait >= Duration::from_millis(least), "{waits:?}");
    }
}

#[actix::test]
async fn a_core_that_never_answers_is_killed_and_tried_again() {
    let script = Script::new(
        "if START < 3:
            signal.pause()
        initialize()
        serve()",
    )
    .patience(Duration::from_secs(2));
    let mut core = script.start();
    // It runs by then, and does not answer.
    let pid = loop {
        match core.describe().await.state.pid {
            0 => tokio::task::yield_now().await,
            pid => break pid,
        }
    };
    let process = Watched::new(pid);
    assert_eq!(refused(core.ask::<TaskList>(json!({})).await), unavailable("STARTING"));
    let down = core.down().await;
    assert_eq!(down.message, "it has not answered initialize within 2000 ms");
    process.ended().await;
    assert_eq!(core.ready().await.starts, 3);
}

#[actix::test]
async fn an_answer_to_initialize_that_makes_no_sense_is_a_failure() {
    let script = Script::new(
        "if START == 1:
            answer(next(requests()), {'protocol': 1, 'coreVersion': '0.2.0', 'schemaVersion': 1})
            serve()
        initialize()
        serve()",
    );
    let mut core = script.start();
    assert!(core.down().await.message.contains("cannot be read"));
    core.ready().await;
}
