//! What the system says about a running process, read from `/proc`; and its end.

use std::path::PathBuf;
use std::process::Child;
use std::thread::JoinHandle;

/// Memory in use, in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    status_kib(pid, "VmRSS:")
}

/// The most memory that was ever in use, in KiB.
pub fn peak_kib(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:")
}

fn status_kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Processor time used so far, in clock ticks (hundredths of a second), of all threads.
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The command's name may hold blanks and brackets; what follows the last bracket does not.
    let fields: Vec<_> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// How many descriptors it has open.
pub fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Its current working directory, as the kernel names it: ` (deleted)` at the end if it is gone.
pub fn working_directory(pid: u32) -> PathBuf {
    std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap()
}

/// Kills a process if it still runs. A failing test shows what it said.
pub(crate) fn end(child: &mut Child, stderr: Option<JoinHandle<String>>, who: &str) {
    let _ = child.kill();
    let _ = child.wait();
    if let Some(stderr) = stderr
        && std::thread::panicking()
        && let Ok(text) = stderr.join()
    {
        #[allow(clippy::print_stderr, reason = "what a failing test has to show")]
        {
            eprintln!("{who} said:\n{text}");
        }
    }
}
