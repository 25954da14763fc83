//! Accepting on a real socket.

use std::future::poll_fn;
use std::path::PathBuf;
use std::task::Poll;

use cofferdam_protocol::ckpt::{WsCkptRequest, read_message};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
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
    let limits = Limits { connections_per_stranger: 2, ..Limits::default() };
    let guests = Guests::default();
    let take = |uid| Seat::take(&guests, uid, &limits);
    let seats: Vec<_> = (0..2).map(|_| take(1001)).collect();
    assert!(seats.iter().all(Option::is_some));
    assert!(take(1001).is_none());
    assert!(take(1002).is_some());
    drop(seats);
    assert!(guests.borrow().is_empty());
    assert!(take(1001).is_some());
}

/// A client's end and a connection that `seat` is for.
fn seated<'a>(
    (service, all): &'a (Slow, Space),
    seat: &'a Seat,
    limits: &'a Limits,
    stopping: &'a CancellationToken,
) -> (DuplexStream, Connection<'a, Slow, DuplexStream>) {
    let (client, io) = duplex(4 << 20);
    let room = Room { all, share: Some(&seat.share) };
    (client, Connection { io, peer: Peer::own(), service, limits, room, stopping })
}

#[tokio::test(start_paused = true)]
async fn a_stranger_that_never_ends_its_large_requests_leaves_room_for_those_of_others() {
    let limits = Limits::default();
    let shared = (Slow::default(), Space::new(limits.large_requests, limits.large_answers));
    let (guests, stopping) = (Guests::default(), CancellationToken::new());
    let seats: Vec<_> = (0..60).map(|_| Seat::take(&guests, 1001, &limits).unwrap()).collect();
    let others = Seat::take(&guests, 1002, &limits).unwrap();

    let (mut held, mut connections): (Vec<_>, Vec<_>) =
        seats.iter().map(|seat| seated(&shared, seat, &limits, &stopping)).unzip();
    let (mut client, other) = seated(&shared, &others, &limits, &stopping);
    connections.push(other);
    let mut serving: Vec<_> = connections.into_iter().map(|it| Box::pin(it.serve())).collect();
    let clients = async {
        let half = [&(15u32 << 20).to_le_bytes()[..], &[0; 180 << 10]].concat();
        for stream in &mut held {
            stream.write_all(&half).await.unwrap();
        }
        sleep(Duration::from_secs(1)).await;
        let request = WsCkptRequest::Init { workspace: "x".repeat(300 << 10) };
        let mut frame = Vec::new();
        write_message(&mut frame, &request).unwrap();
        client.write_all(&frame).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(*shared.0.seen.borrow(), [request]);
    };
    let all_end = poll_fn(|cx| {
        serving.retain_mut(|connection| connection.as_mut().poll(cx).is_pending());
        if serving.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    });
    tokio::select! {
        () = clients => {}
        () = all_end => panic!("every connection ended"),
    }
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

/// The process that connects is this one again, with this set to the socket's path.
const CONNECT: &str = "COFFERDAM_TEST_CONNECT";

#[test]
fn a_process_that_connects() {
    use std::io::Read;
    let Ok(path) = std::env::var(CONNECT) else { return };
    let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
    // Whatever is said before the connection is closed, in words that a person reads.
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    println!("{}", String::from_utf8_lossy(&said));
}

/// Whatever an order is that nobody reads.
fn order(dir: &std::path::Path) -> sandbox::Order {
    sandbox::Order {
        task_dir: dir.to_owned(),
        sandbox_root: dir.to_owned(),
        mode: cofferdam_protocol::pod::SandboxMode::WorkspaceWrite,
        private_parent: dir.to_owned(),
        hidden: Vec::new(),
        real_home: None,
        from_home: Vec::new(),
        home_files: Vec::new(),
        kept_home: None,
        readable: Vec::new(),
        writable: Vec::new(),
        user: None,
        probe: None,
        program: None,
        limits: sandbox::Limits::default(),
        grace_ms: 0,
        least: Vec::new(),
        without: Vec::new(),
    }
}

#[actix::test]
async fn who_connects_from_below_a_supervisor_is_told_that_it_is_not_served() {
    let served = Served::new(Limits::default());
    // A supervisor in that it was launched as one; what is below it is not confined, and so can connect at all.
    let printed = served.dir.path().join("printed");
    let name = "socket::accept::tests::a_process_that_connects";
    let mut command = std::process::Command::new("sh");
    let script = format!(
        "{CONNECT}={:?} {:?} --exact {name} --nocapture > {printed:?}; :",
        served.path(),
        std::env::current_exe().unwrap()
    );
    command.args(["-c", &script]);
    let (input, output) = io::pipe().unwrap();
    let error = output.try_clone().unwrap();
    let stdio = sandbox::Stdio { input: input.into(), output: output.into(), error: error.into() };
    let launched = sandbox::launch(command, &order(served.dir.path()), stdio, &[]).unwrap();
    // Somebody else is served meanwhile.
    let mut other = served.connect().await;
    send(&mut other, &WsCkptRequest::ReloadConfig).await;
    assert_eq!(receive(&mut other).await, Some(WsCkptResponse::ReloadConfigOk));
    let mut supervisor = launched.supervisor;
    tokio::task::spawn_blocking(move || supervisor.wait()).await.unwrap().unwrap();
    let printed = std::fs::read_to_string(printed).unwrap();
    assert!(printed.contains(NOT_SERVED), "{printed}");
    served.stopping.cancel();
    served.accepting.await.unwrap();
}
