//! Faults on demand, and time that runs faster, for the built programs under test.
//!
//! With the feature `fault-injection` (never in a release build) the environment variable `COFFERDAM_FAULT` holds
//! rules separated by commas, each `STEP[#N]=ACTION`: at the Nth time (default 1) that the named step of a
//! multi-step change is reached, `kill` ends the process as SIGKILL does, `eio` and `enospc` make it fail so.
//! The step `op` stands for every single operation of [`crate::disk`].
//!
//! With the same feature `COFFERDAM_TIME_SCALE=N` (1 to 10000) makes the monotonic time of [`crate::clock::from_env`]
//! run N times as fast, so that a test sees a deadline of minutes pass.

use crate::disk::Disk;

/// The way to the disk that this process's environment asks for.
#[cfg(not(feature = "fault-injection"))]
pub fn disk_from_env() -> Disk {
    Disk::default()
}

#[cfg(feature = "fault-injection")]
pub use injected::disk_from_env;

#[cfg(feature = "fault-injection")]
mod injected {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Disk;
    use crate::disk::{FaultHook, Op};

    #[derive(Debug)]
    struct Rule {
        step: String,
        nth: u64,
        action: Action,
        seen: AtomicU64,
    }

    #[derive(Clone, Copy, Debug)]
    enum Action {
        Kill,
        Fail(rustix::io::Errno),
    }

    #[derive(Debug)]
    struct Rules(Vec<Rule>);

    /// The way to the disk that this process's environment asks for. A rule that cannot be read ends the process:
    /// a test must not pass because its fault never happened.
    pub fn disk_from_env() -> Disk {
        match std::env::var("COFFERDAM_FAULT") {
            Ok(text) if !text.is_empty() => {
                Disk::with_faults(Arc::new(Rules(text.split(',').map(parse).collect())))
            }
            _ => Disk::default(),
        }
    }

    fn parse(text: &str) -> Rule {
        let parsed = text.split_once('=').and_then(|(step, action)| {
            let (step, nth) = match step.split_once('#') {
                Some((step, nth)) => (step, nth.parse().ok().filter(|nth| *nth > 0)?),
                None => (step, 1),
            };
            let action = match action {
                "kill" => Action::Kill,
                "eio" => Action::Fail(rustix::io::Errno::IO),
                "enospc" => Action::Fail(rustix::io::Errno::NOSPC),
                _ => return None,
            };
            Some(Rule { step: step.to_owned(), nth, action, seen: AtomicU64::new(0) })
        });
        parsed.unwrap_or_else(|| {
            tracing::error!(rule = text, "COFFERDAM_FAULT has a rule that cannot be read");
            std::process::abort()
        })
    }

    impl Rules {
        fn reached(&self, step: &str) -> io::Result<()> {
            for rule in self.0.iter().filter(|rule| rule.step == step) {
                if rule.seen.fetch_add(1, Ordering::Relaxed) + 1 == rule.nth {
                    match rule.action {
                        Action::Fail(errno) => return Err(errno.into()),
                        Action::Kill => kill_self(),
                    }
                }
            }
            Ok(())
        }
    }

    impl FaultHook for Rules {
        fn before(&self, _: Op) -> io::Result<()> {
            self.reached("op")
        }

        fn step(&self, name: &str) -> io::Result<()> {
            self.reached(name)
        }
    }

    /// As abrupt as SIGKILL from outside: no destructor, no flush.
    fn kill_self() -> ! {
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::SIGKILL);
        std::process::abort()
    }
}
