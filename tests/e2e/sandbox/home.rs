//! What a program finds as its own, and what of the user's.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use cofferdam_protocol::pod::SandboxMode;
use cofferdam_storage::disk::Disk;
use cofferdam_storage::sandbox::{HomeFile, Report, home_file, home_file_content, take_copies_away};
use cofferdam_tests::{files, user};
use nix::sys::signal::Signal;

use crate::place::Place;
use crate::{WAYS, Way, ways};

#[test]
fn home_and_temporary_files_are_private_and_gone_afterwards() {
    for way in ways() {
        let place = Place::new(way);
        let script = "
import os
for name in ['HOME', 'TMPDIR', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_RUNTIME_DIR']:
    path = os.environ[name]
    assert path.startswith(os.environ['PLACE'] + '/state/pods/'), path
    open(path + '/own', 'w').close()
os.makedirs(os.environ['TMPDIR'] + '/deep/er')
os.chmod(os.environ['TMPDIR'] + '/deep', 0)
print(os.getuid())";
        assert_eq!(place.script(script).trim(), place.uid().to_string());
        place.nothing_left();
    }
}

#[test]
fn sandboxes_that_start_together_take_nothing_from_each_other() {
    for way in ways() {
        let place = Place::new(way);
        let order = place.order("import os; open(os.environ['HOME'] + '/own', 'w').close()");
        let started: Vec<_> = (0..8).map(|_| place.start(&order)).collect();
        for running in started {
            let ran = running.finish();
            assert_eq!(ran.exit(), Some((Some(0), None)), "{}: {ran:?}", way.name);
        }
        place.nothing_left();
    }
}

#[test]
fn what_is_shown_of_the_users_home_can_be_read_and_not_be_written() {
    for way in ways() {
        let place = Place::new(way);
        let script = "
import os
path = os.environ['HOME'] + '/.config/tool/key'
print(open(path).read())
try:
    open(path, 'w')
    print('written')
except OSError:
    print('refused')";
        let mut order = place.order(script);
        order.from_home = vec![".config/tool".into(), ".not-there".into()];
        let ran = place.run(&order);
        assert_eq!(ran.stdout, "content\nrefused\n", "{}: {ran:?}", way.name);
        assert_eq!(std::fs::read(place.path("home/.config/tool/key")).unwrap(), b"content");
    }
}

/// Runs a script in a home that is kept, which is shown a file of the user's; what it printed.
#[track_caller]
fn in_kept_home(place: &Place, mode: SandboxMode, script: &str) -> String {
    let mut order = place.order(script);
    order.kept_home = Some(place.path("state/agents/task/home"));
    order.from_home = vec![".config/tool/key".into()];
    order.mode = mode;
    let ran = place.run(&order);
    assert_eq!(ran.exit(), Some((Some(0), None)), "{}: {ran:?}", place.way.name);
    place.nothing_left();
    ran.stdout
}

#[test]
fn a_home_that_is_kept_is_there_again_and_nothing_else_that_is_private() {
    for way in ways() {
        let place = Place::new(way);
        for mode in [SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly] {
            let script = "
import os
home = os.environ['HOME']
assert home == os.environ['PLACE'] + '/state/agents/task/home', home
for name in ['XDG_CONFIG_HOME', 'XDG_CACHE_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME']:
    assert os.environ[name].startswith(home + '/'), name
    open(os.environ[name] + '/one', 'w').write('remembered')
for name in ['TMPDIR', 'XDG_RUNTIME_DIR']:
    assert not os.path.exists(os.environ[name] + '/one'), name
    open(os.environ[name] + '/one', 'w').close()
try:
    open(home + '/../one', 'w')
    raise SystemExit('beside the home')
except OSError:
    pass
os.chmod(home + '/.local/share', 0o500)
os.chmod(home, 0o500)
print(open(home + '/.config/tool/key').read())";
            assert_eq!(in_kept_home(&place, mode, script), "content\n");
            let script = "
import os
print(open(os.environ['XDG_DATA_HOME'] + '/one').read(), os.stat(os.environ['HOME']).st_uid)
print(open(os.environ['XDG_CONFIG_HOME'] + '/tool/key').read())
open(os.environ['HOME'] + '/again', 'w').close()
for dir, dirs, files in os.walk(os.environ['HOME'], False):
    for file in files:
        os.unlink(dir + '/' + file)";
            let expected = format!("remembered {}\ncontent\n", place.uid());
            assert_eq!(in_kept_home(&place, mode, script), expected, "{}", way.name);
        }
        assert_eq!(std::fs::read(place.path("home/.config/tool/key")).unwrap(), b"content");
    }
}

#[test]
fn what_a_killed_supervisor_has_copied_into_a_home_that_is_kept_is_taken_away() {
    // By whoever waited for it, and by the next one that comes.
    for swept in [false, true] {
        for way in ways() {
            let place = Place::new(way);
            let (home, private) = (place.path("state/agents/task/home"), place.path("state/pods"));
            let script = "
import os, time
open(os.environ['XDG_CONFIG_HOME'] + '/tool/own', 'w').close()
print(open(os.environ['XDG_CONFIG_HOME'] + '/tool/key').read(), flush=True)
time.sleep(1000)";
            let mut order = place.order(script);
            order.kept_home = Some(home.clone());
            order.from_home = vec![".config/tool/key".into()];
            let mut running = place.start(&order);
            assert_eq!(running.line(), "content", "{}", place.way.name);
            running.supervisor.kill().unwrap();
            running.finish();
            let copy = home.join(".config/tool/key");
            let is_copy = || copy.symlink_metadata().is_ok_and(|found| found.is_file());
            assert_eq!(is_copy(), order.user.is_some() && place.way.root, "{}", place.way.name);
            match swept {
                false => take_copies_away(&Disk::default(), &private, &home).unwrap(),
                // The keeper may be there for a moment still, and holds the lock.
                true => assert!((0..50).any(|_| {
                    place.script("pass");
                    place.left().is_empty()
                })),
            }
            assert!(!is_copy(), "{}", place.way.name);
            assert!(home.join(".config/tool/own").exists(), "{}", place.way.name);
            assert_eq!(std::fs::read(place.path("home/.config/tool/key")).unwrap(), b"content");
        }
    }
}

#[test]
fn what_a_program_leaves_in_its_home_leads_nobody_outside() {
    for way in ways() {
        let place = Place::new(way);
        let traps = [
            // The way to what is shown, and what is made for every program.
            "shutil.rmtree('.config'); os.symlink(outside, '.config')",
            "shutil.rmtree('.config/tool'); os.symlink(outside, '.config/tool')",
            "os.unlink('.config/tool/key'); os.symlink(outside + '/write', '.config/tool/key')",
            "os.unlink('.config/tool/key'); os.makedirs('.config/tool/key/deep')",
            "shutil.rmtree('.local'); os.symlink(outside, '.local')",
            "os.rmdir('.cache'); os.mkfifo('.cache')",
            "os.symlink(outside, 'dir'); os.symlink(outside + '/write', 'file')",
        ];
        for trap in traps {
            let script = format!(
                "import os, shutil\noutside = os.environ['OUTSIDE']\nos.chdir(os.environ['HOME'])\n{trap}"
            );
            in_kept_home(&place, SandboxMode::WorkspaceWrite, &script);
            let found = in_kept_home(
                &place,
                SandboxMode::WorkspaceWrite,
                "import os\nprint(open(os.environ['HOME'] + '/.config/tool/key').read())",
            );
            assert_eq!(found, "content\n", "{}: {trap}", way.name);
            outside_is_untouched(&place, way);
        }
    }
}

fn outside_is_untouched(place: &Place, way: Way) {
    let owner = if way.root { 0 } else { place.uid() };
    for entry in std::fs::read_dir(place.path("outside")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(std::fs::read(entry.path()).unwrap(), b"content", "{entry:?}");
        assert_eq!(entry.metadata().unwrap().uid(), owner, "{entry:?}");
    }
    assert_eq!(std::fs::read_dir(place.path("outside")).unwrap().count(), 10);
}

#[test]
fn a_kept_home_of_root_is_given_away_but_for_what_has_another_name_outside() {
    if !user::is_root() {
        cofferdam_tests::skip!("only root gives files away");
    }
    for way in [WAYS[2], WAYS[3]] {
        let place = Place::new(way);
        let home = place.path("state/agents/task/home");
        // As something that was brought back by root.
        files::mkdir(home.join("dir"));
        files::write(home.join("dir/file"), "");
        files::symlink(place.path("outside/write"), home.join("way"));
        std::fs::hard_link(place.path("outside/link"), home.join("linked")).unwrap();
        in_kept_home(&place, SandboxMode::WorkspaceWrite, "pass");
        let owner = |path: &str| std::fs::symlink_metadata(place.path(path)).unwrap().uid();
        // The copy of the user's own is gone; what a program makes of it is its own.
        assert!(home.join(".config/tool").is_dir() && !home.join(".config/tool/key").exists());
        for given in ["", "/dir", "/dir/file", "/way", "/.config", "/.config/tool"] {
            assert_eq!(owner(&format!("state/agents/task/home{given}")), user::NOBODY, "{given}");
        }
        for kept in
            ["state/agents/task", "state/agents", "outside/write", "outside/link", "home/.config/tool/key"]
        {
            assert_eq!(owner(kept), 0, "{kept}");
        }
    }
}

#[test]
fn what_a_program_has_closed_can_be_read_by_its_owner_afterwards() {
    for way in ways().filter(|way| !way.root) {
        let place = Place::new(way);
        let script = "
import os
for dir in [os.environ['TASK'], os.environ['HOME']]:
    os.makedirs(dir + '/closed/deep')
    open(dir + '/closed/deep/file', 'w').close()
    for path in ['/closed/deep/file', '/closed/deep', '/closed', '']:
        os.chmod(dir + path, 0)";
        in_kept_home(&place, SandboxMode::WorkspaceWrite, script);
        for dir in ["root/task", "state/agents/task/home"] {
            for (path, mode) in
                [("", 0o500), ("closed", 0o500), ("closed/deep", 0o500), ("closed/deep/file", 0o400)]
            {
                let found = std::fs::metadata(place.path(dir).join(path)).unwrap();
                assert_eq!(found.mode() & 0o777, mode, "{}: {dir} {path}", way.name);
            }
        }
    }
}

#[test]
fn more_can_be_read_and_written_where_the_order_says_so() {
    for way in ways() {
        let place = Place::new(way);
        files::mkdir(place.path("outside/cache"));
        files::chmod(place.path("outside/cache"), 0o777);
        let script = "
import os
open(os.environ['OUTSIDE'] + '/cache/new', 'w').write('made')
print(open(os.environ['PLACE'] + '/home/secret').read())";
        let mut order = place.order(script);
        order.writable = vec![place.path("outside/cache"), place.path("gone")];
        order.readable = vec![place.path("home/secret")];
        if way.root && !way.without.is_empty() {
            files::chmod(place.path("home"), 0o711);
        }
        if !way.root && user::is_root() {
            user::give_all(place.path("outside"), user::NOBODY);
        }
        let ran = place.run(&order);
        assert_eq!(ran.stdout, "content\n", "{}: {ran:?}", way.name);
        assert_eq!(std::fs::read(place.path("outside/cache/new")).unwrap(), b"made");
    }
}

#[test]
fn a_task_of_root_is_given_away_but_for_what_has_another_name_outside() {
    if !user::is_root() {
        cofferdam_tests::skip!("only root gives files away");
    }
    for way in [WAYS[2], WAYS[3]] {
        let place = Place::new(way);
        let task = place.path("root/task");
        files::mkdir(task.join("dir"));
        files::write(task.join("dir/file"), "");
        files::symlink(place.path("outside/write"), task.join("way"));
        std::fs::hard_link(place.path("outside/link"), task.join("linked")).unwrap();
        files::chmod(task.join("given"), 0o4755);
        place.script("pass");
        let owner = |path: &str| std::fs::symlink_metadata(place.path(path)).unwrap().uid();
        for given in ["root/task", "root/task/dir", "root/task/dir/file", "root/task/way", "root/task/given"]
        {
            assert_eq!(owner(given), user::NOBODY, "{given}");
        }
        for kept in ["root", "outside/write", "outside/link", "root/other", "state"] {
            assert_eq!(owner(kept), 0, "{kept}");
        }
        let mode = std::fs::metadata(task.join("given")).unwrap().mode();
        assert_eq!(mode & 0o6000, 0, "set-id bits go with the owner");
    }
}

#[test]
fn a_home_that_holds_state_and_tasks_is_hidden_around_them() {
    for way in ways() {
        let place = Place::new(way);
        let script = "
import os
place = os.environ['PLACE']
def tries(f):
    try:
        return f()
    except OSError:
        return 'refused'
print(tries(lambda: sorted(os.listdir(place))), tries(lambda: open(place + '/outside/write').read()))
for dir in os.environ['TASK'], os.environ['HOME'], os.environ['TMPDIR']:
    open(dir + '/new', 'w').close()
print(open(os.environ['TASK'] + '/given').read())";
        let mut order = place.order(script);
        order.real_home = Some(place.dir.path().to_owned());
        order.hidden.push(place.dir.path().to_owned());
        let listed = if way.without.is_empty() { "['root', 'state']" } else { "refused" };
        assert_eq!(place.run(&order).stdout, format!("{listed} refused\ncontent\n"), "{}", way.name);
        place.nothing_left();
    }
}

#[test]
fn a_program_starts_with_signals_as_usual_and_without_a_terminal() {
    for way in ways() {
        let place = Place::new(way);
        let mut order = place.order("");
        order.program.as_mut().unwrap().argv =
            ["cat", "/proc/self/status", "/dev/tty"].map(str::to_owned).to_vec();
        let ran = place.run(&order);
        let mask = |name: &str| {
            let line = ran.stdout.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let broken_pipe = 1 << (Signal::SIGPIPE as u64 - 1);
        assert_eq!((mask("SigBlk:"), mask("SigIgn:") & broken_pipe), (0, 0), "{}: {ran:?}", way.name);
        assert!(ran.stderr.contains("/dev/tty: No such device or address"), "{}: {ran:?}", way.name);
    }
}

#[test]
fn files_that_are_put_into_the_home_are_the_programs_own_and_come_back_as_it_leaves_them() {
    for way in ways() {
        let place = Place::new(way);
        let mut order = place.order(
            "
import os
os.chdir(os.environ['HOME'])
assert open('.tool/deep/kept').read() == 'kept'
assert os.stat('.tool/deep/kept').st_uid == os.getuid()
os.remove('.tool/deep/kept')
open('.tool/deep/kept', 'w').write('changed')
os.remove('gone')
os.remove('led')
os.symlink('/etc/passwd', 'led')
os.rename('moved', 'elsewhere')
os.symlink('elsewhere', 'moved')
open('silent', 'w').write('changed')",
        );
        let limit = 100;
        let wanted = [".tool/deep/kept", "gone", "led", "moved/file"];
        let file = |path: &str, back| HomeFile { path: path.into(), back };
        order.home_files = wanted.iter().map(|path| file(path, Some(limit))).collect();
        order.home_files.push(file("silent", None));
        let content =
            ["kept", "gone", "led", "moved", "silent"].map(|text| home_file(text.as_bytes()).unwrap());
        let mut running = place.start_with(Command::new(place.program()), &order, &content);
        let mut returned = Vec::new();
        while let Some(report) = running.report() {
            if let Report::Returned { path, problem } = report {
                returned.push((path, problem.is_none()));
            }
        }
        running.finish();
        let expected = wanted.iter().map(|path| (path.into(), *path == wanted[0]));
        assert_eq!(returned, expected.collect::<Vec<_>>(), "{}", way.name);
        let content = content.map(|file| home_file_content(&file, limit).unwrap());
        assert_eq!(
            content,
            ["changed", "gone", "led", "moved", "silent"].map(|text| text.as_bytes().to_vec())
        );
        place.nothing_left();
    }
}
