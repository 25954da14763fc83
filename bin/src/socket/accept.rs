//! Accepting connections: no more than there is room for, and without spinning when the system has none left.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_protocol::ckpt::{WsCkptErrorCode, WsCkptResponse, write_message};
use cofferdam_storage::peer::Peer;
use cofferdam_storage::sandbox::{self, NOT_SERVED};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Service};
use super::room::{Room, Space};
use super::{Audience, Limits};

/// Serves connections until `stopping` is cancelled, then lets requests in flight finish for a while.
pub(crate) async fn accept<S: Service>(
    listener: UnixListener,
    audience: Audience,
    service: S,
    limits: Limits,
    stopping: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let guests = Guests::default();
    let shared = Rc::new((service, Space::new(limits.large_requests, limits.large_answers)));
    let mut trouble = Trouble::default();
    while let Some(permit) = unless(&stopping, room.clone().acquire_owned()).await {
        let Some(accepted) = unless(&stopping, listener.accept()).await else { break };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                let pause = trouble.pause(&error);
                if unless(&stopping, sleep(pause)).await.is_none() {
                    break;
                }
                continue;
            }
        };
        trouble.over();
        let (peer, seat) = match admit(&stream, audience, &guests, &limits) {
            Ok(admitted) => admitted,
            Err(why) => {
                turn_away(stream, why);
                continue;
            }
        };
        let (shared, stopping) = (shared.clone(), stopping.clone());
        actix::spawn(async move {
            let (service, all) = &*shared;
            let room = Room { all, share: seat.as_ref().map(|seat| &*seat.share) };
            let connection =
                Connection { io: stream, peer, service, limits: &limits, room, stopping: &stopping };
            connection.serve().await;
            drop((seat, permit));
        });
    }
    drop(listener);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    if timeout(limits.drain, room.acquire_many(all)).await.is_err() {
        tracing::warn!("requests were still running when the daemon stopped; their clients get no answer");
    }
}

/// The future's output, or `None` as soon as the daemon stops.
async fn unless<F: Future>(stopping: &CancellationToken, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        () = stopping.cancelled() => None,
        output = future => Some(output),
    }
}

/// The strangers that are connected.
type Guests = Rc<RefCell<HashMap<u32, Guest>>>;

/// What all connections of a stranger have together.
struct Guest {
    /// How many there are.
    open: usize,
    share: Rc<Space>,
}

/// A stranger's place among the connections; given back when dropped.
struct Seat {
    guests: Guests,
    uid: u32,
    /// For large messages, together with the user's other connections.
    share: Rc<Space>,
}

impl Seat {
    /// `None` if that user has as many as one may.
    fn take(guests: &Guests, uid: u32, limits: &Limits) -> Option<Self> {
        let mut all = guests.borrow_mut();
        let guest = all.entry(uid).or_insert_with(|| Guest {
            open: 0,
            share: Rc::new(Space::new(limits.large_requests_per_stranger, limits.large_answers_per_stranger)),
        });
        if guest.open >= limits.connections_per_stranger {
            return None;
        }
        guest.open += 1;
        Some(Self { guests: guests.clone(), uid, share: guest.share.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut guests = self.guests.borrow_mut();
        if let Some(guest) = guests.get_mut(&self.uid) {
            guest.open -= 1;
            if guest.open == 0 {
                guests.remove(&self.uid);
            }
        }
    }
}

/// Who is at the other end, and whether it is served.
fn admit(
    stream: &UnixStream,
    audience: Audience,
    guests: &Guests,
    limits: &Limits,
) -> Result<(Peer, Option<Seat>), String> {
    let unknown = |error| format!("cannot tell who is asking: {error}");
    let peer = Peer::of_socket(stream).map_err(unknown)?;
    if sandbox::is_peer(stream).map_err(unknown)? {
        return Err(NOT_SERVED.to_owned());
    }
    if let Some(peer) = trusted(&peer) {
        return Ok((peer, None));
    }
    if audience == Audience::Owner {
        return Err("this daemon serves its own user only".to_owned());
    }
    match Seat::take(guests, peer.uid, limits) {
        Some(seat) => Ok((peer, Some(seat))),
        None => Err(format!("user {} has too many connections open; close some and try again", peer.uid)),
    }
}

/// In whose name a peer is served that may do whatever the daemon may: root with a user's daemon is that user, whose
/// rights are all there are. `None` for a stranger.
pub(crate) fn trusted(peer: &Peer) -> Option<Peer> {
    peer.is_privileged().then(Peer::own)
}

/// Says why and closes; never waits, since whoever is turned away may not listen.
fn turn_away(stream: UnixStream, why: String) {
    let refusal = WsCkptResponse::Error { code: WsCkptErrorCode::InternalError, message: why };
    let mut frame = Vec::new();
    if write_message(&mut frame, &refusal).is_ok() {
        // A fresh socket's buffer has room for it; if not, the close says enough.
        let _ = stream.try_write(&frame);
    }
}

/// Failing to accept: how long, and whether it was logged.
#[derive(Default)]
struct Trouble {
    failures: u32,
}

impl Trouble {
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(1);

    /// How long to wait before the next attempt. Logs the first failure of a series only.
    fn pause(&mut self, error: &io::Error) -> Duration {
        if self.failures == 0 {
            tracing::warn!(%error, "cannot accept connections; trying again");
        }
        let pause = Self::FIRST.saturating_mul(1 << self.failures.min(10)).min(Self::LONGEST);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    fn over(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "accepting connections again");
            self.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests;
