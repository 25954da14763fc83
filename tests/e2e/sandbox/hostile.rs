//! What a hostile program can do, and cannot, in each way of making its sandbox.

use std::collections::BTreeMap;
use std::fs::{DirEntry, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};

use cofferdam_protocol::pod::SandboxMode;
use cofferdam_tests::{files, user};
use rustix::fs::OFlags;

use crate::place::Place;
use crate::{WAYS, ways};

const SCRIPT: &str = include_str!("hostile.py");

/// Writing where shared memory has names.
const SHARED_MEMORY: &str = "shm";

/// For each act, in each of [`WAYS`]: `-` refused, `D` done.
const TABLE: &[(&str, &str)] = &[
    ("write_absolute", "----"),
    ("write_dotdot", "----"),
    ("write_symlink", "----"),
    ("write_proc_root", "----"),
    ("write_parent_root", "----"),
    ("write_parent_cwd", "----"),
    ("hard_link_in", "----"),
    ("hard_link_out", "----"),
    ("create", "----"),
    ("truncate", "----"),
    ("open_truncate", "----"),
    ("unlink", "----"),
    ("rename_outside", "----"),
    ("rename_in", "----"),
    ("rename_out", "----"),
    ("mkdir", "----"),
    ("symlink_outside", "----"),
    ("fifo_outside", "----"),
    ("create_dotdot", "----"),
    ("create_by_link_to_directory", "----"),
    ("create_proc_root", "----"),
    ("write_by_held_directory", "----"),
    ("write_by_reopened", "----"),
    ("write_fifo", "----"),
    ("device", "----"),
    ("read_device", "----"),
    // One that the user who the program runs as has open elsewhere.
    ("open_terminal", "----"),
    // Whoever links a file into a task's directory shares it, unless only its owner may write to it.
    ("write_linked", "DD--"),
    ("write_other_task", "----"),
    ("write_state", "----"),
    ("write_home", "----"),
    // Without a view of its own, only another owner keeps these off.
    ("chmod", "-D--"),
    ("chown", "-D--"),
    ("utime", "-D--"),
    ("setxattr", "-D--"),
    ("chmod_task_of_other", "-D--"),
    // A lock needs nothing but a file that can be read.
    ("flock", "DDDD"),
    ("flock_state", "D-D-"),
    ("read_state", "----"),
    ("read_other_task", "----"),
    ("read_home", "----"),
    ("list_root", "D-D-"),
    ("read_outside", "DDDD"),
    ("mount", "----"),
    ("umount", "----"),
    ("remount", "----"),
    ("bind", "----"),
    ("open_tree", "----"),
    ("fsopen", "----"),
    ("mount_setattr", "----"),
    ("pivot_root", "----"),
    ("setns", "----"),
    ("user_namespace", "----"),
    ("user_namespace_by_clone", "----"),
    ("clone3", "----"),
    ("chroot", "----"),
    ("ptrace", "----"),
    ("read_memory", "----"),
    ("open_memory", "----"),
    ("write_memory", "----"),
    ("write_parent_memory", "----"),
    ("read_environment", "----"),
    ("write_vm", "----"),
    ("memory_map", "----"),
    // Where they have a number.
    ("read_command_line", "-D-D"),
    // Their numbers, and nothing behind them.
    ("list_descriptors", "-D--"),
    ("open_descriptor", "----"),
    ("take_descriptor", "----"),
    ("compare_processes", "----"),
    ("seize", "----"),
    ("seize_parent", "----"),
    ("oom_score", "----"),
    ("signal_daemon", "----"),
    ("signal_by_descriptor", "----"),
    ("signal_thread", "----"),
    ("prlimit", "----"),
    ("affinity", "----"),
    ("scheduler", "----"),
    ("priority", "----"),
    ("unix_stream", "----"),
    ("unix_datagram", "----"),
    ("unix_abstract", "----"),
    ("datagram_pair", "----"),
    // Our own server refuses what comes from a sandbox.
    ("tcp", "DDDD"),
    ("vsock", "----"),
    ("shared_memory", "----"),
    ("semaphores", "----"),
    ("messages", "----"),
    ("message_queue", "----"),
    ("io_uring", "----"),
    ("keyring", "----"),
    ("add_key", "----"),
    ("bpf", "----"),
    ("perf", "----"),
    ("userfaultfd", "----"),
    ("handle", "----"),
    ("x32", "----"),
    ("i386", "----"),
    ("setuid_helper", "----"),
    ("capabilities", "----"),
    ("inherited_descriptors", "----"),
    ("own_limit", "DDDD"),
    ("own_affinity", "DDDD"),
    ("stream_pair", "DDDD"),
    ("inet", "DDDD"),
    ("write_task", "DDDD"),
    ("write_given", "DDDD"),
    ("write_temporary", "DDDD"),
    ("write_private_home", "DDDD"),
    ("rename_inside", "DDDD"),
    ("dev_null", "DDDD"),
    ("start_programs", "DDDD"),
    ("chmod_inside", "DDDD"),
    // Only in a view of its own it has one without having others'.
    ("terminal", "D-D-"),
    // Unless the sandbox itself lies there.
    (SHARED_MEMORY, "D-D-"),
];

