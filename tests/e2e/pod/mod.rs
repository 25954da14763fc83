//! The built sidecar of the isolation pod over its real stdio, each test in a place of its own.

use cofferdam_tests::pod::PodSite;

mod frames;

/// A place of its own for a test, with the sidecar of this build.
fn site() -> PodSite {
    PodSite::new(env!("CARGO_BIN_EXE_isolation-pod-core"))
}

/// The same for an ordinary user, also if root runs the tests.
fn site_of_ordinary_user() -> PodSite {
    PodSite::of_ordinary_user(env!("CARGO_BIN_EXE_isolation-pod-core"))
}
