//! Programs that run for a conversation. Each has a session and a process group of its own: no terminal can stop it. The
//! group ends when the program does, when nobody wants it any more, or with this process.

use std::collections::HashMap;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use cofferdam_storage::sys::in_new_session;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The programs that run, or are about to.
#[derive(Clone, Debug, Default)]
pub struct Processes(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// What is wanted, and which process group it is once it runs.
    wanted: HashMap<u64, Option<Pid>>,
    /// Nothing is started any more.
    ending: bool,
}

impl Processes {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows a program to run for as long as the first of the two is kept; the second starts it, from whatever thread.
    pub(crate) fn permit(&self) -> (Permit, Starter) {
        let mut table = self.table();
        let number = table.next;
        table.next += 1;
        table.wanted.insert(number, None);
        (Permit { processes: self.clone(), number }, Starter { processes: self.clone(), number })
    }

    /// Kills whatever runs; nothing is started afterwards. For the end of this process.
    pub fn end(&self) {
        let mut table = self.table();
        table.ending = true;
        table.wanted.values().flatten().for_each(|group| kill(*group));
    }
}

/// As long as it is kept a program may run.
#[derive(Debug)]
pub(crate) struct Permit {
    processes: Processes,
    number: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(Some(group)) = self.processes.table().wanted.remove(&self.number) {
            kill(group);
        }
    }
}

/// Starts a program.
#[derive(Debug)]
pub(crate) struct Starter {
    processes: Processes,
    number: u64,
}

impl Starter {
    /// Starts it, unless nobody wants it any more. The parent's ends of what the command holds are closed.
    pub(crate) fn start(self, mut command: Command) -> io::Result<Running> {
        let Self { processes, number } = self;
        let mut table = processes.table();
        if table.ending || !table.wanted.contains_key(&number) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // While the table is locked, so that whoever stops it finds either nothing or the whole group.
        let child = in_new_session(&mut command).spawn()?;
        let group = Pid::from_child(&child);
        table.wanted.insert(number, Some(group));
        drop(table);
        Ok(Running { child, group, number, processes })
    }
}

/// A program that runs. It is killed and reaped when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    /// For its pipes.
    pub(crate) child: Child,
    group: Pid,
    number: u64,
    processes: Processes,
}

impl Running {
    /// Waits on another thread until the program has ended, then ends what is left of its group, so that what they
    /// write to is closed.
    pub(super) fn end_in_time(self) -> io::Result<JoinHandle<io::Result<ExitStatus>>> {
        self.end_in_time_and(|ended| ended)
    }

    /// The same; that thread then does something with how it has ended.
    pub(crate) fn end_in_time_and<T: Send + 'static>(
        mut self,
        then: impl FnOnce(io::Result<ExitStatus>) -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        thread::Builder::new().name("program".to_owned()).spawn(move || {
            // It stays a zombie, so that its number, which is the group's, goes to nobody else meanwhile.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.group), options));
            then(ended.map_err(io::Error::from).and_then(|_| self.reap()))
        })
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        let mut table = self.processes.table();
        kill(self.group);
        if let Some(group) = table.wanted.get_mut(&self.number) {
            *group = None;
        }
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing happens if it was reaped: the child knows its status then, and the group may be somebody else's.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.reap();
        }
    }
}

/// That it is gone already is as well.
fn kill(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}

/// Reads to the end, and keeps the last bytes as text.
pub(super) fn read_tail(mut from: impl Read, most: usize) -> String {
    let (mut kept, mut chunk) = (Vec::new(), vec![0; 8 << 10]);
    // That it cannot be read any more is its end.
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        kept.extend_from_slice(&chunk[..read]);
        kept.drain(..kept.len().saturating_sub(most));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    fn output(running: &mut Running) -> impl Read + use<> {
        running.child.stdout.take().unwrap()
    }

    #[test]
    fn a_program_has_a_session_of_its_own_so_that_no_terminal_can_stop_it() {
        let (_permit, starter) = Processes::default().permit();
        let mut running = starter.start(shell("cut -d ' ' -f 6 < /proc/$$/stat")).unwrap();
        let session = read_tail(output(&mut running), 100);
        assert_eq!(session.trim(), running.child.id().to_string());
    }

    #[test]
    fn what_a_program_leaves_behind_ends_with_it() {
        let (_permit, starter) = Processes::default().permit();
        // Would hold the pipe open for an hour.
        let mut running = starter.start(shell("sleep 3600 & echo out; exit 3")).unwrap();
        let output = output(&mut running);
        let ended = running.end_in_time().unwrap();
        assert_eq!(read_tail(output, 100), "out\n");
        assert_eq!(ended.join().unwrap().unwrap().code(), Some(3));
    }

    #[test]
    fn a_program_that_nobody_wants_any_more_is_killed_with_its_group_and_reaped() {
        let (permit, starter) = Processes::default().permit();
        let mut running = starter.start(shell("sleep 3600 & sleep 3600")).unwrap();
        let output = output(&mut running);
        let pid = running.child.id();
        let ended = running.end_in_time().unwrap();
        drop(permit);
        assert_eq!(read_tail(output, 100), "");
        assert_eq!(ended.join().unwrap().unwrap().code(), None);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn the_end_of_this_process_is_that_of_all_programs_and_none_begins_after_it() {
        let processes = Processes::default();
        let (_one, first) = processes.permit();
        let (_two, second) = processes.permit();
        let ended = first.start(shell("sleep 3600")).unwrap().end_in_time().unwrap();
        processes.end();
        assert_eq!(ended.join().unwrap().unwrap().code(), None);
        assert!(second.start(shell("true")).is_err());
    }

    #[test]
    fn what_was_given_up_before_it_began_never_begins() {
        let (permit, starter) = Processes::default().permit();
        drop(permit);
        assert_eq!(starter.start(shell("true")).unwrap_err().kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn only_the_end_of_what_is_said_is_kept() {
        assert_eq!(read_tail(&b"abcdef"[..], 4), "cdef");
        assert_eq!(read_tail(&b"a\xffb"[..], 4), "a\u{fffd}b");
    }
}
