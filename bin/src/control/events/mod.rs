//! What the daemon says unasked, as a client hears it: `GET /api/v1/events`.

mod parse;

use std::time::Duration;

use bytes::Bytes;
use cofferdam_protocol::host::{HostEvent, HostMethod};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::client::{ControlClient, ControlError, protocol, request};
use parse::{EventText, Said};

/// A client that listens. From when it is made on, SIGINT does not end the process but the wait for the next event.
pub(crate) struct Listener {
    client: ControlClient,
    /// Of the route, with its query.
    path: String,
    runtime: Runtime,
    interrupts: Signal,
    /// Nothing while there is no connection.
    body: Option<Incoming>,
    text: EventText,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The daemon says something. What it said and nobody could read counts as [`HostEvent::Lost`].
    Event(HostEvent),
    /// The connection is over.
    Ended,
    /// Somebody wants this to end.
    Interrupted,
}

/// What became of waiting for an answer.
#[derive(Debug)]
pub(crate) enum Answered<T> {
    /// It came.
    Answer(T),
    /// Somebody did not want to wait any longer.
    Interrupted,
}

impl Listener {
    /// Listens from now on; for a main session and its working directory too, if one is named.
    pub(crate) fn open(client: &ControlClient, main: Option<(&str, &str)>) -> Result<Self, ControlError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| client.unreachable(error))?;
        let interrupts = {
            let _context = runtime.enter();
            signal(SignalKind::interrupt()).map_err(protocol)?
        };
        let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let path = match main {
            None => "/events".to_owned(),
            Some((session, cwd)) => {
                format!("/events?sessionId={}&cwd={}", encoded(session), encoded(cwd))
            }
        };
        let client = client.clone();
        let (body, text) = (None, EventText::default());
        let mut listener = Self { client, path, runtime, interrupts, body, text };
        listener.reopen()?;
        Ok(listener)
    }

    /// Listens anew, after the connection was over.
    pub(crate) fn reopen(&mut self) -> Result<(), ControlError> {
        (self.text, self.body) = (EventText::default(), None);
        let request = request(Method::GET, &self.path, Bytes::new()).map_err(protocol)?;
        let connecting = connect(&self.client, request);
        self.body = Some(self.runtime.block_on(self.client.in_time(connecting))?);
        Ok(())
    }

    /// Waits for what comes next.
    pub(crate) fn hear(&mut self) -> Heard {
        let Self { runtime, interrupts, body, text, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupts.recv() => Heard::Interrupted,
                next = next(body, text) => next.map_or(Heard::Ended, Heard::Event),
            }
        })
    }

    /// Whether anything was heard since the last time it began to listen.
    pub(crate) fn has_heard(&self) -> bool {
        self.text.is_alive()
    }

    /// Waits that long; `false` if somebody wants this to end.
    pub(crate) fn pause(&mut self, time: Duration) -> bool {
        let Self { runtime, interrupts, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupts.recv() => false,
                () = tokio::time::sleep(time) => true,
            }
        })
    }

    /// Asks the host for something. What the daemon says meanwhile is heard afterwards.
    pub(crate) fn ask<M: HostMethod>(&mut self, method: &M) -> Answered<Result<M::Document, ControlError>> {
        let Self { client, runtime, interrupts, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupts.recv() => Answered::Interrupted,
                answer = client.host_async(method) => Answered::Answer(answer),
            }
        })
    }

    /// Asks the host for something, and hands on what the daemon says meanwhile.
    pub(crate) fn ask_hearing<M: HostMethod>(
        &mut self,
        method: &M,
        mut said: impl FnMut(&HostEvent),
    ) -> Answered<Result<M::Document, ControlError>> {
        let Self { client, runtime, interrupts, body, text, .. } = self;
        runtime.block_on(async {
            let answer = client.host_async(method);
            tokio::pin!(answer);
            loop {
                tokio::select! {
                    biased;
                    _ = interrupts.recv() => return Answered::Interrupted,
                    answer = &mut answer => return Answered::Answer(answer),
                    next = next(body, text), if body.is_some() => {
                        if let Some(event) = next {
                            said(&event);
                        }
                    }
                }
            }
        })
    }
}

/// The body of the stream's answer. The connection goes on as long as the runtime does.
async fn connect(
    client: &ControlClient,
    request: Request<http_body_util::Full<Bytes>>,
) -> Result<Incoming, ControlError> {
    let stream = UnixStream::connect(client.path()).await.map_err(|error| client.unreachable(error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(protocol)?;
    // How it ends, the body says.
    drop(tokio::spawn(async move { drop(connection.await) }));
    let response = sender.send_request(request).await.map_err(protocol)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response.into_body());
    }
    Err(super::client::refusal(status, &super::client::whole(response.into_body()).await?))
}

/// The next event; nothing if the connection is over.
async fn next(body: &mut Option<Incoming>, text: &mut EventText) -> Option<HostEvent> {
    loop {
        match text.pop() {
            Some(Said::Event(json)) => return Some(serde_json::from_str(&json).unwrap_or(HostEvent::Lost)),
            Some(Said::Skipped) => return Some(HostEvent::Lost),
            None => {}
        }
        match body.as_mut()?.frame().await {
            Some(Ok(frame)) => {
                if let Some(chunk) = frame.data_ref() {
                    text.push(chunk);
                }
            }
            Some(Err(_)) | None => *body = None,
        }
    }
}
