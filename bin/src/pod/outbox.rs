//! Stdout: what waits to be printed, bounded, and the thread that prints it.
//!
//! Lines are printed in the order in which the actors produced them. A host that reads slowly is read from slowly:
//! a request is let in while there is room for it, for the requests not answered yet and for the lines that wait.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cofferdam_actors::pod::EventSink;
use cofferdam_protocol::pod::{MAX_RESPONSE_LINE, PodEvent, event_line};

/// How many requests may be in the actors' hands.
const MAX_UNANSWERED: usize = 256;
/// How many bytes unanswered requests and waiting lines may take before no further request is let in.
const MAX_HELD: usize = 8 << 20;
/// How many bytes may wait before only the newest `task.changed` of a task does.
const MERGE_FROM: usize = 256 << 10;
/// How many bytes are printed at once, if there are several lines.
const BATCH: usize = 64 << 10;
/// What a line takes besides its bytes.
const OVERHEAD: usize = 128;

/// What waits to be printed.
#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// A request may be let in.
    room: Condvar,
    /// There is something for the printer to do.
    work: Condvar,
}

#[derive(Default)]
struct State {
    unanswered: usize,
    /// Of unanswered requests, and of their answers where those can be long.
    request_bytes: usize,
    /// Of lines that wait.
    line_bytes: usize,
    /// By number, so in order.
    lines: BTreeMap<u64, Waiting>,
    next: u64,
    /// The newest `task.changed` that waits of each task.
    newest: HashMap<String, u64>,
    /// No request is let in any more.
    ending: bool,
    /// Nobody reads: what would wait is dropped.
    unread: bool,
    /// No line comes any more.
    closed: bool,
}

struct Waiting {
    line: String,
    /// The task that the line says has changed.
    changed: Option<String>,
}

/// A request that was let in. It is answered once at most; without an answer it still makes room when it is dropped.
pub(super) struct Ticket {
    outbox: Arc<Outbox>,
    bytes: usize,
}

impl Ticket {
    /// Says that the answer may be as long as a line can be, so that it takes that much room from now on.
    pub(super) fn expect_long_answer(&mut self) {
        self.bytes += MAX_RESPONSE_LINE;
        self.outbox.state().request_bytes += MAX_RESPONSE_LINE;
    }

    /// Prints the answer.
    pub(super) fn answer(self, line: String) {
        self.outbox.push(line, None);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.outbox.state();
        state.unanswered -= 1;
        state.request_bytes -= self.bytes;
        drop(state);
        self.outbox.room.notify_one();
    }
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for a request of that many bytes. `None` once requests are not let in any more.
    pub(super) fn admit(self: &Arc<Self>, bytes: usize) -> Option<Ticket> {
        let full = |state: &mut State| !state.ending && !state.has_room();
        let mut state = self.room.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        if state.ending {
            return None;
        }
        let bytes = bytes + OVERHEAD;
        state.unanswered += 1;
        state.request_bytes += bytes;
        Some(Ticket { outbox: Arc::clone(self), bytes })
    }

    fn push(&self, line: String, changed: Option<String>) {
        let mut state = self.state();
        if state.unread || state.closed {
            return;
        }
        state.push(line, changed);
        drop(state);
        self.work.notify_one();
    }

    /// Waits for lines, and takes some of them as they are to be printed. `None` once there are none left and none come.
    fn take(&self) -> Option<Vec<u8>> {
        let idle = |state: &mut State| state.lines.is_empty() && !state.closed;
        let mut state = self.work.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
        let batch = state.take();
        drop(state);
        self.room.notify_one();
        batch
    }

    /// Lets no further request in.
    pub(super) fn stop_admitting(&self) {
        self.state().ending = true;
        self.room.notify_all();
    }

    /// Says that nothing more will be printed than what waits.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.work.notify_all();
    }

    /// Drops what waits and what is still to come.
    fn give_up(&self) {
        let mut state = self.state();
        state.unread = true;
        state.lines.clear();
        state.newest.clear();
        state.line_bytes = 0;
        drop(state);
        self.room.notify_one();
    }

    /// Prints until the outbox is closed and empty. If that fails, `failed` hears why, and what else there would be to
    /// print is dropped until then.
    pub(super) fn print(&self, mut out: impl Write, failed: impl FnOnce(io::Error)) {
        let mut failed = Some(failed);
        while let Some(batch) = self.take() {
            if let Err(error) = out.write_all(&batch) {
                self.give_up();
                if let Some(failed) = failed.take() {
                    failed(error);
                }
            }
        }
    }
}

impl EventSink for Outbox {
    fn event(&self, event: PodEvent) {
        let line = event_line(&event);
        self.push(line, event.changed_task().map(str::to_owned));
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.unanswered < MAX_UNANSWERED && self.request_bytes + self.line_bytes < MAX_HELD
    }

    fn push(&mut self, line: String, changed: Option<String>) {
        if let Some(task) = &changed {
            if self.line_bytes >= MERGE_FROM
                && let Some(older) = self.newest.get(task)
                && let Some(older) = self.lines.remove(older)
            {
                self.line_bytes -= older.line.len() + OVERHEAD;
            }
            self.newest.insert(task.clone(), self.next);
        }
        self.line_bytes += line.len() + OVERHEAD;
        self.lines.insert(self.next, Waiting { line, changed });
        self.next += 1;
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let mut batch = Vec::new();
        while let Some(first) = self.lines.first_entry()
            && (batch.is_empty() || batch.len() + first.get().line.len() < BATCH)
        {
            let (number, Waiting { line, changed }) = first.remove_entry();
            self.line_bytes -= line.len() + OVERHEAD;
            if let Some(task) = changed
                && self.newest.get(&task) == Some(&number)
            {
                self.newest.remove(&task);
            }
            batch.extend_from_slice(line.as_bytes());
            batch.push(b'\n');
        }
        (!batch.is_empty()).then_some(batch)
    }
}

#[cfg(test)]
mod tests;
