//! `initialize`, `shutdown`, `health`, `diagnostics.get`: the methods that work without a database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use actix::fut;
use actix::prelude::*;
use cofferdam_protocol::pod::*;
use cofferdam_storage::pod::{ExportPage, Opened, PodDb, Protected, SCHEMA_VERSION};
use tokio::task::spawn_blocking;

use super::batch::Entry;
use super::later::LAST_WAIT;
use super::{Open, State, TaskQueueActor};
use crate::mailbox::Carries;
use crate::pod::Parts;
use crate::pod::call::{Call, Reply};
use crate::pod::failure::Refusal;
use crate::pod::messages::CountLeases;
use crate::pod::queue::verbs::Site;
use crate::pod::queue::{Effects, Queue};

/// How many diagnostics are kept.
const DIAGNOSTICS: usize = 50;
/// The most characters of one: it may repeat what a host has sent.
const DIAGNOSTIC_CHARS: usize = 2000;

impl Handler<Call<Initialize>> for TaskQueueActor {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, Call { request, reply }: Call<Initialize>, ctx: &mut Context<Self>) -> Self::Result {
        let nothing_more = || AtomicResponse::new(Box::pin(fut::ready(())));
        let refusal = match self.open() {
            _ if request.protocol != PROTOCOL_VERSION => Refusal::Protocol(request.protocol),
            Ok(open) if Path::new(&open.db_path) == Path::new(&request.db_path) => {
                open.wants_progress = wants_progress(&request);
                let entry = again(open, reply);
                self.enqueue(entry, ctx);
                return nothing_more();
            }
            Ok(open) => Refusal::BadRequest(format!(
                "dbPath: this sidecar works on {} until it ends; start another one",
                open.db_path
            )),
            Err(Refusal::NotInitialized) if Path::new(&request.db_path).is_absolute() => {
                return self.initialize(request, reply);
            }
            Err(Refusal::NotInitialized) => Refusal::BadRequest(format!(
                "dbPath: {:?} is no absolute path; give the whole path",
                request.db_path
            )),
            Err(refusal) => refusal,
        };
        let entry = self.not_initialized(refusal, reply);
        self.enqueue(entry, ctx);
        nothing_more()
    }
}

impl TaskQueueActor {
    /// Opens the database, while every message waits.
    fn initialize(&mut self, request: Initialize, reply: Reply<Initialized>) -> AtomicResponse<Self, ()> {
        let (parts, now) = (self.parts.clone(), self.now());
        let file = PathBuf::from(&request.db_path);
        let legacy = request.legacy_json_path.as_deref().filter(|path| !path.is_empty()).map(PathBuf::from);
        let work = spawn_blocking(move || take_up(&parts, &file, legacy.as_deref(), now));
        AtomicResponse::new(Box::pin(work.into_actor(self).map(|ready, actor, ctx| {
            // Only a panic or a runtime that shuts down keeps a blocking task from ending.
            let entry = match ready.unwrap_or(Err(Refusal::Panicked)) {
                Ok(ready) => actor.initialized(request, ready, reply),
                Err(refusal) => actor.not_initialized(refusal, reply),
            };
            actor.enqueue(entry, ctx);
        })))
    }

    fn initialized(&mut self, request: Initialize, ready: Ready, reply: Reply<Initialized>) -> Entry {
        let Ready { opened: Opened { db, mut loaded, diagnostics }, exports, site, log } = ready;
        let told = std::mem::take(&mut loaded.diagnostics);
        diagnostics.into_iter().chain(told).for_each(|diagnostic| self.keep(diagnostic));
        if !request.plugin_version.is_empty() && request.plugin_version != CORE_VERSION {
            self.diagnose(
                LogLevel::Warn,
                format!(
                    "the plugin has version {}, this sidecar {CORE_VERSION}; install both of the same release",
                    request.plugin_version
                ),
            );
        }
        let queue = Queue::new(loaded);
        self.parts.logs.set_level(queue.config().log_level);
        tracing::info!(version = CORE_VERSION, database = request.db_path, "initialized");
        let answer = Initialized {
            exports: exports.exports,
            truncated: exports.truncated,
            diagnostics: self.diagnostics.iter().cloned().collect(),
            ..shown(&request.db_path, &queue)
        };
        let log_path = log.map(|path| path.display().to_string()).unwrap_or_default();
        let wants_progress = wants_progress(&request);
        let open = Open::new(request.db_path, log_path, site, queue, db);
        self.state = State::Open(Box::new(Open { wants_progress, ..open }));
        Entry::certain(Ok(answer), reply)
    }

