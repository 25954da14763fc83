//! A task for each process of the sidecar: starts it, writes to it, listens to it, and sees to its end.

use std::pin::pin;
use std::time::Duration;

use actix::WeakAddr;
use cofferdam_protocol::pod::{Line, LineReader, MAX_RESPONSE_LINE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::SidecarParts;
use super::calls::Queued;
use super::child::{Child, LINGER, Process};
use super::client::{Heard, Notice, SidecarClient, What};
use super::frame;
use super::tail::Tail;

/// How long what it said may still be on its way when it has ended: something it started may hold its output open.
const AFTERMATH: Duration = Duration::from_secs(1);

/// What the client says to the task. If it is dropped, the process is ended.
pub(super) struct Orders {
    /// What is to be written. When there can be no more, the process's input ends.
    pub(super) lines: mpsc::Receiver<Queued>,
    /// How long the process may take to end, from now on.
    pub(super) ending: oneshot::Receiver<Duration>,
}

/// Where the task says what it sees. It does not keep the client alive.
#[derive(Clone)]
pub(super) struct Report {
    pub(super) start: u64,
    pub(super) client: WeakAddr<SidecarClient>,
}

impl Report {
    /// Says what becomes of the process.
    pub(super) fn say(&self, what: What) {
        if let Some(client) = self.client.upgrade() {
            // Nothing of this may be lost.
            client.do_send(Notice { start: self.start, what });
        }
    }

    /// Hands a frame on and waits until it is taken, so that the process is not read faster than that.
    async fn hand(&self, frame: frame::Frame) {
        if let Some(client) = self.client.upgrade() {
            let _ = client.send(Heard { start: self.start, frame }).await;
        }
    }
}

/// From the process's beginning to its end, which is the last thing that is said.
pub(super) async fn attend(parts: SidecarParts, orders: Orders, tail: Tail, report: Report) {
    let path = parts.program.display().to_string();
    let child = match spawn_blocking(move || Child::start(&parts.program, parts.state_dir.as_deref())).await {
        Ok(Ok(child)) => child,
        Ok(Err(error)) => return report.say(What::Gone(format!("{path} cannot be started: {error}"))),
        // Only a panic or a runtime that shuts down keeps a blocking task from ending.
        Err(_) => return report.say(What::Gone(format!("{path} cannot be started; the log says more"))),
    };
    // The process is first, so that it is dropped last.
    let Child { mut process, stdin, stdout, stderr } = child;
    report.say(What::Runs(process.pid()));
    let (deafen, deaf) = oneshot::channel();
    let listening = async {
        let hearing = async {
            // The other end waits, but where the process has ended already.
            let _ = deafen.send(listen(stdout, &report).await);
        };
        tokio::join!(hearing, tail.follow(stderr));
    };
    let how = {
        let (mut living, mut listening) = (pin!(live(&mut process, orders.ending, deaf)), pin!(listening));
        let mut writing = pin!(write(stdin, orders.lines));
        let (mut listens, mut writes) = (true, true);
        let how = loop {
            tokio::select! {
                how = &mut living => break how,
                () = &mut listening, if listens => listens = false,
                () = &mut writing, if writes => writes = false,
            }
        };
        if listens {
            let _ = timeout(AFTERMATH, listening).await;
        }
        how
    };
    report.say(What::Gone(how));
}

/// Why nothing more is heard.
enum Deaf {
    /// The process has closed its output, or has ended.
    Closed,
    /// It does not speak the protocol.
    Broken(String),
}

/// Waits for the process's end, and brings it about if it is told to or if the process is of no use. Says how it ended.
async fn live(
    process: &mut Process,
    ending: oneshot::Receiver<Duration>,
    deaf: oneshot::Receiver<Deaf>,
) -> String {
    tokio::select! {
        how = process.ended() => how,
        // Dropped if the client is gone.
        patience = ending => process.end_within(patience.unwrap_or(LINGER)).await.0,
        deaf = deaf => match deaf.unwrap_or(Deaf::Closed) {
            Deaf::Broken(why) => {
                tracing::error!(why, "the core is broken and is killed");
                process.end_within(Duration::ZERO).await;
                why
            }
            Deaf::Closed => match process.end_within(AFTERMATH).await {
                (how, true) => how,
                (_, false) => "it has closed its output".to_owned(),
            },
        },
    }
}

/// Writes until there is nothing more to write, or nobody who reads; its input is closed then.
async fn write(mut stdin: pipe::Sender, mut lines: mpsc::Receiver<Queued>) {
    while let Some(queued) = lines.recv().await {
        if let Err(error) = stdin.write_all(&queued.line).await {
            // Its end is noticed elsewhere.
            return tracing::debug!(%error, "the core does not read any more");
        }
    }
}

/// Hands on what it says, until it says nothing more.
async fn listen(mut stdout: pipe::Receiver, report: &Report) -> Deaf {
    let too_long = || Deaf::Broken(format!("it has printed a line of more than {MAX_RESPONSE_LINE} bytes"));
    let (mut reader, mut chunk) = (LineReader::new(MAX_RESPONSE_LINE), vec![0; 64 << 10]);
    // Since the last newline.
    let mut unfinished = 0;
    // What comes without newline before the end was cut off; nobody can say what it was.
    while let Ok(read @ 1..) = stdout.read(&mut chunk).await {
        let bytes = &chunk[..read];
        unfinished = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => read - newline - 1,
            None => unfinished + read,
        };
        let mut lines = Vec::new();
        reader.feed(bytes, |line| lines.push(line));
        for line in lines {
            let Line::Whole(line) = line else { return too_long() };
            match frame::read(&line) {
                Ok(Some(frame)) => report.hand(frame).await,
                Ok(None) => {}
                Err(why) => return Deaf::Broken(why),
            }
        }
        // The carriage return of a newline may still be among them.
        if unfinished > MAX_RESPONSE_LINE + 1 {
            return too_long();
        }
    }
    Deaf::Closed
}
