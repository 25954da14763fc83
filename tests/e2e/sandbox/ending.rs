//! Nothing of a sandbox outlives its turn, its daemon, or its supervisor.

use std::process::Command;

use cofferdam_storage::sandbox::{CANCEL, Layer, LeftOut, Limits, Order, ProbeOrder, Report};
use cofferdam_tests::files;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::{Place, Ran, Running};
use crate::{WAYS, ways};

/// Starts children that leave session and parent and hold the output open, says so, and goes on as told.
fn with_children(then: &str) -> String {
    format!(
        "
import os, signal, sys, time
for i in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0: os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
        os._exit(0)
    os.wait()
print('ready', flush=True)
{then}
"
    )
}

fn started(place: &Place, order: &Order) -> Running {
    let mut running = place.start(order);
    assert_eq!(running.line(), "ready", "{}", place.way.name);
    running
}

#[test]
fn what_a_program_leaves_behind_dies_with_it() {
    for way in ways() {
        let place = Place::new(way);
        let ran = place.run(&place.order(&with_children("sys.exit(3)")));
        assert_eq!(ran.exit(), Some((Some(3), None)), "{}: {ran:?}", way.name);
        place.nothing_left();
    }
}

#[test]
fn everything_dies_with_the_supervisor() {
    for way in ways() {
        let place = Place::new(way);
        let mut running = started(&place, &place.order(&with_children("time.sleep(1000)")));
        running.supervisor.kill().unwrap();
        // The end of the output is the end of the last process.
        let ran = running.finish();
        assert_eq!(ran.exit(), None, "{}", way.name);
        // What it could not remove goes with the next one, once the keeper has ended, too.
        let gone = (0..50).any(|_| {
            place.script("pass");
            place.left().is_empty()
        });
        assert!(gone, "{}", way.name);
    }
}

#[test]
fn processes_that_are_always_somebody_else_are_caught() {
    let then = "
for i in range(4):
    if os.fork() == 0:
        while True:
            if os.fork() != 0: os._exit(0)
";
    for way in ways() {
        let place = Place::new(way);
        let ran = place.run(&place.order(&with_children(then)));
        assert_eq!(ran.exit(), Some((Some(0), None)), "{}: {ran:?}", way.name);
        place.nothing_left();
    }
}

/// Processes that are never there for long, and of which there are as many as they may be. Each that is missed becomes as many again.
const STORM: &str = "
import os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
def storm():
    while True:
        os.setsid() if os.getpgrp() != os.getpid() else None
        try:
            if os.fork() and os.fork(): os._exit(0)
        except OSError:
            pass
for i in range(4):
    try:
        if os.fork() == 0: storm()
    except OSError:
        pass
print('ready', flush=True)
time.sleep(0.3)
sys.exit(3)
";

/// Starts it where it cannot harm the machine: its processes are counted, have a namespace of their own, and a minute to live.
fn storm(place: &Place, without: &[LeftOut]) -> Ran {
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["--signal=KILL", "60", "/usr/bin/unshare", "--pid", "--fork", "--kill-child"]);
    if !place.way.root {
        command.args(["--user", "--map-current-user"]);
    }
    command.args(["--mount-proc", "/bin/sh", "-c", "\"$0\" \"$@\"; exit $?"]).arg(place.program());
    let order = Order { without: without.to_vec(), ..place.order(STORM) };
    place.start_by(command, &order).finish()
}

#[test]
fn a_storm_of_processes_ends_with_its_program() {
    let mut ended = 0;
    for way in ways() {
        let mut kinds = vec![way.without.to_vec()];
        if !way.without.is_empty() {
            kinds.extend([LeftOut::Scopes, LeftOut::Cgroup].map(|layer| [way.without, &[layer]].concat()));
        }
        for without in kinds {
            let place = Place::new(way);
            let made = place.run(&Order { program: None, without: without.clone(), ..place.order("") });
            let Some(Report::Ready { layers }) = made.reports.first() else { panic!("{made:?}") };
            let at_once = [Layer::PidNamespace, Layer::Scopes, Layer::Cgroup];
            if !layers.iter().any(|state| state.holds && at_once.contains(&state.layer)) {
                continue;
            }
            let ran = storm(&place, &without);
            if ran.reports.is_empty() {
                cofferdam_tests::skipped(format_args!("a storm needs namespaces around it: {}", ran.stderr));
                continue;
            }
            assert_eq!(ran.exit(), Some((Some(3), None)), "{} {without:?}: {ran:?}", way.name);
            place.nothing_left();
            ended += 1;
        }
    }
    if ended == 0 {
        cofferdam_tests::skipped(format_args!("nothing here ends all processes at one moment"));
    }
}

