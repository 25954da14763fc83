//! What the host says unasked, as server-sent events.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use actix_web::http::header::CACHE_CONTROL;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Bytes, Data, Query};
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use cofferdam_actors::host::{Host, HostRefusal, MainSession, Subscribe};
use cofferdam_protocol::host::HostEvent;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::access::OverTcp;
use crate::api::Endpoint;
use crate::caller::Owner;
use crate::error::ApiError;
use crate::hangup::Hangup;

/// The most streams at a time.
const STREAMS: usize = 64;
/// How many events wait for a listener that is slow; then it loses some, and is told.
const WAITING: usize = 256;
/// How often something is said if nothing happens, so that a listener that is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a listener may leave unread what is said; heartbeats come more often.
const UNREAD: Duration = Duration::from_secs(60);
/// The beginning: how long a listener that lost its stream waits, in milliseconds.
const BEGINNING: &[u8] = b"retry: 2000\n\n";

/// The streams of events there are, over all connections.
#[derive(Clone, Debug)]
pub struct EventStreams {
    room: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl EventStreams {
    /// None yet; all end when the daemon stops.
    pub fn new(stopping: CancellationToken) -> Self {
        Self { room: Arc::new(Semaphore::new(STREAMS)), stopping }
    }
}

/// The routes of this module.
pub(crate) fn endpoints() -> [Endpoint; 1] {
    [Endpoint::new(Method::GET, "/events", || web::to(events))]
}

/// Which main session the listener shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listener {
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    subagent: bool,
}

async fn events(
    _: Owner,
    listener: Query<Listener>,
    host: Data<Option<Host>>,
    streams: Data<EventStreams>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let main = listener.into_inner().main_session()?;
    let host = host.as_ref().as_ref().ok_or(HostRefusal::Unavailable)?;
    let Ok(room) = Arc::clone(&streams.room).try_acquire_owned() else {
        let text = format!("there are {STREAMS} listeners already; end one of them");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "Busy", &text));
    };
    let (sender, events) = mpsc::channel(WAITING);
    if !host.subscribe(Subscribe { main, events: sender }) {
        return Err(HostRefusal::Unavailable.into());
    }
    // Over the control socket nobody is signed in.
    let signed_out = request.extensions().get::<OverTcp>().map(|of| of.signed_out.clone());
    let end = ended(streams.stopping.clone(), signed_out.unwrap_or_default());
    let stream = EventStream::new(events, end, room);
    if let Some(hangup) = request.conn_data::<Hangup>() {
        actix_web::rt::spawn(watch(Rc::downgrade(&stream.taken), hangup.clone()));
    }
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-store"))
        // Its end is the end of the connection.
        .force_close()
        .body(stream))
}

impl Listener {
    /// The most bytes of a session's id.
    const ID: usize = 512;
    /// The most bytes of a path, to the kernel; of many sessions it is remembered where they work.
    const CWD: usize = 4096;

    fn main_session(self) -> Result<Option<MainSession>, ApiError> {
        let Self { session_id: id, cwd, subagent } = self;
        let bad = |text| Err(ApiError::new(StatusCode::BAD_REQUEST, "BadRequest", text));
        if id.len() > Self::ID {
            return bad("sessionId is too long");
        }
        if cwd.len() > Self::CWD {
            return bad("cwd is too long");
        }
        if !cwd.is_empty() && !Path::new(&cwd).is_absolute() {
            return bad("cwd must be an absolute path");
        }
        Ok((!id.is_empty()).then_some(MainSession { id, cwd, subagent }))
    }
}

/// Waits until the daemon stops, or the listener is signed out.
async fn ended(stopping: CancellationToken, signed_out: CancellationToken) {
    tokio::select! {
        () = stopping.cancelled() => {}
        () = signed_out.cancelled() => {}
    }
}

/// Ends the connection of a listener that reads nothing: as long as what it has not read fills the way to it, nobody takes more
/// from the body, and it would hold its place for ever.
async fn watch(taken: Weak<Cell<Instant>>, hangup: Hangup) {
    loop {
        sleep(UNREAD / 4).await;
        match taken.upgrade() {
            None => return,
            Some(taken) if taken.get().elapsed() >= UNREAD => return hangup.now(),
            Some(_) => {}
        }
    }
}

/// The body of an answer that goes on as long as somebody listens.
struct EventStream {
    begun: bool,
    events: mpsc::Receiver<Arc<HostEvent>>,
    beats: Interval,
    /// When there was room for more.
    taken: Rc<Cell<Instant>>,
    end: Pin<Box<dyn Future<Output = ()>>>,
    _room: OwnedSemaphorePermit,
}

impl EventStream {
    fn new(
        events: mpsc::Receiver<Arc<HostEvent>>,
        end: impl Future<Output = ()> + 'static,
        room: OwnedSemaphorePermit,
    ) -> Self {
        let mut beats = interval(HEARTBEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first would come at once.
        beats.reset();
        let taken = Rc::new(Cell::new(Instant::now()));
        Self { begun: false, events, beats, taken, end: Box::pin(end), _room: room }
    }
}

impl MessageBody for EventStream {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        self.taken.set(Instant::now());
        if !std::mem::replace(&mut self.begun, true) {
            return Poll::Ready(Some(Ok(Bytes::from_static(BEGINNING))));
        }
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(event) = self.events.poll_recv(context) {
            return Poll::Ready(event.map(|event| Ok(frame(&event))));
        }
        self.beats.poll_tick(context).map(|_| Some(Ok(Bytes::from_static(b":\n\n"))))
    }
}

/// An event as a listener gets it. JSON holds no line break that would end it early.
fn frame(event: &HostEvent) -> Bytes {
    #[derive(Deserialize)]
    struct Kind<'a> {
        kind: &'a str,
    }
    // Events are structs with text keys, which can always be written, and the kind is the first of them.
    let json = serde_json::to_string(event).unwrap_or_default();
    let kind = serde_json::from_str::<Kind<'_>>(&json).map_or("message", |of| of.kind);
    Bytes::from(format!("event: {kind}\ndata: {json}\n\n"))
}

#[cfg(test)]
mod tests;