    /// The reason is kept, so that `diagnostics.get` can tell it.
    fn not_initialized(&mut self, refusal: Refusal, reply: Reply<Initialized>) -> Entry {
        self.diagnose(LogLevel::Error, format!("initialize: {refusal}"));
        Entry::certain(Err(refusal), reply)
    }

    /// Closes the database, while every message waits, and answers `shutdown`, and what came after it. Called when
    /// everything is durable. The actor ends then.
    pub(super) fn close(&mut self, ctx: &mut Context<Self>) {
        let State::Open(open) = &mut self.state else { return };
        let Some(db) = open.db.take() else { return };
        let work = spawn_blocking(move || db.close());
        ctx.wait(work.into_actor(self).map(|closed, actor, ctx| {
            // Whatever was answered is durable; the next start takes it from the log.
            if let Ok(Err(error)) = closed {
                tracing::warn!(%error, "the database could not be closed properly");
            }
            if let State::Open(open) = std::mem::replace(&mut actor.state, State::Stopped) {
                open.closing.into_iter().for_each(|entry| actor.settle(entry, ctx));
            }
            ctx.stop();
        }));
    }

    /// Something that a person should know.
    pub(super) fn diagnose(&mut self, level: LogLevel, message: String) {
        let at = self.now();
        self.keep(Diagnostic { at, level, message });
    }

    fn keep(&mut self, Diagnostic { at, level, message }: Diagnostic) {
        let message = cut(&message, DIAGNOSTIC_CHARS).to_owned();
        match level {
            LogLevel::Error => tracing::error!("{message}"),
            LogLevel::Warn => tracing::warn!("{message}"),
            _ => tracing::info!("{message}"),
        }
        if self.diagnostics.len() == DIAGNOSTICS {
            self.diagnostics.pop_front();
        }
        self.diagnostics.push_back(Diagnostic { at, level, message });
    }

    fn health(&self) -> HealthReport {
        HealthReport {
            protocol: PROTOCOL_VERSION,
            schema_version: SCHEMA_VERSION,
            core_version: CORE_VERSION.to_owned(),
            pid: std::process::id(),
            initialized: matches!(self.state, State::Open(_)),
        }
    }

    fn report(&self, leases: usize, db_size_bytes: u64, exports: usize) -> DiagnosticsReport {
        let mut tasks: BTreeMap<_, _> =
            TaskStatus::ALL.map(|status| (status.as_str().to_owned(), 0)).into_iter().collect();
        let open = match &self.state {
            State::Open(open) => Some(open),
            State::Closed | State::Stopped => None,
        };
        for task in open.iter().flat_map(|open| open.queue.all()) {
            *tasks.entry(task.summary.status.as_str().to_owned()).or_default() += 1;
        }
        let queue = open.map(|open| QueueCounts {
            length: open.queue.waiting(),
            running: open.queue.active(),
            max: usize::try_from(open.queue.config().max_concurrent).unwrap_or(0),
        });
        let uptime = self.parts.clock.monotonic().saturating_sub(self.started);
        DiagnosticsReport {
            health: self.health(),
            db_path: open.map(|open| open.db_path.clone()).unwrap_or_default(),
            db_size_bytes,
            counts: Counts { tasks, exports, leases },
            queue: queue.unwrap_or_default(),
            config: open.map(|open| open.queue.config().clone()),
            uptime_ms: u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX),
            log_path: open.map(|open| open.log_path.clone()).unwrap_or_default(),
            diagnostics: self.diagnostics.iter().cloned().collect(),
        }
    }
}

