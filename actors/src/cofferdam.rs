//! The whole of Cofferdam as one value: started, used from any thread or task, and stopped.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use actix::{ArbiterHandle, System};
use cofferdam_storage::ckpt::{Backend, Error};
use cofferdam_storage::clock::{Clock, SystemClock};
use cofferdam_storage::session::config::Places;
use tokio::sync::oneshot;

use crate::ckpt::{self, Ckpt, ConfigFile, ConfigSource, Installation, Parts};
use crate::host::{self, Host};
use crate::session::{self, Sessions};

/// A running Cofferdam: its actors live on a thread of their own, with an actix system of their own, so that it can
/// be started from anywhere, several times, and beside another one. Dropping it stops it.
#[derive(Debug)]
pub struct Cofferdam {
    ckpt: Ckpt,
    sessions: Sessions,
    host: Option<Host>,
    arbiter: ArbiterHandle,
    /// Dropped to stop.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What to start.
pub struct Builder {
    backend: Option<Arc<dyn Backend>>,
    config: Arc<dyn ConfigSource>,
    installation: Installation,
    clock: Arc<dyn Clock>,
    sessions: session::Parts,
    pods: Option<Box<dyn FnOnce() -> host::Parts + Send>>,
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nothing to keep snapshots in.
    #[error("no snapshot engine: give the builder a backend")]
    NoBackend,
    /// The engine cannot say what workspaces there are.
    #[error(transparent)]
    Backend(#[from] Error),
    /// The thread ended before it was ready.
    #[error("the actors' thread cannot be started: {0}")]
    Thread(String),
}

impl Cofferdam {
    /// A Cofferdam to be.
    pub fn builder() -> Builder {
        Builder {
            backend: None,
            config: Arc::new(ConfigFile(None)),
            installation: Installation::default(),
            clock: Arc::new(SystemClock::new()),
            sessions: session::Parts::new(Places::default()),
            pods: None,
        }
    }

    /// The way to the checkpoint actors, from any thread.
    pub fn ckpt(&self) -> Ckpt {
        self.ckpt.clone()
    }

    /// The way to the session actors, from any thread.
    pub fn sessions(&self) -> Sessions {
        self.sessions.clone()
    }

    /// The way to the host of isolation pods, from any thread; nothing if none was asked for.
    pub fn host(&self) -> Option<Host> {
        self.host.clone()
    }

    /// Runs a future, such as an adapter, on the actors' own thread. What it returns comes out of the receiver,
    /// which fails if the actors stop first.
    pub fn run<F, Fut>(&self, make: F) -> oneshot::Receiver<Fut::Output>
    where
        F: FnOnce(Ckpt) -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let ckpt = self.ckpt.clone();
        self.arbiter.spawn_fn(move || {
            actix::spawn(async move {
                // Whoever asked may not care any more.
                let _ = sender.send(make(ckpt).await);
            });
        });
        receiver
    }

    /// Ends agents and keeps what was heard of them, which takes 10 s at most; then stops the actors, waits for whatever is
    /// being done to a disk, and lets go of the engine. Requests that wait are answered with an error.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Cofferdam {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            // Stopped from within, the thread ends by itself.
            && thread.thread().id() != thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the actors' thread panicked");
        }
    }
}

impl Builder {
    /// The snapshot engine.
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Where settings come from; without this, the defaults.
    pub fn config(mut self, source: impl ConfigSource) -> Self {
        self.config = Arc::new(source);
        self
    }

    /// What only the command line decides.
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = installation;
        self
    }

    /// What the session actors work with; without this, no settings but those of each workspace, and no home directory.
    pub fn sessions(mut self, parts: session::Parts) -> Self {
        self.sessions = parts;
        self
    }

    /// Hosts isolation pods, too. What the host works with is made on the actors' thread, where whoever runs agents can be started.
    pub fn pods(mut self, parts: impl FnOnce() -> host::Parts + Send + 'static) -> Self {
        self.pods = Some(Box::new(parts));
        self
    }

    /// Another clock than the machine's for the checkpoint actors.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Starts the thread and the actors, and returns when they take requests. Blocks; inside a tokio task, call it
    /// through `spawn_blocking`.
    pub fn start(self) -> Result<Cofferdam, StartError> {
        let parts = Parts {
            backend: self.backend.ok_or(StartError::NoBackend)?,
            config: self.config,
            installation: self.installation,
            clock: self.clock,
        };
        let (sessions, pods) = (self.sessions, self.pods);
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("cofferdam".to_owned())
            .spawn(move || {
                System::new().block_on(async move {
                    let started = ckpt::start(parts).await;
                    let started = started.map(|ckpt| {
                        let sessions = session::start(sessions);
                        let host = pods.map(|parts| host::start(parts(), sessions.clone(), &ckpt));
                        (ckpt, sessions, host, actix::Arbiter::current())
                    });
                    let running = started.is_ok();
                    let host = started.as_ref().ok().and_then(|(_, _, host, _)| host.clone());
                    // Resolves with an error, which is the sign, when the `Cofferdam` is dropped.
                    if ready.send(started).is_ok() && running {
                        let _ = stopped.await;
                        if let Some(host) = host {
                            host.end_agents().await;
                        }
                    }
                });
            })
            .map_err(|error| StartError::Thread(error.to_string()))?;
        match started.recv() {
            Ok(Ok((ckpt, sessions, host, arbiter))) => {
                Ok(Cofferdam { ckpt, sessions, host, arbiter, stop: Some(stop), thread: Some(thread) })
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(StartError::Thread("it ended at once".to_owned())),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("installation", &self.installation).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
