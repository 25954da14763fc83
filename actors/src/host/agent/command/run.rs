//! One supervisor, from its start to its end: what its program prints is read, and answered if it wants that, what it reports is
//! heard, and it is told to end when that is wanted.

use std::collections::BTreeMap;
use std::io::{self, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use cofferdam_storage::disk::Disk;
use cofferdam_storage::sandbox::{
    CANCEL, Launched, Layer, LayerState, Order, ProbeReport, Report, Stdio, launch, take_copies_away,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Sleep, sleep};

use super::output::{Output, Printed};
use super::texts::Tail;
use crate::host::agent::AgentEvent;

/// How long a program may take to end after TERM.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How long a supervisor may take after that, or if nobody waits for the program, to end everything.
const ENDING: Duration = Duration::from_secs(3);
/// How long it may take to remove what a program has left that ended by itself.
const CLEANING: Duration = Duration::from_secs(60);
/// How many answers a program may leave unread.
const UNREAD: usize = 256;
/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// What is run.
pub(super) struct Job {
    /// The program that is a supervisor.
    pub(super) supervisor: PathBuf,
    pub(super) order: Order,
    /// What the order's home files hold; those that are wanted back hold what they have become when it is over.
    pub(super) files: Vec<OwnedFd>,
    /// What the program reads first.
    pub(super) input: String,
    /// What becomes of what it prints.
    pub(super) output: Output,
    /// How many times faster than the machine's the clock runs.
    pub(super) faster: u32,
}

/// What is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Go on.
    Work,
    /// End the program, with grace.
    Cancel,
    /// End everything; nobody listens any more.
    Dispose,
}

/// What came of it. Nothing runs any more, unless [`Ran::left`] says so.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// The layers that were set up.
    pub(super) layers: Vec<LayerState>,
    /// What the test found.
    pub(super) probe: Option<ProbeReport>,
    /// Exit code and signal of the program, if it has run.
    pub(super) exited: Option<(Option<i32>, Option<i32>)>,
    /// The home files that were wanted back, each with why it is not there if it is not.
    pub(super) returned: BTreeMap<PathBuf, Option<String>>,
    /// Why nothing ran, or something is left of it.
    pub(super) failure: Option<String>,
    /// The end of what it complained about.
    pub(super) errors: String,
    /// How its turn ended, as it printed that.
    pub(super) printed: Printed,
    /// Whether it was told to end before it had ended.
    pub(super) cancelled: bool,
    /// Whether its supervisor had to be killed.
    killed: bool,
    /// Whether somebody held what it prints to after that.
    held: bool,
}

impl Ran {
    fn hear(&mut self, report: Report, wanted: Wanted) {
        match report {
            Report::Ready { layers } => self.layers = layers,
            Report::Probe(probe) => self.probe = Some(probe),
            Report::Started => {}
            Report::Exited { code, signal } => {
                self.exited = Some((code, signal));
                self.cancelled = wanted != Wanted::Work;
            }
            Report::Returned { path, problem } => drop(self.returned.insert(path, problem)),
            Report::Failed { message } => self.failure = Some(message),
        }
    }

    /// What of it is left though its program has ended, or was ended, for people; nothing if all is gone.
    pub(super) fn left(&self) -> Option<String> {
        let namespace = self.layers.iter().any(|state| state.layer == Layer::PidNamespace && state.holds);
        match &self.failure {
            Some(failure) if self.exited.is_some() => Some(format!("the program has ended, and {failure}")),
            _ if !self.killed => None,
            _ if namespace && !self.held => Some(
                "the sandbox's supervisor did not end in time, and was killed; what it could not remove goes before the \
                 next turn"
                    .to_owned(),
            ),
            _ => Some(
                "the sandbox's supervisor did not end in time, and was killed; programs that the task has started may \
                 still run and change its files: look for them (ps), and end them before you go on"
                    .to_owned(),
            ),
        }
    }
}

/// Runs it; returns when it is over: everything that was started is gone, or could not be ended. `said` takes what the task is
/// told.
pub(super) async fn run(
    job: Job,
    wanted: watch::Receiver<Wanted>,
    said: impl AsyncFn(AgentEvent),
) -> io::Result<Ran> {
    let (input, to_program) = pipe()?;
    let (from_program, output) = pipe()?;
    let (complaints, error) = pipe()?;
    let Job { supervisor, order, files, input: text, output: printed, faster } = job;
    let stdio = Stdio { input: input.into(), output: output.into(), error: error.into() };
    let copies = order.kept_home.clone().map(|home| (order.private_parent.clone(), home));
    let launched = spawn_blocking(move || {
        let Launched { supervisor, link } = launch(Command::new(supervisor), &order, stdio, &files)?;
        Ok::<_, io::Error>((Supervisor(Some(supervisor)), link))
    });
    let (supervisor, link) = launched.await.map_err(io::Error::other)??;
    link.set_nonblocking(true)?;
    let course = Course {
        supervisor,
        copies,
        link: UnixStream::from_std(link)?,
        output: pipe::Receiver::from_owned_fd(from_program.into())?,
        errors: pipe::Receiver::from_owned_fd(complaints.into())?,
        printed,
        wanted,
        faster,
    };
    let (answers, given) = mpsc::channel(UNREAD);
    let fed = feed(pipe::Sender::from_owned_fd(to_program.into())?, text, given);
    course.follow(Some(answers), fed, said).await
}

