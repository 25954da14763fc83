//! The built sidecar of the isolation pod over its real stdio, each test in a place of its own.

use std::collections::BTreeSet;

use cofferdam_tests::pod::{PodSite, Sidecar};
use serde_json::{Value, json};

mod config;
mod crash;
mod database;
mod exports;
mod exports_midway;
mod files;
mod frames;
mod host;
mod hostile;
mod leases;
mod lifecycle;
mod logging;
mod migration;
mod queue;
mod reserve;
mod shutdown;
mod state;
mod swaps;
mod tasks;
mod time;

/// A place of its own for a test, with the sidecar of this build.
fn site() -> PodSite {
    PodSite::new(env!("CARGO_BIN_EXE_isolation-pod-core"))
}

/// The same for an ordinary user, also if root runs the tests.
fn site_of_ordinary_user() -> PodSite {
    PodSite::of_ordinary_user(env!("CARGO_BIN_EXE_isolation-pod-core"))
}

/// A sidecar with a task that has ended, one that runs, one that starts and one that waits, each called so.
fn one_of_each(site: &PodSite) -> Sidecar {
    let mut pod = site.start_with(json!({"maxConcurrent": 2}));
    pod.finish("ended");
    pod.run("running");
    pod.reserve("starting");
    pod.reserve("queued");
    pod
}

/// Fails unless the object has exactly the keys that `names` lists.
#[track_caller]
fn only_these_keys(object: &Value, names: &str) {
    let keys: BTreeSet<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, names.split_whitespace().collect(), "{object}");
}

/// The keys of `after` whose value is not that of `before`, sorted.
fn differing<'a>(before: &Value, after: &'a Value) -> Vec<&'a str> {
    let keys = after.as_object().unwrap().iter().filter(|(key, value)| before[key.as_str()] != **value);
    keys.map(|(key, _)| key.as_str()).collect()
}
