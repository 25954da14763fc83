//! A connection over a pipe in memory, with virtual time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use cofferdam_protocol::ckpt::read_message;
use tokio::io::{DuplexStream, duplex};

use super::super::room::Space;
use super::*;

/// Answers Init with the path it was given, List with as much as it was told to, and notes what was not delivered.
#[derive(Default)]
struct Echo {
    list_bytes: usize,
    seen: RefCell<Vec<WsCkptRequest>>,
    undelivered: Rc<Cell<u32>>,
}

impl Service for Echo {
    async fn answer(&self, _: &Peer, request: WsCkptRequest) -> Answer {
        self.seen.borrow_mut().push(request.clone());
        let response = match request {
            WsCkptRequest::Init { workspace } => WsCkptResponse::InitOk { ws_id: workspace },
            WsCkptRequest::List { .. } => {
                WsCkptResponse::CheckpointSkipped { reason: "x".repeat(self.list_bytes) }
            }
            _ => WsCkptResponse::ReloadConfigOk,
        };
        let undelivered = self.undelivered.clone();
        Answer { response, undelivered: Some(Box::new(move || undelivered.set(undelivered.get() + 1))) }
    }
}

/// Runs a connection on `service` beside `client`, until the connection ends.
async fn run<F: Future>(
    service: &Echo,
    stopping: &CancellationToken,
    client: impl FnOnce(DuplexStream) -> F,
) -> F::Output {
    let (ours, theirs) = duplex(64 * 1024);
    let limits = Limits::default();
    let all = Space::new(limits.large_requests, limits.large_answers);
    tokio::join!(connection(theirs, service, &limits, &all, stopping).serve(), client(ours)).1
}

/// A connection of the daemon's own user.
fn connection<'a>(
    io: DuplexStream,
    service: &'a Echo,
    limits: &'a Limits,
    all: &'a Space,
    stopping: &'a CancellationToken,
) -> Connection<'a, Echo, DuplexStream> {
    Connection { io, peer: Peer::own(), service, limits, room: Room { all, share: None }, stopping }
}

async fn serve<F: Future>(client: impl FnOnce(DuplexStream) -> F) -> F::Output {
    run(&Echo::default(), &CancellationToken::new(), client).await
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&length.to_le_bytes(), payload].concat()
}

fn init(workspace: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let request = WsCkptRequest::Init { workspace: workspace.to_owned() };
    cofferdam_protocol::ckpt::write_message(&mut bytes, &request).unwrap();
    bytes
}

fn list() -> Vec<u8> {
    frame(&[4, 0, 0, 0, 0, 0])
}

/// Everything the daemon sends until it closes.
async fn responses(mut client: DuplexStream) -> Vec<WsCkptResponse> {
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).await.unwrap();
    let mut bytes = bytes.as_slice();
    std::iter::from_fn(|| read_message(&mut bytes).unwrap()).collect()
}

