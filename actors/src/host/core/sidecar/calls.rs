//! Requests on their way to the sidecar, and those who wait for the answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::pod::*;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::host::core::failure::Refusal;
use crate::pod::{Call, Failure};

/// How many requests may wait for an answer.
pub(super) const IN_FLIGHT: usize = 256;
/// How many bytes of requests may wait to be written.
const QUEUED: usize = 16 << 20;
/// Methods whose answers may take any time: they wait in line for large copies, or remove trees, and who asked has to be
/// told what became of that.
const UNHURRIED: [&str; 5] = [
    ExportCreate::NAME,
    ExportUndo::NAME,
    ExportDeleteRecord::NAME,
    TaskCleanupFiles::NAME,
    TaskBulkCleanup::NAME,
];

/// A line to be written, its newline included.
pub(super) struct Queued {
    pub(super) line: Vec<u8>,
    /// Its share of [`QUEUED`].
    pub(super) _room: OwnedSemaphorePermit,
}

/// What comes of a request: a result that is still text, or why there is none.
pub(super) type Answer = Result<Box<RawValue>, Failure>;

/// Requests that wait for their answers.
pub(super) struct Calls {
    patience: Duration,
    /// Never used twice, so that nothing that comes late is taken for something else.
    last_id: u64,
    open: BTreeMap<u64, Open>,
    room: Arc<Semaphore>,
}

struct Open {
    /// Nothing: any time.
    until: Option<Instant>,
    answer: Box<dyn FnOnce(Answer) + Send>,
}

impl Calls {
    /// Calls that are answered within that time, or given up.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, last_id: 0, open: BTreeMap::new(), room: Arc::new(Semaphore::new(QUEUED)) }
    }

    /// Sends a request, and sees to it that it is answered.
    pub(super) fn call<M: Method>(&mut self, Call { request, reply }: Call<M>, lines: &Sender<Queued>) {
        if self.open.len() >= IN_FLIGHT {
            return reply.send(Err(Refusal::Overloaded.into()));
        }
        let id = match self.send(&request, lines) {
            Ok(id) => id,
            Err(refusal) => return reply.send(Err(refusal.into())),
        };
        let answer = |answer: Answer| {
            reply.send(answer.and_then(|result| {
                serde_json::from_str(result.get()).map_err(|error| {
                    let method = M::NAME;
                    Refusal::Unreadable(format!("the core's answer to {method} cannot be read: {error}"))
                        .into()
                })
            }));
        };
        let until = (!UNHURRIED.contains(&M::NAME)).then(|| Instant::now() + self.patience);
        self.open.insert(id, Open { until, answer: Box::new(answer) });
    }

    /// Sends a request to which nobody here waits for an answer. Returns its number.
    pub(super) fn send<M: Method>(&mut self, request: &M, lines: &Sender<Queued>) -> Result<u64, Refusal> {
        #[derive(Serialize)]
        struct Line<'a, M> {
            id: String,
            method: &'static str,
            params: &'a M,
        }
        self.last_id += 1;
        let frame = Line { id: self.last_id.to_string(), method: M::NAME, params: request };
        let mut line = serde_json::to_vec(&frame)
            .map_err(|error| Refusal::Unreadable(format!("{} cannot be written: {error}", M::NAME)))?;
        if line.len() > MAX_REQUEST_LINE {
            return Err(Refusal::TooLong(line.len()));
        }
        line.push(b'\n');
        let share = u32::try_from(line.len()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(share).map_err(|_| Refusal::Overloaded)?;
        // Full if the core does not read. That it is gone will be told in a moment; it has not got this.
        lines.try_send(Queued { line, _room: room }).map_err(|_| Refusal::Overloaded)?;
        Ok(self.last_id)
    }

    /// Hands an answer on. One that comes too late has nobody.
    pub(super) fn answer(&mut self, id: &str, answer: Answer) {
        match id.parse().ok().and_then(|id: u64| self.open.remove(&id)) {
            Some(open) => (open.answer)(answer),
            None => tracing::debug!(id, "the core has answered what nobody waits for"),
        }
    }

    /// The core is gone: everybody is told.
    pub(super) fn fail(&mut self) {
        for open in std::mem::take(&mut self.open).into_values() {
            (open.answer)(Err(Refusal::Ended.into()));
        }
    }

    /// When patience ends for the first time; nothing if nobody waits.
    pub(super) fn next_end(&self) -> Option<Instant> {
        // All are given the same time, so the first that has an end has the nearest one.
        self.open.values().find_map(|open| open.until)
    }

    /// Gives up what has waited for too long.
    pub(super) fn expire(&mut self) {
        let now = Instant::now();
        let late = self.open.extract_if(.., |_, open| open.until.is_some_and(|until| until <= now));
        for open in late.map(|(_, open)| open).collect::<Vec<_>>() {
            (open.answer)(Err(Refusal::Late(self.patience).into()));
        }
    }
}
