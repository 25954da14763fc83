//! Programs that are at work in a workspace while it is captured and rolled back.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cofferdam_tests::{files, skipped};

use super::ground::{Filesystem, Ground, Who};
use super::undo;

/// A program that is ended with the test.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }

    #[track_caller]
    fn assert_runs(&mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "it has ended");
    }

    /// Its working directory is that one and has a name.
    #[track_caller]
    fn assert_is_in(&mut self, dir: &Path) {
        self.assert_runs();
        let cwd = format!("/proc/{}/cwd", self.0.id());
        assert_eq!(std::fs::read_link(&cwd).unwrap(), dir);
        assert_eq!(std::fs::metadata(&cwd).unwrap().ino(), std::fs::metadata(dir).unwrap().ino());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes to files for as long as it lives: stores through a mapping when it is told to, and appends all the time.
const WRITER: &str = r#"
import mmap, os, sys, threading, time
def append():
    with open("log", "ab", buffering=0) as log:
        while True:
            log.write(b"a line\n")
            time.sleep(0.0005)
with open("mapped", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0)
threading.Thread(target=append, daemon=True).start()
for line in sys.stdin.buffer:
    m[0:4] = line[:4]
    print("stored", flush=True)
"#;

struct Writer {
    program: Program,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Writer {
    fn start(ground: &Ground) -> Self {
        let mut command = ground.site.command("python3");
        command.args(["-c", WRITER]).current_dir(&ground.scene.ws);
        let mut program = Program::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let (stdin, stdout) = (program.0.stdin.take().unwrap(), program.0.stdout.take().unwrap());
        Self { program, stdin, stdout: BufReader::new(stdout) }
    }

    /// Returns when it has stored four bytes.
    fn store(&mut self, bytes: &str) {
        writeln!(self.stdin, "{bytes}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "stored\n");
    }
}

pub(super) fn programs_go_on(filesystem: Filesystem, who: Who) {
    let Some(ground) = Ground::new(filesystem, who, |scene| {
        files::write(scene.at("mapped"), "0000");
        files::write(scene.at("log"), "a line\n");
        files::write(scene.at("held"), "old");
        files::write(scene.at("sub/kept/file"), "old");
        std::fs::copy("/bin/sleep", scene.at("busy")).unwrap();
    }) else {
        return;
    };
    if Command::new("python3").arg("-V").output().is_err() {
        skipped(format_args!("python3 is needed to write through mappings"));
        return;
    }
    let (daemon, ws) = (ground.site.start(), &ground.scene.ws);
    let sleep =
        |program: &Path, dir: &Path| Program::start(ground.site.command(program).arg("600").current_dir(dir));
    let mut in_root = sleep("/bin/sleep".as_ref(), ws);
    let mut in_sub = sleep("/bin/sleep".as_ref(), &ws.join("sub/kept"));
    let mut old_program = sleep(&ws.join("busy"), ws);
    let held = File::options().read(true).write(true).open(ws.join("held")).unwrap();
    let mut writer = Writer::start(&ground);
    let log = || {
        let text = String::from_utf8(files::read(ws.join("log"))).unwrap();
        assert_eq!(text.replace("a line\n", ""), "", "lines that were not written");
        text.len()
    };

    writer.store("1111");
    let first = log();
    daemon.checkpoint(ws, "one");
    let program = files::read(ws.join("busy"));

    // A program that runs cannot be written to; it is replaced, and the new one runs as well.
    files::remove(ws.join("busy"));
    ground.as_owner(|| std::fs::write(ws.join("busy"), [&program[..], b"version two"].concat()).unwrap());
    files::chmod(ws.join("busy"), 0o755);
    let mut new_program = sleep(&ws.join("busy"), ws);
    files::write(ws.join("held"), "new");
    files::write(ws.join("sub/kept/file"), "new");
    ground.as_owner(|| files::write(ws.join("sub/kept/more"), "new"));
    writer.store("2222");
    daemon.checkpoint(ws, "two");
    writer.store("3333");
    let last = log();

    daemon.rollback(ws, "one");
    assert_eq!(files::read(ws.join("mapped")), b"1111");
    assert_eq!(files::read(ws.join("busy")), program);
    assert!((first..last).contains(&log()), "{first} <= {} < {last}", log());
    // What is still open is what was displaced: writing to it reaches nothing that was restored.
    held.write_all_at(b"too late", 0).unwrap();
    assert_eq!(files::read(ws.join("held")), b"old");
    in_root.assert_is_in(ws);
    in_sub.assert_is_in(&ws.join("sub/kept"));
    assert_eq!(files::names(ws.join("sub/kept")), ["file"]);

    undo(&ground);
    assert_eq!(files::read(ws.join("mapped")), b"3333");
    assert_eq!(files::read(ws.join("busy")), [&program[..], b"version two"].concat());
    assert!(log() >= last, "{} lines of the log are lost", (last - log()) / 7);
    assert_eq!(files::names(ws.join("sub/kept")), ["file", "more"]);
    daemon.rollback(ws, "two");
    assert_eq!(files::read(ws.join("mapped")), b"2222");
    in_root.assert_is_in(ws);
    in_sub.assert_is_in(&ws.join("sub/kept"));
    for program in [&mut old_program, &mut new_program, &mut writer.program] {
        program.assert_runs();
    }
    let mut begin = [0; 4];
    File::open(format!("/proc/{}/exe", old_program.0.id())).unwrap().read_exact(&mut begin).unwrap();
    assert_eq!(begin, program[..4]);
    daemon.stop();
    assert_eq!(ground.site.check(), 2);
}