fn done(tried: &str) -> char {
    if tried == "done" { 'D' } else { '-' }
}

/// A process outside that holds a terminal, of the user whom the program runs as; and the terminal.
fn terminal_of(place: &Place) -> (Child, String) {
    let script = "import os, sys; print(os.ttyname(os.openpty()[1]), flush=True); sys.stdin.read()";
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-I", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    if user::is_root() {
        user::run_as(&mut python, place.uid());
    }
    let mut holder = python.spawn().unwrap();
    let mut terminal = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut terminal).unwrap();
    (holder, terminal.trim().to_owned())
}

/// A device that everybody may read and no program needs, if there is one: a disk would be refused for its mode alone.
fn device() -> String {
    const NEEDED: [&str; 7] = ["null", "zero", "full", "tty", "ptmx", "random", "urandom"];
    let is_it = |entry: &DirEntry| {
        let kind = entry.file_type().unwrap();
        let readable = entry.metadata().unwrap().permissions().mode() & 0o004 != 0;
        let needed = NEEDED.iter().any(|name| entry.file_name() == *name);
        (kind.is_char_device() || kind.is_block_device()) && readable && !needed
    };
    let devices = std::fs::read_dir("/dev").unwrap().flatten().filter(is_it);
    devices.map(|entry| entry.path().display().to_string()).min().unwrap_or("/dev/none".to_owned())
}

