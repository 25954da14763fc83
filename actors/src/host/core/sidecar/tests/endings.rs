//! How a core ends, and what becomes of what waits for it.

use std::fmt::Write;

use cofferdam_protocol::host::CoreStatus;
use cofferdam_protocol::pod::*;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Script, Watched, exists};
use crate::host::core::testing::{Fixture, params, refused, unavailable};
use crate::mailbox::Carries;

/// What comes of a core that does this when a task is deleted: why it is down. It is up again afterwards.
async fn breaks(does: &str) -> String {
    let script = Script::new(&format!(
        "initialize()
def ends(request):
    {does}
serve(task_delete=ends, task_list=lambda request: None)"
    ));
    let mut core = script.start();
    let pid = core.ready().await.pid;
    let (lists, process) = (list_many(&core, 20).await, Watched::new(pid));
    assert_eq!(refused(core.ask::<TaskDelete>(json!({"taskId": "a"})).await), unavailable("ENDED"), "{does}");
    for list in lists {
        assert_eq!(refused(list.await.unwrap()), unavailable("ENDED"), "{does}");
    }
    let down = core.down().await;
    assert_eq!((down.status, down.code), (CoreStatus::Down, Some(PodErrorCode::CoreUnavailable)));
    assert_eq!((down.pid, &*down.version, down.starts), (0, "", 1));
    process.ended().await;
    assert!(!exists(pid), "it is reaped");
    let up = core.ready().await;
    assert_eq!(up.starts, 2);
    assert_eq!(core.ask::<Health>(json!({})).await.unwrap().pid, up.pid);
    down.message
}

type Lists = Vec<tokio::task::JoinHandle<Result<TaskRows, crate::pod::Failure>>>;

async fn list_many(core: &Fixture, count: usize) -> Lists {
    let ask = |_| {
        let pod = core.core.pod.clone();
        actix::spawn(async move { pod.ask(params::<TaskList>(json!({}))).await })
    };
    let asked = (0..count).map(ask).collect();
    tokio::task::yield_now().await;
    asked
}

#[actix::test]
async fn whoever_waits_for_a_core_that_ends_is_told_at_once_and_it_is_started_again() {
    assert_eq!(breaks("os._exit(3)").await, "it has ended (exit status: 3)");
    assert_eq!(breaks("os.kill(os.getpid(), 9)").await, "it has ended (signal: 9 (SIGKILL))");
    let cut = "sys.stdout.write('{\"id\":'); sys.stdout.flush(); os._exit(0)";
    assert_eq!(breaks(cut).await, "it has ended (exit status: 0)", "a line that was cut says nothing");
}

#[actix::test]
async fn a_core_that_does_not_speak_the_protocol_is_killed_and_started_again() {
    for (does, why) in [
        ("put('hello')", "a line of 5 bytes that is no JSON object"),
        ("put('{}')", "neither an answer nor an event"),
        ("put('x' * (5 << 20))", "a line of more than 4194304 bytes"),
        ("say({'id': request['id'], 'result': 'x' * (5 << 20)})", "a line of more than 4194304 bytes"),
        // Without newline, and then it waits.
        ("sys.stdout.write('x' * (5 << 20)); sys.stdout.flush()", "a line of more than 4194304 bytes"),
        ("sys.stdout.buffer.write(b'{\"id\":\"\\xff\"}\\n'); sys.stdout.flush()", "is no frame"),
        ("os.close(1)", "closed its output"),
    ] {
        let said = breaks(does).await;
        assert!(said.contains(why), "{does}: {said}");
    }
}

#[actix::test]
async fn what_was_said_before_the_end_counts() {
    let script = Script::new(
        "initialize()
        def last(request):
            for number in range(1000):
                event(kind='deadline.expired', taskId='a', turn=number)
            deleted(request)
            os._exit(0)
        serve(task_delete=last)",
    );
    let mut core = script.start();
    core.ready().await;
    assert!(core.ask::<TaskDelete>(json!({"taskId": "a"})).await.is_ok());
    for turn in 0..1000 {
        assert_eq!(core.said().await, PodEvent::DeadlineExpired { task_id: "a".to_owned(), turn });
    }
    core.down().await;
}