/// Writes what the program reads, and ends that. One that does not read it is not waited for.
async fn feed(mut to: pipe::Sender, text: String, mut given: mpsc::Receiver<String>) {
    let mut next = Some(text);
    while let Some(text) = next {
        if to.write_all(text.as_bytes()).await.is_err() {
            return;
        }
        next = given.recv().await;
    }
}

/// Hands on what the program is to read; ends it when there will be nothing more.
fn answer(output: &mut Output, answers: &mut Option<mpsc::Sender<String>>) {
    while let Some(to) = answers
        && let Some(text) = output.answer()
    {
        // A program that does not read what it asked for goes without.
        let _ = to.try_send(text);
    }
    if !output.is_listened_to() {
        *answers = None;
    }
}

/// A supervisor, which is waited for also if nobody follows its course any more: it ends, since its link does, and must not stay
/// as a zombie for the life of whatever this is part of.
struct Supervisor(Option<Child>);

impl Supervisor {
    /// Has it killed.
    fn kill(&self) {
        let Some(supervisor) = &self.0 else { return };
        tracing::warn!(pid = supervisor.id(), "a task's supervisor did not end in time, and is killed");
        // Not waited for yet, so that the number is its own.
        let _ = kill_process(Pid::from_child(supervisor), Signal::KILL);
    }

    /// Waits for its end; whether it was killed.
    async fn wait(mut self) -> io::Result<bool> {
        let Some(mut supervisor) = self.0.take() else { return Ok(false) };
        let ended = spawn_blocking(move || supervisor.wait()).await.map_err(io::Error::other)??;
        Ok(ended.signal().is_some())
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(mut supervisor) = self.0.take() {
            // Not in the runtime, which may be ending, and would wait.
            thread::spawn(move || supervisor.wait());
        }
    }
}

struct Course {
    supervisor: Supervisor,
    /// Where private directories are made, and the home that is kept, in which a killed supervisor leaves copies.
    copies: Option<(PathBuf, PathBuf)>,
    link: UnixStream,
    output: pipe::Receiver,
    errors: pipe::Receiver,
    printed: Output,
    wanted: watch::Receiver<Wanted>,
    faster: u32,
}