impl Handler<Call<Shutdown>> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, Call { reply, .. }: Call<Shutdown>, ctx: &mut Context<Self>) {
        let done = |reply| Entry::certain(Ok(Done { ok: true }), reply);
        match &mut self.state {
            State::Open(open) if open.closing.is_empty() => {
                open.closing.push(done(reply));
                ctx.run_later(LAST_WAIT, |actor, ctx| {
                    if let State::Open(open) = &mut actor.state {
                        open.impatient = true;
                        actor.flush(ctx);
                    }
                });
                self.flush(ctx);
            }
            State::Closed => {
                self.state = State::Stopped;
                self.settle(done(reply), ctx);
                ctx.stop();
            }
            State::Open(_) | State::Stopped => self.refuse(Refusal::Stopping, reply, ctx),
        }
    }
}

impl Handler<Call<Health>> for TaskQueueActor {
    type Result = ();

    fn handle(&mut self, Call { reply, .. }: Call<Health>, ctx: &mut Context<Self>) {
        let answer = match self.open() {
            Err(Refusal::Stopping) => Err(Refusal::Stopping),
            _ => Ok(self.health()),
        };
        self.enqueue(Entry::certain(answer, reply), ctx);
    }
}

impl Handler<Call<DiagnosticsGet>> for TaskQueueActor {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, Call { reply, .. }: Call<DiagnosticsGet>, _: &mut Context<Self>) -> Self::Result {
        let leases = self.leases.recipient().send(CountLeases);
        AtomicResponse::new(Box::pin(leases.into_actor(self).map(|leases, actor, ctx| {
            let leases = leases.unwrap_or(0);
            let entry = match actor.open() {
                Err(Refusal::Stopping) => Entry::certain(Err(Refusal::Stopping), reply),
                // Of a database that cannot be asked it says what it can.
                _ => Entry::reading(
                    Effects::default(),
                    |db| (db.size(), db.export_count()),
                    move |found, _, actor| {
                        let (size, exports) = found.unwrap_or((0, Ok(0)));
                        let exports = exports.unwrap_or_else(|error| {
                            actor.diagnose(LogLevel::Error, format!("exports cannot be counted: {error}"));
                            0
                        });
                        reply.send(Ok(actor.report(leases, size, exports)));
                    },
                ),
            };
            actor.enqueue(entry, ctx);
        })))
    }
}

/// A database that is open, and what else `initialize` has found.
struct Ready {
    opened: Opened,
    exports: ExportRows,
    site: Site,
    log: Option<PathBuf>,
}

fn take_up(parts: &Parts, file: &Path, legacy: Option<&Path>, now: i64) -> Result<Ready, Refusal> {
    let protected = Protected::new(&parts.surroundings, file);
    let mut opened = PodDb::open(&parts.disk, file, legacy, &protected, now)?;
    let exports = opened.db.exports(&ExportPage::all())?;
    let log = parts.logs.open_beside(file);
    Ok(Ready { opened, exports, site: Site { disk: parts.disk.clone(), protected }, log })
}

/// Whether the host asks for what only this protocol's extension says.
fn wants_progress(request: &Initialize) -> bool {
    request.features.iter().flatten().any(|feature| feature == "export.progress")
}

/// The answer to an `initialize` after the first: what is there now, and nothing is done again.
fn again(open: &Open, reply: Reply<Initialized>) -> Entry {
    let answer = shown(&open.db_path, &open.queue);
    let exports = |db: &mut PodDb| db.exports(&ExportPage::all());
    Entry::reading(Effects::default(), exports, move |exports, saved, actor| {
        reply.send(saved.and_then(|()| {
            let ExportRows { exports, truncated, .. } =
                exports.ok_or(Refusal::Panicked)?.map_err(Refusal::Storage)?;
            let diagnostics = actor.diagnostics.iter().cloned().collect();
            Ok(Initialized { exports, truncated, diagnostics, ..answer })
        }));
    })
}

/// What memory has for the answer to `initialize`.
fn shown(db_path: &str, queue: &Queue) -> Initialized {
    Initialized {
        protocol: PROTOCOL_VERSION,
        core_version: CORE_VERSION.to_owned(),
        schema_version: SCHEMA_VERSION,
        db_path: db_path.to_owned(),
        config: queue.config().clone(),
        tasks: queue.list(),
        exports: Vec::new(),
        diagnostics: Vec::new(),
        truncated: false,
    }
}