#[actix::test]
async fn what_a_core_has_started_ends_with_it() {
    let script = Script::new(
        "initialize()
        child = os.fork()
        if child == 0:
            signal.pause()
        event(kind='core.warning', message=str(child))
        serve()",
    );
    let mut core = script.start();
    let state = core.ready().await;
    let PodEvent::CoreWarning { message, .. } = core.said().await else { panic!() };
    let child = Watched::new(message.parse().unwrap());
    kill_process(Pid::from_raw(i32::try_from(state.pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    child.ended().await;
    core.down().await;
    core.ready().await;
}

#[actix::test]
async fn a_restart_lets_the_core_end_by_itself_and_restarts_at_the_same_time_are_one() {
    let script = Script::new(
        "initialize()
        waiting = []
        def shutdown(request):
            for waits in waiting:
                deleted(waits)
            event(kind='queue.dispatch', taskId='last')
            answer(request, {'ok': True})
            note('ended', 'shutdown')
            sys.exit(0)
        serve(task_delete=waiting.append, shutdown=shutdown)",
    );
    let mut core = script.start();
    let first = core.ready().await;
    let process = Watched::new(first.pid);
    let (one, two, three, delete, list) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            core.restart().await
        },
        async {
            tokio::task::yield_now().await;
            core.restart().await
        },
        async {
            tokio::task::yield_now().await;
            core.restart().await
        },
        core.ask::<TaskDelete>(json!({"taskId": "a"})),
        async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            core.ask::<TaskList>(json!({})).await
        },
    );
    assert_eq!((one, two, three), (Ok(()), Ok(()), Ok(())));
    assert!(delete.is_ok(), "it came before");
    assert_eq!(refused(list), unavailable("STARTING"));
    assert_eq!(core.said().await, PodEvent::QueueDispatch { task_id: "last".to_owned() });
    assert_eq!(core.down().await.status, CoreStatus::Starting);
    let second = core.ready().await;
    assert_eq!(second.starts, 2);
    assert_ne!(second.pid, first.pid);
    assert!(core.heard().is_none());
    process.ended().await;
    assert_eq!(script.noted("ended"), ["shutdown"]);
}

/// Ignores everything that can be ignored.
const STUBBORN: &str = "signal.signal(signal.SIGTERM, signal.SIG_IGN)
initialize()
while True:
    signal.pause()";

#[actix::test]
async fn a_core_that_does_not_want_to_end_is_killed() {
    let script = Script::new(STUBBORN);
    let mut core = script.start();
    let first = core.ready().await;
    let process = Watched::new(first.pid);
    core.restart().await.unwrap();
    process.ended().await;
    core.down().await;
    let second = core.ready().await;
    let process = Watched::new(second.pid);
    // Nobody wants it any more.
    drop(core);
    process.ended().await;
}

#[actix::test]
async fn a_core_that_nobody_wants_any_more_sees_the_end_of_its_input() {
    let script = Script::new("initialize()\nserve()");
    let mut core = script.start();
    let process = Watched::new(core.ready().await.pid);
    drop(core);
    process.ended().await;
    assert_eq!(script.noted("ended"), ["input"]);
}

#[test]
fn nothing_is_left_behind_where_the_actors_system_ends() {
    for (body, ended) in [("initialize()\nserve()", &["input"][..]), (STUBBORN, &[])] {
        let script = Script::new(body);
        let pid = actix::System::new().block_on(async {
            let mut core = script.start();
            let pid = core.ready().await.pid;
            // Its mailboxes are kept until after the end.
            (pid, core.core)
        });
        assert!(!exists(pid.0));
        assert_eq!(script.noted("ended"), ended);
    }
}

#[actix::test]
async fn a_restart_of_a_core_that_waits_to_be_started_is_at_once_and_says_what_came_of_it() {
    let mut script = Script::missing();
    // The wait would be a second.
    script.parts.faster = 1;
    let mut core = script.start();
    let down = core.down().await;
    let failure = core.restart().await.unwrap_err();
    assert_eq!((failure.code, failure.message), (PodErrorCode::CoreUnavailable, down.message));
    script.write("initialize()\nserve()");
    let control = core.core.control.clone();
    Carries::recipient(&control).send(crate::host::core::Restart).await.unwrap().unwrap();
    assert_eq!(core.ready().await.starts, 3);
}

#[actix::test]
async fn the_last_lines_on_stderr_outlive_the_core_that_wrote_them() {
    let mut says = String::new();
    writeln!(says, "sys.stderr.write('panicked at %d\\n' % START); sys.stderr.flush()").unwrap();
    writeln!(says, "if START == 1: os._exit(101)").unwrap();
    let script = Script::new(&format!("{says}initialize()\nserve()"));
    let mut core = script.start();
    assert_eq!(core.down().await.message, "it has ended (exit status: 101)");
    core.ready().await;
    assert_eq!(core.describe().await.stderr_tail[0], "panicked at 1");
}