fn refusal(response: &WsCkptResponse) -> &str {
    match response {
        WsCkptResponse::Error { code: WsCkptErrorCode::InternalError, message } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn several_requests_on_one_connection_are_answered_in_order() {
    let got = serve(async |mut client| {
        client.write_all(&[init("/a"), init("/b")].concat()).await.unwrap();
        responses(client).await
    })
    .await;
    let expected = ["/a", "/b"].map(|ws_id| WsCkptResponse::InitOk { ws_id: ws_id.to_owned() });
    assert_eq!(got, expected);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_is_no_request_is_refused_and_the_next_is_served() {
    for bad in [frame(&[]), frame(&[12, 0, 0, 0]), frame(&[0, 0]), frame(&[6, 0, 0, 0, 7])] {
        let got = serve(async |mut client| {
            client.write_all(&[bad, init("/a")].concat()).await.unwrap();
            responses(client).await
        })
        .await;
        assert!(refusal(&got[0]).starts_with("malformed request: "), "{got:?}");
        assert_eq!(got[1..], [WsCkptResponse::InitOk { ws_id: "/a".to_owned() }]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_over_the_limit_is_refused_in_the_contracts_words_and_the_connection_closed() {
    let got = serve(async |mut client| {
        client.write_all(&16_777_217u32.to_le_bytes()).await.unwrap();
        // More than the pipe holds: it must be taken for the refusal to be reached.
        client.write_all(&vec![0; 1 << 20]).await.unwrap();
        client.shutdown().await.unwrap();
        responses(client).await
    })
    .await;
    assert_eq!(got.len(), 1);
    assert_eq!(refusal(&got[0]), "Frame too large: 16777217 bytes (max 16777216)");
}

#[tokio::test(start_paused = true)]
async fn a_length_followed_by_silence_is_refused_after_ten_seconds() {
    let began = Instant::now();
    let got = serve(async |mut client| {
        client.write_all(&1000u32.to_le_bytes()).await.unwrap();
        responses(client).await
    })
    .await;
    assert_eq!(refusal(&got[0]), "request not received completely within 10 s");
    assert!(began.elapsed() >= Duration::from_secs(10) && began.elapsed() < Duration::from_secs(12));
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_dribbles_does_not_stretch_its_time() {
    let began = Instant::now();
    let got = serve(async |mut client| {
        for byte in frame(&[0; 40]) {
            if client.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        responses(client).await
    })
    .await;
    assert_eq!(refusal(&got[0]), "request not received completely within 10 s");
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_a_minute_without_a_word() {
    let began = Instant::now();
    assert_eq!(serve(responses).await, []);
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_inside_a_frame_gets_nothing() {
    let got = serve(async |mut client| {
        client.write_all(&init("/a")[..7]).await.unwrap();
        client.shutdown().await.unwrap();
        responses(client).await
    })
    .await;
    assert_eq!(got, []);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_it_sends_no_more_still_gets_its_answer() {
    let got = serve(async |mut client| {
        client.write_all(&init("/a")).await.unwrap();
        client.shutdown().await.unwrap();
        responses(client).await
    })
    .await;
    assert_eq!(got.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_becomes_an_error_that_says_what_to_do() {
    let service = Echo { list_bytes: WsCkptResponse::LIMIT as usize, ..Echo::default() };
    let got = run(&service, &CancellationToken::new(), async |mut client| {
        client.write_all(&list()).await.unwrap();
        responses(client).await
    })
    .await;
    assert!(refusal(&got[0]).contains("cleanup"), "{got:?}");
    assert_eq!(service.undelivered.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_take_its_answer_is_given_up_and_the_answer_called_undelivered() {
    let service = Echo { list_bytes: 1 << 20, ..Echo::default() };
    run(&service, &CancellationToken::new(), async |mut client| {
        client.write_all(&list()).await.unwrap();
        // Holds the connection open without reading until the daemon has had enough.
        tokio::time::sleep(Duration::from_secs(31)).await;
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert!(rest.len() < 1 << 20);
    })
    .await;
    assert_eq!(service.undelivered.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_leaves_its_answer_undelivered() {
    let service = Echo::default();
    run(&service, &CancellationToken::new(), async |mut client| {
        client.write_all(&init("/a")).await.unwrap();
        drop(client);
    })
    .await;
    assert_eq!(service.seen.borrow().len(), 1);
    assert_eq!(service.undelivered.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_daemon_closes_idle_connections_and_half_frames_at_once() {
    for sent in [vec![], init("/a")[..6].to_vec()] {
        let began = Instant::now();
        let stopping = CancellationToken::new();
        let got = run(&Echo::default(), &stopping, async |mut client| {
            client.write_all(&sent).await.unwrap();
            tokio::task::yield_now().await;
            stopping.cancel();
            responses(client).await
        })
        .await;
        assert_eq!(got, []);
        assert!(began.elapsed() < Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn large_requests_take_turns_and_small_ones_pass_them() {
    let service = Echo::default();
    let limits = Limits::default();
    let all = Space::new(1, 0);
    let stopping = CancellationToken::new();
    let connect = |io| connection(io, &service, &limits, &all, &stopping);
    let large = init(&"x".repeat(1 << 20));
    let seen = || service.seen.borrow().len();
    let (mut first, first_end) = duplex(4 << 20);
    let (mut second, second_end) = duplex(4 << 20);
    let (mut third, third_end) = duplex(4 << 20);
    let client = async {
        // The first takes the only room and keeps it.
        first.write_all(&large[..large.len() - 1]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        second.write_all(&large).await.unwrap();
        third.write_all(&init("/small")).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(seen(), 1);
        first.write_all(&large[large.len() - 1..]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(seen(), 3);
        for end in [&mut first, &mut second, &mut third] {
            end.shutdown().await.unwrap();
        }
    };
    let (first, second, third) = (connect(first_end), connect(second_end), connect(third_end));
    tokio::join!(first.serve(), second.serve(), third.serve(), client);
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_is_refused_while_others_fill_the_room_and_small_ones_are_not() {
    let service = Echo { list_bytes: 3 << 20, ..Echo::default() };
    let limits = Limits::default();
    let all = Space::new(1, 5);
    let stopping = CancellationToken::new();
    let connect = |io| connection(io, &service, &limits, &all, &stopping);
    let (mut slow, slow_end) = duplex(64 << 10);
    let (mut other, other_end) = duplex(8 << 20);
    let client = async {
        slow.write_all(&list()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.write_all(&[list(), init("/small")].concat()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        slow.shutdown().await.unwrap();
        assert_eq!(responses(slow).await.len(), 1);
        // There is room again.
        other.write_all(&list()).await.unwrap();
        other.shutdown().await.unwrap();
        responses(other).await
    };
    let got = tokio::join!(connect(slow_end).serve(), connect(other_end).serve(), client).2;
    assert_eq!(refusal(&got[0]), BUSY);
    assert_eq!(got[1], WsCkptResponse::InitOk { ws_id: "/small".to_owned() });
    assert!(matches!(&got[2], WsCkptResponse::CheckpointSkipped { reason } if reason.len() == 3 << 20));
    assert!(Room { all: &all, share: None }.for_answer(5 << 20).is_ok());
}

#[tokio::test(start_paused = true)]
async fn large_answers_that_a_stranger_does_not_take_leave_room_for_those_of_others() {
    let service = Echo { list_bytes: 3 << 20, ..Echo::default() };
    let (limits, stopping) = (Limits::default(), CancellationToken::new());
    let (all, strangers, others) = (Space::new(1, 8), Space::new(1, 4), Space::new(1, 4));
    let connect = |io, share| {
        let room = Room { all: &all, share: Some(share) };
        Connection { io, peer: Peer::own(), service: &service, limits: &limits, room, stopping: &stopping }
    };
    let (mut slow, slow_end) = duplex(64 << 10);
    let (mut second, second_end) = duplex(8 << 20);
    let (mut other, other_end) = duplex(8 << 20);
    let client = async {
        slow.write_all(&list()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        for stream in [&mut second, &mut other] {
            stream.write_all(&list()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        let got = (responses(second).await, responses(other).await);
        drop(slow);
        got
    };
    let (slow, second) = (connect(slow_end, &strangers), connect(second_end, &strangers));
    let other = connect(other_end, &others);
    let (second, other) = tokio::join!(slow.serve(), second.serve(), other.serve(), client).3;
    assert_eq!(refusal(&second[0]), BUSY);
    assert!(matches!(other[0], WsCkptResponse::CheckpointSkipped { .. }));
}

#[test]
fn a_strangers_share_holds_the_largest_answer_and_not_everything() {
    let limits = Limits::default();
    assert!(limits.large_answers_per_stranger << 20 >= WsCkptResponse::LIMIT as usize);
    assert!(limits.large_answers_per_stranger < limits.large_answers);
    assert!(limits.large_requests_per_stranger < limits.large_requests);
}
