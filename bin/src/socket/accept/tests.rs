//! Accepting on a real socket.

use std::path::PathBuf;

use cofferdam_protocol::ckpt::{WsCkptRequest, read_message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::super::connection::Answer;
use super::*;

/// Answers at once, but for Config, which waits until it is told.
#[derive(Clone, Default)]
struct Slow {
    seen: Rc<RefCell<Vec<WsCkptRequest>>>,
    begun: Rc<Notify>,
    go_on: Rc<Notify>,
}

impl Service for Slow {
    async fn answer(&self, _: &Peer, request: WsCkptRequest) -> Answer {
        let waits = request == WsCkptRequest::Config;
        self.seen.borrow_mut().push(request);
        if waits {
            self.begun.notify_one();
            self.go_on.notified().await;
        }
        Answer::of(WsCkptResponse::ReloadConfigOk)
    }
}

struct Served {
    dir: tempfile::TempDir,
    service: Slow,
    stopping: CancellationToken,
    accepting: JoinHandle<()>,
}

impl Served {
    fn new(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("ckpt.sock")).unwrap();
        let (service, stopping) = (Slow::default(), CancellationToken::new());
        let accepting =
            actix::spawn(accept(listener, Audience::Owner, service.clone(), limits, stopping.clone()));
        Self { dir, service, stopping, accepting }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("ckpt.sock")
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.path()).await.unwrap()
    }
}

async fn send(stream: &mut UnixStream, request: &WsCkptRequest) {
    let mut frame = Vec::new();
    write_message(&mut frame, request).unwrap();
    stream.write_all(&frame).await.unwrap();
}

async fn receive(stream: &mut UnixStream) -> Option<WsCkptResponse> {
    // Every answer here is as long.
    let mut frame = [0; 8];
    match stream.read_exact(&mut frame).await {
        Ok(_) => read_message(&mut frame.as_slice()).unwrap(),
        Err(_) => None,
    }
}

#[actix::test]
async fn more_connections_than_there_is_room_for_wait_for_one_to_end() {
    let served = Served::new(Limits { connections: 1, ..Limits::default() });
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    send(&mut second, &WsCkptRequest::HealthAdvisory).await;
    for _ in 0..20 {
        send(&mut first, &WsCkptRequest::ReloadConfig).await;
        assert!(receive(&mut first).await.is_some());
    }
    assert!(!served.service.seen.borrow().contains(&WsCkptRequest::HealthAdvisory));
    drop(first);
    assert!(receive(&mut second).await.is_some());
    assert!(served.service.seen.borrow().contains(&WsCkptRequest::HealthAdvisory));
}

#[actix::test]
async fn a_request_in_flight_is_answered_when_the_daemon_stops_and_no_other_is_taken() {
    let served = Served::new(Limits::default());
    let (mut busy, mut idle) = (served.connect().await, served.connect().await);
    send(&mut busy, &WsCkptRequest::Config).await;
    served.service.begun.notified().await;
    served.stopping.cancel();
    assert_eq!(receive(&mut idle).await, None);
    assert!(!served.accepting.is_finished());
    served.service.go_on.notify_one();
    assert_eq!(receive(&mut busy).await, Some(WsCkptResponse::ReloadConfigOk));
    let path = served.path();
    served.accepting.await.unwrap();
    assert!(UnixStream::connect(path).await.is_err());
}

#[test]
fn a_stranger_has_so_many_seats_and_gets_them_back() {
    let guests = Guests::default();
    let seats: Vec<_> = (0..2).map(|_| Seat::take(&guests, 1001, 2)).collect();
    assert!(seats.iter().all(Option::is_some));
    assert!(Seat::take(&guests, 1001, 2).is_none());
    assert!(Seat::take(&guests, 1002, 2).is_some());
    drop(seats);
    assert!(guests.borrow().is_empty());
    assert!(Seat::take(&guests, 1001, 2).is_some());
}

#[test]
fn the_pause_after_a_failure_grows_to_a_second_and_starts_anew_after_a_success() {
    let mut trouble = Trouble::default();
    let error = io::Error::from(io::ErrorKind::Other);
    let pauses: Vec<u128> = (0..8).map(|_| trouble.pause(&error).as_millis()).collect();
    assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
    trouble.over();
    assert_eq!(trouble.pause(&error), Trouble::FIRST);
}