#[test]
fn a_hostile_program_does_exactly_what_is_not_stopped() {
    for way in ways() {
        let column = WAYS.iter().position(|one| *one == way).unwrap();
        let mut place = Place::new(way);
        let _stream = UnixListener::bind(place.path("stream.sock")).unwrap();
        let _datagram = UnixDatagram::bind(place.path("dgram.sock")).unwrap();
        let name = format!("cofferdam-test-{}", place.daemon.id());
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
        for socket in ["stream.sock", "dgram.sock"] {
            files::chmod(place.path(socket), 0o777);
        }
        if user::is_root() {
            std::fs::copy("/usr/bin/id", place.path("outside/id")).unwrap();
            files::chmod(place.path("outside/id"), 0o4755);
        }
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        files::write(place.path("root/task/port"), server.local_addr().unwrap().port().to_string());
        files::write(place.path("outside/linked"), "content");
        files::hard_link(place.path("outside/linked"), place.path("root/task/linked"));
        // As if somebody read from it.
        files::fifo(place.path("outside/pipe"));
        let pipe = place.path("outside/pipe");
        let at_once = OFlags::NONBLOCK.bits() as i32;
        let _reader = OpenOptions::new().read(true).custom_flags(at_once).open(pipe).unwrap();
        if !way.root && user::is_root() {
            for own in ["outside/linked", "outside/pipe", "root/task/port"] {
                user::give(place.path(own), user::NOBODY);
            }
        }
        let (mut holder, terminal) = terminal_of(&place);
        let mut order = place.order(SCRIPT);
        let env = &mut order.program.as_mut().unwrap().env;
        env.extend([("TERMINAL".to_owned(), terminal), ("DEVICE".to_owned(), device())]);
        let ran = place.run(&order);
        assert_eq!(ran.exit(), Some((Some(0), None)), "{}: {ran:?}", way.name);
        holder.kill().unwrap();
        holder.wait().unwrap();
        let mut tried: BTreeMap<String, String> = serde_json::from_str(&ran.stdout).unwrap();
        // What may be asked for need not come; it would have ended whom it is for.
        assert!(tried.remove("signal_by_event").is_some());
        assert!(place.daemon.try_wait().unwrap().is_none(), "{}", way.name);
        // A keeper that can be killed takes the program along, which then says nothing.
        assert_ne!(tried.remove("signal_keeper").unwrap(), "done", "{}", way.name);
        let mut wrong = Vec::new();
        for (act, expected) in TABLE {
            let came = tried.remove(*act).unwrap_or_else(|| panic!("{act} was not tried"));
            let lies_there = *act == SHARED_MEMORY && place.path("").starts_with("/dev/shm");
            let expected = if lies_there { '-' } else { expected.chars().nth(column).unwrap() };
            if done(&came) != expected || came.starts_with("error") {
                wrong.push(format!("{act}: {came}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}: {wrong:#?}", way.name);
        assert!(tried.is_empty(), "not in the table: {tried:?}");
        let kept =
            ["write", "truncate", "link", "rename", "unlink"].map(|name| place.path("outside").join(name));
        assert!(kept.iter().all(|path| std::fs::read(path).unwrap() == b"content"), "{}", way.name);
        place.nothing_left();
    }
}

#[test]
fn a_task_that_may_not_write_writes_only_what_is_thrown_away() {
    const SCRIPT: &str = "
import os
def tries(path):
    try:
        open(path, 'w').close()
        return 'done'
    except OSError as e:
        return 'refused'
print(tries(os.environ['TASK'] + '/new'), tries(os.environ['TASK'] + '/given'),
      tries(os.environ['TMPDIR'] + '/x'), tries(os.environ['HOME'] + '/x'), open(os.environ['TASK'] + '/given').read())
";
    for way in ways() {
        let place = Place::new(way);
        let mut order = place.order(SCRIPT);
        order.mode = SandboxMode::ReadOnly;
        order.writable = vec![place.path("outside")];
        let ran = place.run(&order);
        assert_eq!(ran.stdout, "refused refused done done content\n", "{}: {ran:?}", way.name);
    }
}

#[test]
fn a_program_has_little_shared_memory_and_leaves_no_memory_image_with_anybody() {
    const SCRIPT: &str = "
import os, resource
found = os.statvfs('/dev/shm')
print(found.f_blocks * found.f_frsize, found.f_files, *resource.getrlimit(resource.RLIMIT_CORE))
";
    for way in ways() {
        let place = Place::new(way);
        let printed = place.script(SCRIPT);
        let numbers: Vec<u64> = printed.split_whitespace().map(|word| word.parse().unwrap()).collect();
        // With a limit of 0 a program of the system's would still be given one.
        assert_eq!(numbers[2..], [1, 1], "{}", way.name);
        if way.without.is_empty() && !place.path("").starts_with("/dev/shm") {
            assert!(numbers[0] <= 512 << 20 && numbers[1] <= 1 << 16, "{}: {printed}", way.name);
        }
    }
}

#[test]
fn the_home_that_the_system_knows_holds_nothing_whatever_home_says() {
    const SCRIPT: &str = "
import os
try:
    print(os.listdir(os.environ['KNOWN']))
except OSError:
    print('refused')
";
    for way in ways() {
        let place = Place::new(way);
        let uid = if way.root { 0 } else { place.uid() };
        let known = nix::unistd::User::from_uid(uid.into()).unwrap().map(|user| user.dir).unwrap_or_default();
        if place.path("").starts_with(&known) {
            cofferdam_tests::skipped(format_args!("{} holds what a test needs", known.display()));
            continue;
        }
        let mut order = place.order(SCRIPT);
        let text = known.to_str().unwrap().to_owned();
        order.program.as_mut().unwrap().env.push(("KNOWN".to_owned(), text));
        let ran = place.run(&order);
        let covered = way.without.is_empty() && known.is_dir();
        assert_eq!(ran.stdout, if covered { "[]\n" } else { "refused\n" }, "{}: {known:?} {ran:?}", way.name);
    }
}
