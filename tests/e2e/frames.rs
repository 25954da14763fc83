//! What the socket makes of bytes that are no request: a typed error while the frame's end is known, else a clean
//! close; never a crash, a hang or growing memory.

use std::time::Duration;

use cofferdam_protocol::ckpt::{WsCkptErrorCode, WsCkptRequest, WsCkptResponse};
use cofferdam_tests::process::{open_files, resident_kib};
use cofferdam_tests::project::noise;
use cofferdam_tests::site::Daemon;
use cofferdam_tests::wire::{Wire, ask, error_of, frame, frame_of};

use crate::site;

/// A string as the wire writes it.
fn text(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes(), value].concat()
}

fn payload(index: u32, fields: &[&[u8]]) -> Vec<u8> {
    [&index.to_le_bytes(), fields.concat().as_slice()].concat()
}

#[track_caller]
fn still_serves(daemon: &Daemon) {
    assert!(matches!(daemon.call(&WsCkptRequest::Config), WsCkptResponse::ConfigOk { .. }));
}

/// Written out by hand, with no help from the codec that both sides share.
#[test]
fn the_bytes_on_the_socket_are_those_of_the_contract() {
    let site = site();
    let daemon = site.start();
    let not_found =
        [b"\x2b\0\0\0\x04\0\0\0\0\0\0\0\x1b\0\0\0\0\0\0\0".as_slice(), b"workspace not found: /no/ws"]
            .concat();
    let exchanges: &[(&str, &[u8], &[u8])] = &[
        ("List of nothing", b"\x06\0\0\0\x04\0\0\0\0\0", b"\x0c\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0"),
        ("ReloadConfig", b"\x04\0\0\0\x09\0\0\0", b"\x04\0\0\0\x0a\0\0\0"),
        ("Status", b"\x13\0\0\0\x06\0\0\0\x01\x06\0\0\0\0\0\0\0/no/ws", &not_found),
        ("Recover", b"\x12\0\0\0\x0a\0\0\0\x06\0\0\0\0\0\0\0/no/ws", &not_found),
    ];
    let mut wire = daemon.connect();
    for (what, sent, expected) in exchanges {
        wire.send_bytes(sent);
        assert_eq!(wire.receive_bytes(expected.len()), *expected, "{what}");
    }
    wire.end();
    assert_eq!(wire.receive(), None, "nothing more was sent");
}

#[test]
fn a_frame_that_is_no_request_gets_a_typed_error_and_the_connection_goes_on() {
    let site = site();
    let daemon = site.start();
    let huge = u64::MAX.to_le_bytes();
    let large = (1_u64 << 33).to_le_bytes();
    let cases: &[(&str, Vec<u8>)] = &[
        ("a frame without a byte", vec![]),
        ("half a variant", vec![8, 0]),
        ("the variant after the last", payload(12, &[])),
        ("the last variant of all", payload(u32::MAX, &[])),
        ("Init without its field", payload(0, &[])),
        ("a text that is shorter than it says", payload(0, &[&5_u64.to_le_bytes(), b"/ab"])),
        ("a text of 2^64 bytes", payload(0, &[&huge, b"/ab"])),
        ("a text of 8 GiB", payload(0, &[&large])),
        ("a text that is not UTF-8", payload(0, &[&text(b"/\xff\xfe")])),
        ("a lone surrogate", payload(0, &[&text(b"/\xed\xa0\x80")])),
        ("a bool of 2", payload(1, &[&text(b"/w"), &text(b"a"), &[0], &[0], &[2]])),
        ("an option tag of 2", payload(4, &[&[2]])),
        ("an option tag of 255", payload(6, &[&[255]])),
        ("a request cut in its last field", payload(1, &[&text(b"/w"), &text(b"a"), &[0], &[0]])),
        ("an option without its value", payload(7, &[&text(b"/w"), &[1]])),
    ];
    let mut wire = daemon.connect();
    for (what, payload) in cases {
        wire.send_bytes(&frame(payload));
        let answer = wire.receive().unwrap_or_else(|| panic!("{what}: closed"));
        let (code, message) = error_of(answer);
        assert_eq!(code, WsCkptErrorCode::InternalError, "{what}: {message}");
        assert!(!message.is_empty() && message.len() < 300, "{what}: {message}");
        let answer = wire.call(&WsCkptRequest::HealthAdvisory);
        assert!(matches!(answer, WsCkptResponse::HealthAdvisoryOk { .. }), "{what}: {answer:?}");
    }
}

#[test]
fn bytes_after_a_request_within_its_frame_are_ignored() {
    let site = site();
    let daemon = site.start();
    let mut wire = daemon.connect();
    wire.send_bytes(&frame(&payload(8, &[b"a field of the future"])));
    assert!(matches!(wire.receive(), Some(WsCkptResponse::ConfigOk { .. })));
    assert!(matches!(wire.call(&WsCkptRequest::Config), WsCkptResponse::ConfigOk { .. }));
}

#[test]
fn a_frame_over_the_limit_is_refused_by_its_length_alone() {
    let site = site();
    let daemon = site.start();
    for length in [16_777_217_u32, 1 << 30, u32::MAX] {
        let mut wire = daemon.connect();
        wire.send_bytes(&length.to_le_bytes());
        let (code, message) = error_of(wire.receive().unwrap());
        assert_eq!(code, WsCkptErrorCode::InternalError);
        assert_eq!(message, format!("Frame too large: {length} bytes (max 16777216)"));
        assert_eq!(wire.receive(), None, "closed after {length}");
    }
}

