//! What a program can do to the program of another task, which runs as the same user.

use std::collections::BTreeMap;

use cofferdam_storage::sandbox::Order;

use crate::place::Place;
use crate::ways;

/// Says that it is there, has a file of its own, and stays.
const NEIGHBOUR: &str = "
import time
open('mine', 'w').write('content')
print('up', flush=True)
time.sleep(1000)
";

/// Tries everything, on the process DAEMON and on the file OTHER.
const SCRIPT: &str = r"
import ctypes, json, os, resource, signal
pid, file = int(os.environ['DAEMON']), os.environ['PLACE'] + '/root/other/mine'
libc = ctypes.CDLL(None, use_errno=True)
proc = '/proc/%d/' % pid
def trace():
    if libc.ptrace(16, pid, 0, 0) < 0: raise OSError(ctypes.get_errno(), 'refused')
acts = {
    'signal': lambda: os.kill(pid, signal.SIGTERM),
    'signal_by_descriptor': lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM),
    'stop': lambda: os.kill(pid, signal.SIGSTOP),
    'trace': trace,
    'environment': lambda: open(proc + 'environ').read(),
    'memory': lambda: open(proc + 'mem', 'rb'),
    'map': lambda: open(proc + 'maps').read(1),
    'root': lambda: os.listdir(proc + 'root'),
    'directory': lambda: os.listdir(proc + 'cwd'),
    'program': lambda: os.readlink(proc + 'exe'),
    'descriptor': lambda: open(proc + 'fd/1', 'w'),
    'descriptors': lambda: os.listdir(proc + 'fd'),
    'command_line': lambda: open(proc + 'cmdline').read(),
    'limit': lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0)),
    'priority': lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
    'affinity': lambda: os.sched_setaffinity(pid, {0}),
    'scheduler': lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
    'score': lambda: open(proc + 'oom_score_adj', 'w').write('1000'),
    'read': lambda: open(file).read(),
    'write': lambda: open(file, 'w'),
    'remove': lambda: os.unlink(file),
    'rename': lambda: os.rename(file, file + '-'),
    'link': lambda: os.link(file, os.environ['TASK'] + '/linked'),
    'chmod': lambda: os.chmod(file, 0o600),
    'utime': lambda: os.utime(file, (1, 1)),
}
tried = {}
for name, act in acts.items():
    try:
        act()
        tried[name] = True
    except OSError:
        tried[name] = False
print(json.dumps(tried))
";

/// What is done where processes and files of others can be named: what everybody may see, and what the test of the sandbox
/// says is not stopped.
const NAMED: &[&str] = &["descriptors", "command_line", "chmod", "utime"];

fn order(place: &Place, script: &str, task: &str, process: i32) -> Order {
    let mut order = place.order(script);
    order.task_dir = place.path("root").join(task);
    let program = order.program.as_mut().unwrap();
    program.cwd = order.task_dir.clone();
    for (name, value) in &mut program.env {
        match name.as_str() {
            "TASK" => *value = order.task_dir.to_str().unwrap().to_owned(),
            "DAEMON" => *value = process.to_string(),
            _ => {}
        }
    }
    order
}

#[test]
fn a_program_does_to_the_program_of_another_task_only_what_is_named() {
    for way in ways() {
        let place = Place::new(way);
        let mut neighbour = place.start(&order(&place, NEIGHBOUR, "other", 0));
        assert_eq!(neighbour.line(), "up", "{}", way.name);
        let [process] = place.processes()[..] else { panic!("{}: {:?}", way.name, place.processes()) };
        let ran = place.run(&order(&place, SCRIPT, "task", process.as_raw()));
        assert_eq!(ran.exit(), Some((Some(0), None)), "{}: {ran:?}", way.name);
        let tried: BTreeMap<String, bool> = serde_json::from_str(&ran.stdout).unwrap();
        let done: Vec<_> = tried.iter().filter(|(_, done)| **done).map(|(act, _)| act.as_str()).collect();
        let mut expected = if way.without.is_empty() { Vec::new() } else { NAMED.to_vec() };
        expected.sort_unstable();
        assert_eq!(done, expected, "{}", way.name);
        assert_eq!(place.processes(), [process], "{}: it lives", way.name);
        assert_eq!(std::fs::read(place.path("root/other/mine")).unwrap(), b"content", "{}", way.name);
        neighbour.link.take().unwrap().shutdown(std::net::Shutdown::Write).unwrap();
        neighbour.finish();
        place.nothing_left();
    }
}
