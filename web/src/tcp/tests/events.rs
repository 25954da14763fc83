//! Streams of events over connections.

use cofferdam_actors::host::MainSession;
use cofferdam_protocol::host::HostEvent;

use super::*;

/// Opens a stream, and reads until `text` has come.
async fn listen(server: &Running, query: &str, text: &str) -> TcpStream {
    let mut stream = server.connect().await;
    let headers = server.host() + &server.shown_token();
    stream
        .write_all(format!("GET /api/v1/events{query} HTTP/1.1\r\n{headers}\r\n").as_bytes())
        .await
        .unwrap();
    until(&mut stream, text).await;
    stream
}

async fn until(stream: &mut TcpStream, text: &str) -> String {
    let (mut seen, mut bytes) = (String::new(), [0; 1024]);
    while !seen.contains(text) {
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "it ended before {text:?}: {seen}");
        seen.push_str(str::from_utf8(&bytes[..count]).unwrap());
    }
    seen
}

#[actix_web::test]
async fn a_listener_hears_events_and_is_a_main_session_while_it_listens() {
    let server = start().await;
    let mut stream = listen(&server, "?sessionId=main%201&cwd=%2Fw&subagent=true", "retry:").await;
    // The stub hears of it on this thread.
    let subscribed = loop {
        let heard = server.heard.listeners.lock().unwrap().pop();
        if let Some(subscribed) = heard {
            break subscribed;
        }
        tokio::task::yield_now().await;
    };
    let main = MainSession { id: "main 1".to_owned(), cwd: "/w".to_owned(), subagent: true };
    assert_eq!(subscribed.main, Some(main));
    subscribed.events.send(Arc::new(HostEvent::StateChanged)).await.unwrap();
    until(&mut stream, "event: state.changed\ndata: {\"kind\":\"state.changed\"}\n\n").await;
    drop(stream);
    subscribed.events.closed().await;
}

#[actix_web::test]
async fn streams_end_when_the_daemon_stops_and_do_not_hold_it_up() {
    let server = start().await;
    let mut stream = listen(&server, "", "retry:").await;
    server.stopping.cancel();
    rest(&mut stream).await;
    server.handle.stop(true).await;
}

#[actix_web::test]
async fn there_are_so_many_streams_and_no_more_until_one_ends() {
    let server = start().await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(listen(&server, "", "retry:").await);
    }
    let answer = server.get("/api/v1/events", &server.shown_token()).await;
    assert_eq!(answer.refusal(), (503, "Busy".to_owned()));
    let gone = server.heard.listeners.lock().unwrap()[5].events.clone();
    streams.remove(5);
    gone.closed().await;
    listen(&server, "", "retry:").await;
}

#[actix_web::test]
async fn a_listener_that_does_not_read_loses_its_place() {
    let server = start_with(Limits { unread: SHORT, ..Limits::default() }, Duration::from_secs(30));
    let _silent = listen(&server, "", "retry:").await;
    let events = loop {
        let heard = server.heard.listeners.lock().unwrap().pop();
        if let Some(subscribed) = heard {
            break subscribed.events;
        }
        tokio::task::yield_now().await;
    };
    let event = Arc::new(HostEvent::TaskRemoved { task_id: "x".repeat(1 << 16) });
    // More than fits on the way to it; then the stream ends, and whoever speaks to it knows.
    while events.send(Arc::clone(&event)).await.is_ok() {}
}
