//! One connection: requests one after another, until the client goes, is too slow, or the daemon stops.

use std::future::Future;
use std::io;

use bytes::BytesMut;
use cofferdam_protocol::ckpt::{
    Frame, FrameCodec, FrameError, Message, WsCkptErrorCode, WsCkptRequest, WsCkptResponse,
};
use cofferdam_storage::peer::Peer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::codec::{Decoder, Encoder};
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::room::{Held, NoRoom, Room};

/// Whoever answers requests.
pub(crate) trait Service: 'static {
    /// Carries one request out. Whatever fails is an answer, too.
    fn answer(&self, peer: &Peer, request: WsCkptRequest) -> impl Future<Output = Answer>;
}

/// The answer to one request.
pub(crate) struct Answer {
    /// What goes over the wire.
    pub(crate) response: WsCkptResponse,
    /// What to do if it does not arrive.
    pub(crate) undelivered: Option<Box<dyn FnOnce()>>,
}

/// How a wait for the next frame ended.
enum Next {
    Request(WsCkptRequest),
    /// Something else, of known length; the connection goes on.
    Malformed(String),
    /// What follows cannot be understood; the client is told so and the connection ends.
    Hopeless(String),
    /// The client is gone, nothing was asked in time, or the daemon stops.
    Over,
}

/// A client's connection.
pub(crate) struct Connection<'a, S, Io> {
    pub(crate) io: Io,
    pub(crate) peer: Peer,
    pub(crate) service: &'a S,
    pub(crate) limits: &'a Limits,
    /// What it shares with others for large messages.
    pub(crate) room: Room<'a>,
    /// Cancelled when the daemon stops: the request in hand is still answered.
    pub(crate) stopping: &'a CancellationToken,
}

/// What has come of frames not yet taken.
#[derive(Default)]
struct Received<'a> {
    bytes: BytesMut,
    /// Held while there is much of it.
    room: Option<Held<'a>>,
}

impl<'a, S: Service, Io: AsyncRead + AsyncWrite + Unpin> Connection<'a, S, Io> {
    /// Serves until the end.
    pub(crate) async fn serve(mut self) {
        let mut codec = FrameCodec::new();
        let mut received = Received::default();
        loop {
            let answer = match self.next(&mut codec, &mut received).await {
                Next::Request(request) => self.service.answer(&self.peer, request).await,
                Next::Malformed(message) => Answer::refusal(message),
                Next::Hopeless(message) => {
                    if self.send(&mut codec, Answer::refusal(message)).await {
                        self.linger().await;
                    }
                    return;
                }
                Next::Over => return,
            };
            // A connection that once brought a large request does not keep its room.
            received.room = None;
            if received.bytes.is_empty() {
                received.bytes = BytesMut::new();
            }
            if !self.send(&mut codec, answer).await {
                return;
            }
        }
    }

    async fn next(&mut self, codec: &mut Codec, received: &mut Received<'a>) -> Next {
        // The clock of a frame starts with its first byte, however slowly the others come.
        let began = Instant::now();
        let mut frame_began = (!received.bytes.is_empty()).then_some(began);
        loop {
            match codec.decode(&mut received.bytes) {
                Ok(Some(Frame::Message(request))) => return Next::Request(request),
                Ok(Some(Frame::Malformed(error))) => {
                    return Next::Malformed(format!("malformed request: {error}"));
                }
                Ok(None) => {}
                Err(error) => return Next::Hopeless(error.to_string()),
            }
            let deadline = match frame_began {
                Some(began) => began + self.limits.frame,
                None => began + self.limits.idle,
            };
            let read = tokio::select! {
                () = self.stopping.cancelled() => return Next::Over,
                read = timeout_at(deadline, self.read(received)) => read,
            };
            match (read, frame_began) {
                (Ok(Ok(1..)), _) => frame_began = frame_began.or_else(|| Some(Instant::now())),
                (Err(_), Some(_)) => {
                    let secs = self.limits.frame.as_secs();
                    return Next::Hopeless(format!("request not received completely within {secs} s"));
                }
                // Closed, between frames or inside one, broken, or idle for too long.
                _ => return Next::Over,
            }
        }
    }

    /// Reads some more, once there is room for it.
    async fn read(&mut self, received: &mut Received<'a>) -> io::Result<usize> {
        if received.bytes.len() > Limits::SMALL_REQUEST && received.room.is_none() {
            received.room = self.room.for_request().await;
        }
        self.io.read_buf(&mut received.bytes).await
    }

    /// Whether the client took it.
    async fn send(&mut self, codec: &mut Codec, Answer { response, undelivered }: Answer) -> bool {
        let sent = match self.encode(codec, response) {
            Ok((frame, _room)) => match timeout(self.limits.answer, self.io.write_all(&frame)).await {
                Ok(written) => written,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            },
            Err(error) => Err(io::Error::other(error)),
        };
        let Err(error) = sent else { return true };
        tracing::debug!(uid = self.peer.uid, %error, "an answer did not reach its client");
        if let Some(undelivered) = undelivered {
            undelivered();
        }
        false
    }

    /// A response's frame, with the room it takes until it is sent; or that of an error, if it is too large for the
    /// wire or for what is free. The response goes: clients that take their time hold one copy in memory, not two.
    fn encode(&self, codec: &mut Codec, response: WsCkptResponse) -> Result<Encoded<'a>, FrameError> {
        let mut frame = BytesMut::new();
        let refusal = match codec.encode(&response, &mut frame) {
            Ok(()) => match self.room_for(frame.len()) {
                Ok(room) => return Ok((frame, room)),
                Err(NoRoom) => BUSY.to_owned(),
            },
            Err(FrameError::Unsendable(_)) => too_large(),
            Err(error) => return Err(error),
        };
        let mut frame = BytesMut::new();
        codec.encode(&Answer::refusal(refusal).response, &mut frame)?;
        Ok((frame, None))
    }

    /// Room for an answer of so many bytes; the error is that there is none.
    fn room_for(&self, bytes: usize) -> Result<Option<Held<'a>>, NoRoom> {
        if bytes <= Limits::SMALL_ANSWER {
            return Ok(None);
        }
        self.room.for_answer(bytes).map(Some)
    }

    /// Lets a client that is still sending reach our refusal: closing with its bytes unread would break the connection
    /// under it. They are dropped as they come.
    async fn linger(&mut self) {
        let drop_all = async {
            self.io.shutdown().await?;
            let mut scrap = [0; 8192];
            while self.io.read(&mut scrap).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = timeout(self.limits.linger, drop_all).await;
    }
}

type Codec = FrameCodec<WsCkptRequest, WsCkptResponse>;

/// A frame and what it takes of the room for large answers.
type Encoded<'a> = (BytesMut, Option<Held<'a>>);

impl Answer {
    /// An answer whose loss harms nobody.
    pub(crate) fn of(response: WsCkptResponse) -> Self {
        Self { response, undelivered: None }
    }

    /// The answer to what is no request.
    pub(crate) fn refusal(message: String) -> Self {
        Self::of(WsCkptResponse::Error { code: WsCkptErrorCode::InternalError, message })
    }
}

/// The answer where there is no room for the right one.
const BUSY: &str = "the daemon is sending too many large answers; try again, or ask for one workspace only";

fn too_large() -> String {
    format!(
        "the answer exceeds {} bytes; ask for one workspace only, or remove snapshots with cleanup",
        WsCkptResponse::LIMIT
    )
}

#[cfg(test)]
mod tests;
