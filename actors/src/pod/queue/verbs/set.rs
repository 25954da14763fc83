//! `task.setLastText`, `task.setSandboxCheck`, `task.setAvailableTools`, `task.setError`: what the host has seen.

use cofferdam_protocol::pod::{
    LeaseId, Probe, SandboxProbeMode, TaskSetAvailableTools, TaskSetError, TaskSetLastText,
    TaskSetSandboxCheck, TaskStatus, cut,
};

use super::held::Held;
use super::{Queue, Refusal};
use crate::pod::queue::rules::Step;
use crate::pod::queue::{ERROR_CHARS, TEXT_CHARS, WORD_CHARS, life};

impl Held for TaskSetLastText {
    const STEP: Step = Step::SetLastText;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal> {
        let text = cut(&self.text, TEXT_CHARS);
        queue.edit(&self.task_id, at, |task| text.clone_into(&mut task.summary.last_text)).map(drop)
    }
}

impl Held for TaskSetAvailableTools {
    const STEP: Step = Step::SetAvailableTools;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal> {
        queue.edit(&self.task_id, at, |task| task.summary.available_tools = self.tools).map(drop)
    }
}

impl Held for TaskSetError {
    const STEP: Step = Step::SetError;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal> {
        let message = cut(&self.message, ERROR_CHARS);
        queue.edit(&self.task_id, at, |task| {
            message.clone_into(&mut task.summary.error);
            if !task.summary.status.is_terminal() {
                life::end(task, TaskStatus::Failed, at);
            }
        })?;
        queue.audit(&queue.id(&self.task_id)?, at, format!("error {}", cut(&self.code, WORD_CHARS)));
        Ok(())
    }
}

impl Held for TaskSetSandboxCheck {
    const STEP: Step = Step::SetSandboxCheck;

    fn ids(&self) -> (&str, &LeaseId) {
        (&self.task_id, &self.lease_id)
    }

    /// Fails a task whose sandbox does not hold at once, so that no host can forget it.
    fn go(self, queue: &mut Queue, at: i64) -> Result<(), Refusal> {
        let (id, check) = (queue.id(&self.task_id)?, self.check);
        let verdict = verdict(check.probe, queue.config().sandbox_probe_mode);
        let text = |what: &str| match check.note.as_str() {
            "" => what.to_owned(),
            note => cut(&format!("{what}: {note}"), ERROR_CHARS).to_owned(),
        };
        queue.edit(id.as_str(), at, |task| {
            let summary = &mut task.summary;
            check.mode.as_str().clone_into(&mut summary.sandbox_mode);
            check.probe.as_str().clone_into(&mut summary.sandbox_probe);
            summary.fs_denied = check.fs_denied;
            if let Verdict::Fails(why) = verdict
                && !summary.status.is_terminal()
            {
                summary.error = text(why);
                life::end(task, TaskStatus::Failed, at);
            }
        })?;
        queue.audit(&id, at, format!("sandbox check {}", check.probe.as_str()));
        if let Verdict::Warns(what) = verdict {
            queue.warn(&id, text(what));
        }
        Ok(())
    }
}

/// What a self-test's outcome means for the task.
#[derive(Clone, Copy)]
enum Verdict {
    Passes,
    Warns(&'static str),
    Fails(&'static str),
}

fn verdict(probe: Probe, mode: SandboxProbeMode) -> Verdict {
    const AMBIGUOUS: &str =
        "the sandbox is not proven: the test write outside of it failed for another reason";
    const FAILED: &str = "the sandbox is not proven: it could not be tested";
    match (probe, mode) {
        (Probe::Denied, _) => Verdict::Passes,
        (Probe::Allowed, _) => {
            Verdict::Fails("the sandbox does not hold: a test write outside of it succeeded")
        }
        (Probe::SkippedNoParent, _) => {
            Verdict::Warns("the sandbox was not tested: there is no directory above its root to write to")
        }
        (Probe::Ambiguous, SandboxProbeMode::Strict) => Verdict::Fails(AMBIGUOUS),
        (Probe::Failed, SandboxProbeMode::Strict) => Verdict::Fails(FAILED),
        (Probe::Ambiguous, SandboxProbeMode::Warn) => Verdict::Warns(AMBIGUOUS),
        (Probe::Failed, SandboxProbeMode::Warn) => Verdict::Warns(FAILED),
    }
}