#[test]
fn the_largest_request_is_taken_and_a_list_too_long_for_a_frame_is_a_typed_error() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let message = "m".repeat(15 << 20);
    for n in 0..4 {
        daemon.call(&ask::checkpoint_with(&ws, &format!("c{n}"), Some(&message), None, false));
    }
    assert_eq!(daemon.ids(&ws).len(), 4);
    // To the byte: a request of exactly 16 MiB.
    let empty = frame_of(&ask::checkpoint_with(&ws, "c4", Some(""), None, false)).len() - 4;
    let filler = "m".repeat((16 << 20) - empty);
    let exact = ask::checkpoint_with(&ws, "c4", Some(&filler), None, false);
    assert_eq!(frame_of(&exact).len() - 4, 16 << 20);
    assert_eq!(daemon.call(&exact), WsCkptResponse::CheckpointOk { snapshot_id: "c4".into() });
    let (code, message) = daemon.refused(&ask::list(&ws));
    assert_eq!(code, WsCkptErrorCode::InternalError, "{message}");
    daemon.call(&ask::delete(&ws, "c4", false));
    assert_eq!(daemon.ids(&ws).len(), 4);
}

#[test]
fn a_connection_that_ends_inside_a_frame_is_closed_without_effect() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    let whole = frame_of(&ask::checkpoint(&ws, "one"));
    for cut in 0..whole.len() {
        let mut wire = daemon.connect();
        wire.send_bytes(&whole[..cut]);
        wire.end();
        match wire.receive() {
            None => {}
            Some(WsCkptResponse::Error { .. }) => assert_eq!(wire.receive(), None, "cut at {cut}"),
            Some(other) => panic!("cut at {cut}: {other:?}"),
        }
    }
    assert_eq!(daemon.refused(&ask::list(&ws)).0, WsCkptErrorCode::WorkspaceNotFound);
    let mut wire = daemon.connect();
    for byte in &whole {
        wire.send_bytes(&[*byte]);
    }
    assert!(
        matches!(wire.receive(), Some(WsCkptResponse::CheckpointOk { .. })),
        "byte by byte is a request as well"
    );
}

#[test]
fn random_bytes_end_a_connection_at_most() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    for seed in 1..=150 {
        let bytes = noise(seed * 7);
        let mut wire = daemon.connect();
        // As a stream without frames, and as a frame of its own.
        wire.send_bytes(&if seed % 2 == 0 { bytes.clone() } else { frame(&bytes) });
        wire.end();
        while wire.receive().is_some() {}
    }
    // A sound request with one byte changed, at each place in turn.
    let sound = frame_of(&ask::diff("/no/such/workspace", "one", "two"));
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        let mut wire = daemon.connect();
        wire.send_bytes(&bytes);
        wire.end();
        while wire.receive().is_some() {}
    }
    assert_eq!(daemon.ids(&ws), ["one"]);
}

#[test]
fn two_hundred_announced_frames_that_never_come_cost_no_memory_and_hold_nobody_up() {
    let site = site();
    let daemon = site.start();
    still_serves(&daemon);
    let before = resident_kib(daemon.pid());
    // The longest that is allowed: 200 of them would be 3 GiB.
    let announced = (16_u32 << 20).to_le_bytes();
    let silent: Vec<Wire> = (0..200)
        .map(|n| {
            let mut wire = daemon.connect();
            wire.send_bytes(&announced);
            if n % 2 == 0 {
                wire.send_bytes(&noise(100));
            }
            wire
        })
        .collect();
    for _ in 0..50 {
        still_serves(&daemon);
    }
    let grown = resident_kib(daemon.pid()).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB for 200 silent connections");
    drop(silent);
    for _ in 0..50 {
        still_serves(&daemon);
    }
}

#[test]
fn memory_and_descriptors_do_not_grow_with_the_number_of_requests() {
    let site = site();
    let daemon = site.start();
    let ws = site.workspace("project");
    daemon.checkpoint(&ws, "one");
    let round = || {
        for _ in 0..1500 {
            still_serves(&daemon);
        }
        let mut wire = daemon.connect();
        for _ in 0..1500 {
            wire.call(&ask::list(&ws));
        }
    };
    round();
    let (memory, files) = (resident_kib(daemon.pid()), open_files(daemon.pid()));
    round();
    let grown = resident_kib(daemon.pid()).saturating_sub(memory);
    assert!(grown < 2048, "{grown} KiB for 3000 requests");
    let more = open_files(daemon.pid()).saturating_sub(files);
    assert!(more < 10, "{more} descriptors for 3000 requests");
}

#[test]
fn a_half_sent_frame_does_not_keep_the_daemon_from_stopping() {
    let site = site();
    let daemon = site.start();
    let mut half = daemon.connect();
    half.send_bytes(&100_u32.to_le_bytes());
    let idle = daemon.connect();
    let asked = std::time::Instant::now();
    let (code, _) = daemon.stop();
    assert_eq!(code, 0);
    assert!(asked.elapsed() < Duration::from_secs(8), "it took {:?}", asked.elapsed());
    assert_eq!(half.receive(), None);
    drop(idle);
}
