//! What tests of sandboxes found: what holds for one task holds for the next that is confined in the same way.

use std::path::PathBuf;
use std::time::Duration;

use cofferdam_protocol::pod::{Probe, SandboxCheck, SandboxMode};
use cofferdam_storage::sandbox::{Layer, LayerState};

use super::Facts;
use super::run::Ran;

/// For how long a verdict is believed.
const VALID: Duration = Duration::from_secs(600);

/// How a task is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    root: String,
    mode: SandboxMode,
    from_home: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Way {
    pub(super) fn of(facts: &Facts) -> Self {
        Self {
            root: facts.policy.root.clone(),
            mode: facts.mode,
            from_home: facts.preset.from_home.clone(),
            writable: facts.preset.writable.clone(),
        }
    }
}

/// The verdicts of the last minutes.
#[derive(Debug, Default)]
pub(super) struct Verdicts(Vec<Verdict>);

#[derive(Debug)]
struct Verdict {
    way: Way,
    /// Those that held.
    layers: Vec<Layer>,
    check: SandboxCheck,
    until: Duration,
}

impl Verdicts {
    /// The verdict on a way, with the layers that held, if it was tested lately.
    pub(super) fn get(&mut self, way: &Way, now: Duration) -> Option<(SandboxCheck, Vec<Layer>)> {
        self.0.retain(|verdict| verdict.until > now);
        let found = self.0.iter().find(|verdict| verdict.way == *way);
        found.map(|verdict| (verdict.check.clone(), verdict.layers.clone()))
    }

    /// Keeps one. What failed or let something through is tested anew the next time.
    pub(super) fn keep(&mut self, way: Way, layers: &[LayerState], check: SandboxCheck, now: Duration) {
        self.0.retain(|verdict| verdict.way != way);
        if matches!(check.probe, Probe::Denied | Probe::Ambiguous) {
            self.0.push(Verdict { way, layers: held(layers), check, until: now + VALID });
        }
    }

    /// Forgets the verdict on a way, if other layers hold now than held when it was tested.
    pub(super) fn compare(&mut self, way: &Way, layers: &[LayerState]) {
        let layers = held(layers);
        self.0.retain(|verdict| verdict.way != *way || verdict.layers == layers);
    }
}

/// The layers that hold.
pub(super) fn held(layers: &[LayerState]) -> Vec<Layer> {
    layers.iter().filter(|state| state.holds).map(|state| state.layer).collect()
}

/// The verdict of one test, made `at`.
pub(super) fn check(facts: &Facts, ran: &Ran, at: i64) -> SandboxCheck {
    let (probe, fs_denied, note) = match (&ran.probe, &ran.failure) {
        (Some(found), None) => (found.probe, found.fs_denied, found.note.clone()),
        (_, Some(failure)) => (Probe::Failed, false, failure.clone()),
        (None, None) => (
            Probe::Failed,
            false,
            "the sandbox's supervisor ended without a verdict; the daemon's log may say more".to_owned(),
        ),
    };
    SandboxCheck { mode: facts.mode, root: facts.policy.root.clone(), probe, fs_denied, note, at }
}