#[test]
fn what_a_test_has_made_outside_goes_with_the_next_sandbox_after_its_supervisor_was_killed() {
    for way in ways() {
        let place = Place::new(way);
        let outside = || {
            let entries = std::fs::read_dir(place.dir.path()).unwrap().flatten();
            entries.filter(|entry| entry.file_name().to_string_lossy().contains("-probe-")).count()
        };
        let order =
            Order { probe: Some(place.probe(&[])), ..place.order(&with_children("time.sleep(1000)")) };
        let mut running = started(&place, &order);
        running.supervisor.kill().unwrap();
        running.finish();
        assert_eq!(outside(), 1, "{}", way.name);
        let gone = (0..50).any(|_| {
            place.script("pass");
            place.left().is_empty()
        });
        assert!(gone && outside() == 0, "{}: {:?}", way.name, place.left());
    }
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else_from_it_and_is_told_and_tried_again() {
    // Root could remove it.
    for way in ways().filter(|way| !way.root) {
        let place = Place::new(way);
        let (outside, probe) = (place.path("outside"), place.probe(&[]));
        let probe = ProbeOrder { places: vec![outside.clone()], ..probe };
        let order = Order {
            probe: Some(probe),
            ..place.order("import time; print('ready', flush=True); time.sleep(1000)")
        };
        let mut running = started(&place, &order);
        files::chmod(&outside, 0o500);
        running.tell(CANCEL);
        let ran = running.finish();
        assert!(ran.failure().is_some_and(|text| text.contains("outside cannot be removed")), "{ran:?}");
        let left = place.left();
        assert!(left.len() == 1 && left[0].extension().unwrap() == "outside", "{left:?}");
        files::chmod(&outside, 0o700);
        place.script("pass");
        place.nothing_left();
        let mut names = std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(!names.any(|name| name.to_string_lossy().contains("-probe-")), "{}", way.name);
    }
}

#[test]
fn everything_dies_with_the_keeper_and_the_supervisor_says_so() {
    for way in ways() {
        let place = Place::new(way);
        let running = started(&place, &place.order(&with_children("time.sleep(1000)")));
        kill(keeper_of(&running), Signal::SIGKILL).unwrap();
        let ran = running.finish();
        assert!(ran.failure().unwrap().contains("keeper was killed"), "{}: {ran:?}", way.name);
        place.nothing_left();
    }
}

fn keeper_of(running: &Running) -> Pid {
    let supervisor = running.supervisor.id();
    let children = std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
    Pid::from_raw(children.trim().parse().unwrap())
}

#[test]
fn without_a_process_namespace_whoever_kills_supervisor_and_keeper_at_once_lets_the_rest_go() {
    for way in ways() {
        let place = Place::new(way);
        let mut running = started(&place, &place.order(&with_children("time.sleep(1000)")));
        let (supervisor, keeper) = (Pid::from_raw(running.supervisor.id() as i32), keeper_of(&running));
        // Neither sees the other go.
        kill(supervisor, Signal::SIGSTOP).unwrap();
        kill(keeper, Signal::SIGSTOP).unwrap();
        let pods = place.processes();
        kill(keeper, Signal::SIGKILL).unwrap();
        kill(supervisor, Signal::SIGKILL).unwrap();
        running.supervisor.wait().unwrap();
        assert_eq!(pods.len(), 6, "{}: the program and its five children", way.name);
        if !way.without.is_empty() {
            // The program itself goes with its keeper; what has left it does not.
            let mut left = place.processes();
            while left.len() == 6 {
                std::thread::yield_now();
                left = place.processes();
            }
            assert_eq!(left.len(), 5, "{}", way.name);
            left.iter().for_each(|pod| kill(*pod, Signal::SIGKILL).unwrap());
        }
        // The end of the output is the end of the last process.
        running.finish();
        assert_eq!(place.processes(), [], "{}", way.name);
    }
}

#[test]
fn everything_dies_with_the_daemon() {
    for way in ways() {
        let place = Place::new(way);
        let mut running = started(&place, &place.order(&with_children("time.sleep(1000)")));
        running.link.take().unwrap().shutdown(std::net::Shutdown::Write).unwrap();
        running.finish();
        place.nothing_left();
    }
}

#[test]
fn a_supervisor_that_is_told_to_end_takes_everything_along() {
    for way in ways() {
        let place = Place::new(way);
        let running = started(&place, &place.order(&with_children("time.sleep(1000)")));
        kill(Pid::from_raw(running.supervisor.id() as i32), Signal::SIGTERM).unwrap();
        running.finish();
        place.nothing_left();
    }
}

#[test]
fn a_program_that_is_cancelled_may_end_by_itself() {
    let then = "
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print('listening', flush=True)
time.sleep(1000)";
    for way in ways() {
        let place = Place::new(way);
        let mut running = started(&place, &place.order(&with_children(then)));
        assert_eq!(running.line(), "listening");
        running.tell(CANCEL);
        assert_eq!(running.finish().exit(), Some((Some(7), None)), "{}", way.name);
    }
}

#[test]
fn a_program_that_does_not_listen_is_killed_after_its_grace() {
    let then = "
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('deaf', flush=True)
time.sleep(1000)";
    for way in ways() {
        let place = Place::new(way);
        let mut running = started(&place, &Order { grace_ms: 50, ..place.order(&with_children(then)) });
        assert_eq!(running.line(), "deaf");
        running.tell(CANCEL);
        assert_eq!(running.finish().exit(), Some((None, Some(9))), "{}", way.name);
        place.nothing_left();
    }
}

#[test]
fn a_program_that_cannot_be_started_is_a_failure_that_names_it() {
    for way in ways() {
        let place = Place::new(way);
        let mut order = place.order("");
        order.program.as_mut().unwrap().argv = vec!["no-such-program".to_owned()];
        let ran = place.run(&order);
        assert!(
            ran.failure().unwrap().contains("no-such-program cannot be started"),
            "{}: {ran:?}",
            way.name
        );
        assert!(!ran.reports.contains(&Report::Started), "{ran:?}");
        place.nothing_left();
    }
}

#[test]
fn what_a_sandbox_may_use_is_limited_where_the_machine_can_and_it_is_said_where_not() {
    let script = "
import os, time
started = 0
try:
    for i in range(200):
        if os.fork() == 0:
            time.sleep(1000)
        started += 1
except BlockingIOError:
    pass
print(started, flush=True)
held = b'x' * (256 << 20)
print('had it')";
    for way in ways() {
        let place = Place::new(way);
        let limits = Limits { memory: Some(96 << 20), processes: Some(100) };
        let ran = place.run(&Order { limits, ..place.order(script) });
        let Some(Report::Ready { layers }) = ran.reports.first() else { panic!("{}: {ran:?}", way.name) };
        let cgroup = layers.iter().find(|state| state.layer == Layer::Cgroup).unwrap();
        let says = |text: &str| cgroup.detail.contains(text);
        let (memory, processes) = (says("memory limited to 100663296"), says("processes limited to 100"));
        // Nothing is silently unlimited.
        assert!(!cgroup.holds || memory || says("memory not limited"), "{}: {cgroup:?}", way.name);
        assert!(!cgroup.holds || processes || says("processes not limited"), "{}: {cgroup:?}", way.name);
        let started: u32 = ran.stdout.lines().next().unwrap().parse().unwrap();
        assert_eq!(started < 100, processes, "{}: {ran:?}", way.name);
        assert_eq!(
            ran.exit(),
            Some(if memory { (None, Some(9)) } else { (Some(0), None) }),
            "{}: {ran:?}",
            way.name
        );
        if !memory || !processes {
            cofferdam_tests::skipped(format_args!(
                "this machine makes no limits for {}, or only for root: {}",
                way.name, cgroup.detail
            ));
        }
        place.nothing_left();
    }
}

#[test]
fn an_order_that_makes_no_sense_is_a_failure_and_starts_nothing() {
    let place = Place::new(WAYS[0]);
    let (root, nowhere) = (place.path("root"), place.path("root/nowhere"));
    let sound = || place.order("print('here')");
    let table = [
        ("not in the sandbox root", Order { task_dir: place.path("outside"), ..sound() }),
        ("not in the sandbox root", Order { task_dir: root, ..sound() }),
        ("No such file", Order { task_dir: nowhere.clone(), ..sound() }),
        ("not an absolute path", Order { task_dir: "task".into(), ..sound() }),
        ("cannot be hidden", Order { hidden: vec!["/".into()], ..sound() }),
        ("without `..`", Order { from_home: vec!["../outside".into()], ..sound() }),
        ("cannot be made", Order { private_parent: nowhere.join("deeper"), ..sound() }),
    ];
    for (why, order) in table {
        let ran = place.run(&order);
        assert!(ran.failure().is_some_and(|text| text.contains(why)), "{why}: {ran:?}");
        assert_eq!(ran.stdout, "");
    }
}
