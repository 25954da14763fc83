//! Requests that memory answers, beside a server that does nothing but answer; and memory in the long run.

use std::path::Path;

use cofferdam_protocol::ckpt::{WsCkptRequest, WsCkptResponse, write_message};
use cofferdam_tests::process::resident_kib;
use cofferdam_tests::wire::{Wire, ask};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use crate::site;
use crate::table::{Times, head, limit, line};

/// Takes frames and answers each with the same bytes, on the daemon's runtime: one thread of tokio.
fn echo(socket: &Path, answers: Vec<Vec<u8>>) {
    let socket = socket.to_owned();
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = UnixListener::bind(socket).unwrap();
            ready.send(()).unwrap();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut length = [0; 4];
                while stream.read_exact(&mut length).await.is_ok() {
                    let mut request = vec![0; u32::from_le_bytes(length) as usize];
                    stream.read_exact(&mut request).await.unwrap();
                    stream.write_all(&answer).await.unwrap();
                }
            }
        });
    });
    wait.recv().unwrap();
}

fn frame_of(response: &WsCkptResponse) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(&mut bytes, response).unwrap();
    bytes
}

pub(crate) fn measure() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("ws");
    head("requests, one connection each, one after the other");
    (0..1000).for_each(|n| daemon.checkpoint(&ws, &format!("snapshot-{n}")));
    let requests = [
        ("Config", WsCkptRequest::Config, 2000, Some(1.3)),
        ("List of 1 000 snapshots", ask::list(&ws), 200, None),
    ];
    let answers = requests.iter().map(|(_, request, ..)| frame_of(&daemon.call(request))).collect();
    let rival = site.path("echo.sock");
    echo(&rival, answers);
    for (what, request, many, target) in requests {
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        let (mut wire, mut bare) = (daemon.connect(), Wire::connect(&rival));
        for _ in 0..many {
            ours.add(|| wire.call(&request));
            theirs.add(|| bare.call(&request));
        }
        line(what, "ms", ours.ms(), ("bare echo server", theirs.ms()), target);
    }
    let (mut ours, request) = (Times::default(), frame_of_list(&ws));
    let mut wire = daemon.connect();
    for _ in 0..500 {
        // Without decoding, which is the client's work.
        ours.add(|| wire.call_raw(&request));
    }
    println!("List of 1 000 snapshots: {:.0}/s, at least 2400/s", 1e3 / ours.ms());

    let mut wire = daemon.connect();
    for requests in [10_000, 990_000] {
        (0..requests).for_each(|_| drop(wire.call(&WsCkptRequest::Config)));
        limit(
            &format!("memory after {requests} more Config"),
            "MB",
            resident_kib(daemon.pid()) as f64 / 1e3,
            None,
        );
    }
    for thousands in [1, 9] {
        for n in 0..thousands * 1000 {
            daemon.checkpoint(&ws, &format!("more-{thousands}-{n}"));
        }
        let memory = resident_kib(daemon.pid()) as f64 / 1e3;
        limit(&format!("memory after {thousands}000 more checkpoints"), "MB", memory, None);
    }
}

fn frame_of_list(ws: &Path) -> Vec<u8> {
    cofferdam_tests::wire::frame_of(&ask::list(ws))
}
