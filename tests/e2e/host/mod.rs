//! Tasks from the command line to the agent and back, over the built programs: each test with the core in the daemon, and
//! with `isolation-pod-core`. A task's description is the script of the agent that the tests' presets run.

use cofferdam_tests::host::{Core, HostSite};

mod cancelling;
mod context;
mod cosh;
mod exporting;
mod following;
mod http;
mod misbehaving;
mod pods_refused;
mod programs;
mod removing;
mod restarts;
mod returning;
mod rewinding;
mod running;
mod settings;
mod shell;
mod taken_back;
mod trouble;
mod verdicts;

/// A place of its own for a test, with the programs of this build.
fn site(core: Core) -> HostSite {
    let pod_core = match core {
        Core::Embedded => None,
        Core::Sidecar => Some(env!("CARGO_BIN_EXE_isolation-pod-core").into()),
    };
    HostSite::new(super::programs(), pod_core)
}

/// Each of these tests twice: with either core.
macro_rules! with_either_core {
    ($($test:ident)+) => {
        mod embedded {
            $(#[test] fn $test() { super::$test(cofferdam_tests::host::Core::Embedded); })+
        }
        mod sidecar {
            $(#[test] fn $test() { super::$test(cofferdam_tests::host::Core::Sidecar); })+
        }
    };
}
use with_either_core;
