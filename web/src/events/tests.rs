//! The body of a stream, in virtual time.

use std::future::poll_fn;

use cofferdam_protocol::host::{EntryKind, MainMessage, TranscriptEntry};
use serde_json::Value;

use super::*;

/// A stream, with what ends it: that the daemon stops, and that the listener is signed out.
fn stream() -> (mpsc::Sender<Arc<HostEvent>>, [CancellationToken; 2], Pin<Box<EventStream>>) {
    let ends = [CancellationToken::new(), CancellationToken::new()];
    let streams = EventStreams::new(ends[0].clone());
    let (sender, events) = mpsc::channel(WAITING);
    let room = Arc::clone(&streams.room).try_acquire_owned().unwrap();
    let end = ended(streams.stopping.clone(), ends[1].clone());
    (sender, ends, Box::pin(EventStream::new(events, end, room)))
}

async fn next(stream: &mut Pin<Box<EventStream>>) -> Option<String> {
    let chunk = poll_fn(|context| stream.as_mut().poll_next(context)).await;
    chunk.map(|Ok(bytes)| String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_comes_every_15_seconds_in_which_nothing_happens() {
    let (_sender, _, mut stream) = stream();
    assert_eq!(next(&mut stream).await.unwrap(), "retry: 2000\n\n");
    for _ in 0..3 {
        let before = Instant::now();
        assert_eq!(next(&mut stream).await.unwrap(), ":\n\n");
        assert_eq!(before.elapsed(), HEARTBEAT);
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_the_daemon_with_the_listener_s_sign_in_and_with_the_host() {
    for which in [0, 1] {
        let (_sender, ends, mut stopped) = stream();
        next(&mut stopped).await;
        ends[which].cancel();
        assert_eq!(next(&mut stopped).await, None);
    }
    let (sender, _, mut deserted) = stream();
    next(&mut deserted).await;
    sender.send(Arc::new(HostEvent::Lost)).await.unwrap();
    drop(sender);
    assert_eq!(
        next(&mut deserted).await.unwrap(),
        "event: events.lost\ndata: {\"kind\":\"events.lost\"}\n\n"
    );
    assert_eq!(next(&mut deserted).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_listener_over_a_unix_socket_that_does_not_read_is_hung_up() {
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut closed = || std::io::Read::read(&mut theirs, &mut [0]).is_ok_and(|count| count == 0);
    let (_sender, _, mut stream) = stream();
    let local = tokio::task::LocalSet::new();
    local.spawn_local(watch(Rc::downgrade(&stream.taken), Hangup::of(&ours).unwrap()));
    let listening = async {
        next(&mut stream).await;
        for _ in 0..20 {
            next(&mut stream).await;
            assert!(!closed());
        }
        let last = Instant::now();
        while !closed() {
            sleep(Duration::from_secs(1)).await;
        }
        assert!(last.elapsed() >= UNREAD && last.elapsed() <= UNREAD * 2, "{:?}", last.elapsed());
    };
    local.run_until(listening).await;
}

#[test]
fn whatever_is_said_stays_in_its_frame() {
    let text = "a\nb\r\n\r\nevent: x\rdata: {}\u{2028}\u{85}";
    let entry = TranscriptEntry { seq: 1, kind: EntryKind::Tool, time: 2, text: text.to_owned() };
    let message =
        MainMessage { session_id: text.to_owned(), id: "a".to_owned(), text: text.to_owned(), at: 1 };
    for (event, kind) in [
        (HostEvent::TaskEntry { task_id: "a".to_owned(), entry }, "task.entry"),
        (HostEvent::MainMessage(message), "main.message"),
        (HostEvent::TaskRemoved { task_id: text.to_owned() }, "task.removed"),
    ] {
        let frame = frame(&event);
        let frame = str::from_utf8(&frame).unwrap();
        let (first, second) = frame.strip_suffix("\n\n").unwrap().split_once('\n').unwrap();
        assert_eq!(first, format!("event: {kind}"));
        let data = second.strip_prefix("data: ").unwrap();
        assert!(!data.contains(['\n', '\r']), "{data}");
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["kind"], kind);
        assert_eq!(data, serde_json::to_value(&event).unwrap());
    }
}

#[test]
fn a_listener_may_show_a_main_session_in_an_absolute_directory() {
    let listener = |session_id: &str, cwd: &str| {
        Listener { session_id: session_id.to_owned(), cwd: cwd.to_owned(), subagent: false }.main_session()
    };
    assert_eq!(listener("", "").unwrap(), None);
    assert_eq!(listener("", "/w").unwrap(), None);
    let shown = listener("main", "/w").unwrap().unwrap();
    assert_eq!((shown.id.as_str(), shown.cwd.as_str()), ("main", "/w"));
    assert!(listener("main", "").unwrap().is_some());
    let long = "/".repeat(4097);
    assert!(listener("main", &long[1..]).is_ok());
    for (id, cwd) in
        [("main", "w"), ("main", "./w"), (&*"x".repeat(513), "/w"), ("main", &*long), ("", &*long)]
    {
        assert!(listener(id, cwd).is_err(), "{id:.10} {cwd:.10}");
    }
}
