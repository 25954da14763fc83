//! How long an export takes, beside `cp` and a BLAKE3 of the copy in the same run:
//! `cargo bench -p cofferdam --bench export`.
//!
//! - 1 000 files of 4 KiB, and one file of 1 GiB.
//! - The same beside a rival that makes its copy durable, as an export does.
//! - The most memory the sidecar has taken by then.
//!
//! Rivals take turns, so that a busy machine is busy for both, and each begins with a disk at rest. Files lie in `TMPDIR`:
//! a disk or memory, as you like.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has nothing to say")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time, and clears up behind itself")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use cofferdam_tests::files;
use cofferdam_tests::pod::{PodSite, Sidecar};
use cofferdam_tests::process::peak_kib;
use cofferdam_tests::project::noise;
use serde_json::json;

/// How often a large file is exported.
const LARGE_ROUNDS: usize = 3;

fn main() {
    let site = PodSite::new(env!("CARGO_BIN_EXE_isolation-pod-core"));
    let mut sidecar = site.start_rooted();
    sidecar.finish("a");
    println!("in {}", site.root().display());
    println!("\n{:<30}{:>12}{:>12}{:>10}{:>16}", "", "s", "cp+hash s", "ratio", "memory KiB");
    let made = site.root().join("a");
    files::mkdir(made.join("small"));
    (0..1000).for_each(|n| files::write(made.join(format!("small/{n}")), noise(4 << 10)));
    compare(&site, &mut sidecar, "small", "1 000 files of 4 KiB", 9);
    files::remove(made.join("small"));
    files::mkdir(made.join("large"));
    let piece = noise(64 << 20);
    files::write(made.join("large/file"), "");
    (0..16).for_each(|_| files::append(made.join("large/file"), &piece));
    compare(&site, &mut sidecar, "large", "one file of 1 GiB", LARGE_ROUNDS);
    sidecar.shutdown();
}

/// Exports a directory, and lets the rival do the same.
fn compare(site: &PodSite, sidecar: &mut Sidecar, entry: &str, what: &str, rounds: usize) {
    let source = site.root().join("a").join(entry);
    let (mut ours, mut theirs, mut durable) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let [target, copy] = ["ours", "theirs"].map(|whose| site.outside().join(format!("{whose}-{round}")));
        rest(site);
        let params = json!({"taskId": "a", "entries": [entry], "targetDir": target});
        let began = Instant::now();
        let answer = sidecar.request("export.create", params);
        ours.push(began.elapsed());
        assert_eq!(answer["result"]["export"]["status"], "completed", "{answer}");

        rest(site);
        let began = Instant::now();
        run(Command::new("cp").arg("-r").arg(&source).arg(&copy));
        hash_all(&copy);
        theirs.push(began.elapsed());
        run(Command::new("sync").arg("-f").arg(&copy));
        durable.push(began.elapsed());
        // ext4 takes long to make files where many were just removed, so small ones stay.
        if rounds == LARGE_ROUNDS {
            [target, copy].iter().for_each(files::remove);
        }
    }
    files::names(site.outside()).iter().for_each(|name| files::remove(site.outside().join(name)));
    let memory = peak_kib(sidecar.pid());
    let ours = median(&mut ours);
    for (what, theirs) in [(what.to_owned(), theirs), (format!("{what}, synced"), durable)] {
        let theirs = median(&mut { theirs });
        println!("{what:<30}{ours:>12.3}{theirs:>12.3}{:>10.2}{memory:>16}", ours / theirs);
    }
}

/// Has the disk write what waits: nobody pays for what was done before.
fn rest(site: &PodSite) {
    run(Command::new("sync").arg("-f").arg(site.outside()));
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn hash_all(dir: &Path) {
    let mut buffer = vec![0; 1 << 20];
    for name in files::names(dir) {
        let (mut file, mut hasher) = (File::open(dir.join(name)).unwrap(), blake3::Hasher::new());
        loop {
            match file.read(&mut buffer).unwrap() {
                0 => break,
                read => drop(hasher.update(&buffer[..read])),
            }
        }
        std::hint::black_box(hasher.finalize());
    }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