impl Course {
    async fn follow(
        self,
        mut answers: Option<mpsc::Sender<String>>,
        fed: impl Future<Output = ()>,
        said: impl AsyncFn(AgentEvent),
    ) -> io::Result<Ran> {
        let Self { supervisor, copies, link, output, errors, mut printed, mut wanted, faster } = self;
        let real = |span: Duration| span / faster.max(1);
        let (reports, mut commands) = link.into_split();
        let mut reports = BufReader::new(reports).lines();
        let (mut ran, mut tail) = (Ran::default(), Tail::default());
        // What is over: the supervisor, both streams of the program, what it is fed, and whoever wants something.
        let (mut gone, mut silent, mut content, mut full, mut alone) = (false, false, false, false, false);
        let mut chunk = vec![0; CHUNK];
        let (mut limit, mut patience) = (Limit::none(), Limit::none());
        let mut pause = Box::pin(sleep(printed.pause()));
        let mut over = false;
        let mut fed = std::pin::pin!(fed);
        answer(&mut printed, &mut answers);
        while !(gone && silent && content) {
            tokio::select! {
                line = reports.next_line(), if !gone => match line {
                    Ok(Some(line)) => {
                        let exited = ran.exited.is_some();
                        if let Ok(report) = serde_json::from_str(&line) {
                            ran.hear(report, *wanted.borrow());
                        }
                        if ran.exited.is_some() && !exited && *wanted.borrow() != Wanted::Dispose {
                            // However little time was left to end the program: what is done now is worth the time.
                            limit = Limit::after(real(CLEANING));
                            said(AgentEvent::Exited).await;
                        } else if ran.failure.is_some() {
                            limit.sooner(real(CLEANING));
                        }
                    }
                    // It is gone, and all that it had started: nobody can print anything more.
                    Ok(None) | Err(_) => {
                        gone = true;
                        limit = Limit::after(real(ENDING));
                    }
                },
                // Once everything is gone, there is at most what a pipe holds.
                _ = output.readable(), if !silent && (gone || !printed.is_full()) => {
                    let waited = printed.is_ready();
                    let mut bytes = Vec::new();
                    silent = read(&output, &mut chunk, |read| bytes.extend_from_slice(read));
                    (printed, tail) = apart(printed, tail, move |printed, tail| printed.push(&bytes, tail)).await?;
                    if !waited {
                        pause.as_mut().reset(Instant::now() + printed.pause());
                    }
                    answer(&mut printed, &mut answers);
                    if let Some(span) = printed.is_over()
                        && !over
                    {
                        over = true;
                        patience.sooner(real(span));
                    }
                }
                _ = errors.readable(), if !content => content = read(&errors, &mut chunk, |bytes| tail.push(bytes)),
                () = pause.as_mut(), if printed.is_ready() => {
                    for event in printed.take() {
                        if *wanted.borrow() != Wanted::Dispose {
                            said(event).await;
                        }
                    }
                    pause.as_mut().reset(Instant::now() + printed.pause());
                }
                changed = wanted.changed(), if !alone && !gone => {
                    alone = changed.is_err();
                    let what = if alone { Wanted::Dispose } else { *wanted.borrow_and_update() };
                    // One that does not hear it is killed when its time is up.
                    match what {
                        Wanted::Work => {}
                        Wanted::Cancel => {
                            patience.sooner(real(printed.interrupt()));
                            answer(&mut printed, &mut answers);
                        }
                        Wanted::Dispose => {
                            let _ = commands.shutdown().await;
                            limit.sooner(real(ENDING));
                        }
                    }
                }
                () = patience.over(), if !gone && ran.exited.is_none() => {
                    patience = Limit::none();
                    let _ = commands.write_all(format!("{CANCEL}\n").as_bytes()).await;
                    limit.sooner(real(GRACE + ENDING));
                }
                () = fed.as_mut(), if !full => full = true,
                () = limit.over() => match gone {
                    false => {
                        supervisor.kill();
                        ran.killed = true;
                        limit = Limit::after(real(ENDING));
                        gone = true;
                    }
                    true => {
                        ran.held = true;
                        break;
                    }
                },
            }
        }
        (printed, tail) = apart(printed, tail, Output::finish).await?;
        while let Some(event) = printed.take_last() {
            if *wanted.borrow() != Wanted::Dispose {
                said(event).await;
            }
        }
        if supervisor.wait().await?
            && let Some((private, home)) = copies
        {
            // What it would have taken away itself would be in the next checkpoint.
            let taken = spawn_blocking(move || take_copies_away(&Disk::default(), &private, &home));
            if let Err(error) = taken.await.map_err(io::Error::other)? {
                tracing::warn!(%error, "what a killed supervisor has copied into a home that is kept is left there");
            }
        }
        ran.errors = tail.text();
        ran.printed = printed.printed();
        ran.cancelled |= ran.exited.is_none() && *wanted.borrow() != Wanted::Work;
        if let Some(left) = ran.left() {
            tracing::warn!("{left}");
        }
        Ok(ran)
    }
}

/// Hears what was printed beside the actors' thread: what a line holds can take long to be read, and say nothing.
async fn apart(
    mut printed: Output,
    mut tail: Tail,
    hear: impl FnOnce(&mut Output, &mut Tail) + Send + 'static,
) -> io::Result<(Output, Tail)> {
    let heard = spawn_blocking(move || {
        hear(&mut printed, &mut tail);
        (printed, tail)
    });
    heard.await.map_err(io::Error::other)
}

/// Reads what there is. Whether it is over.
fn read(from: &pipe::Receiver, chunk: &mut [u8], take: impl FnOnce(&[u8])) -> bool {
    match from.try_read(chunk) {
        Ok(0) => true,
        Ok(count) => {
            take(&chunk[..count]);
            false
        }
        Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}

/// Until when something has to be over, if that is known.
struct Limit(Option<Pin<Box<Sleep>>>);

impl Limit {
    fn none() -> Self {
        Self(None)
    }

    fn after(span: Duration) -> Self {
        Self(Some(Box::pin(sleep(span))))
    }

    /// Sets it, unless it is earlier already.
    fn sooner(&mut self, span: Duration) {
        let new = Instant::now() + span;
        if self.0.as_ref().is_none_or(|limit| limit.deadline() > new) {
            *self = Self::after(span);
        }
    }

    async fn over(&mut self) {
        match &mut self.0 {
            Some(limit) => limit.as_mut().await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
