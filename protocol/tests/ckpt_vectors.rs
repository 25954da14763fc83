//! The wire against frames recorded from the program whose protocol this is, and against its own frozen digest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use bytes::BytesMut;
use cofferdam_protocol::ckpt::*;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::codec::{Decoder, Encoder};

#[derive(Deserialize)]
struct Vector {
    name: String,
    kind: String,
    hex: String,
    json: Value,
}

impl Vector {
    fn bytes(&self) -> Vec<u8> {
        let digits = self.hex.as_bytes().chunks(2);
        digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }
}

const RECORDED: &str = include_str!("vectors/ws-ckpt-v1.json");

fn vectors() -> Vec<Vector> {
    serde_json::from_str(RECORDED).unwrap()
}

/// Both codecs read the frame as `json` and write it back byte for byte.
fn check<M>(vector: &Vector)
where
    M: Message + std::fmt::Debug + PartialEq,
{
    let frame = vector.bytes();
    let name = &vector.name;

    let blocking: M = read_message(&mut frame.as_slice()).unwrap().unwrap();
    assert_eq!(serde_json::to_value(&blocking).unwrap(), vector.json, "{name}");
    assert_eq!(serde_json::from_value::<M>(vector.json.clone()).unwrap(), blocking, "{name}");
    let mut written = Vec::new();
    write_message(&mut written, &blocking).unwrap();
    assert_eq!(written, frame, "{name}");

    let mut codec = FrameCodec::<M, M>::new();
    let mut buffer = BytesMut::from(frame.as_slice());
    match codec.decode(&mut buffer).unwrap() {
        Some(Frame::Message(message)) => assert_eq!(message, blocking, "{name}"),
        other => panic!("{name}: {other:?}"),
    }
    assert!(buffer.is_empty(), "{name}");
    codec.encode(&blocking, &mut buffer).unwrap();
    assert_eq!(buffer, frame, "{name}");
}

#[test]
fn every_recorded_frame_is_read_as_its_value_and_written_as_its_bytes() {
    for vector in vectors() {
        match vector.kind.as_str() {
            "request" => check::<WsCkptRequest>(&vector),
            "response" => check::<WsCkptResponse>(&vector),
            "error_code" => check_code(&vector),
            other => panic!("{}: unknown kind {other}", vector.name),
        }
    }
}

/// A bare code is the second word of an `Error` response.
fn check_code(vector: &Vector) {
    let code: WsCkptErrorCode = serde_json::from_value(vector.json.clone()).unwrap();
    let mut written = Vec::new();
    write_message(&mut written, &WsCkptResponse::Error { code, message: String::new() }).unwrap();
    assert_eq!(written[8..12], vector.bytes()[4..], "{}", vector.name);
}

#[test]
fn every_variant_has_a_recorded_frame() {
    let mut seen = BTreeSet::new();
    for vector in vectors() {
        // The variant's index, behind the length.
        let index = vector.bytes()[4];
        seen.insert((vector.kind.clone(), index));
        if let Some(changes) = vector.json.pointer("/DiffOk/changes").and_then(Value::as_array) {
            seen.extend(changes.iter().map(|change| (change["change_type"].to_string(), 0)));
        }
    }
    for (kind, count) in [("request", 12), ("response", 14), ("error_code", 11)] {
        let missing: Vec<u8> = (0..count).filter(|i| !seen.contains(&(kind.to_owned(), *i))).collect();
        assert!(missing.is_empty(), "{kind}: no frame of {missing:?}");
    }
    for kind in ["\"Added\"", "\"Modified\"", "\"Deleted\"", "\"Renamed\""] {
        assert!(seen.contains(&(kind.to_owned(), 0)), "{kind}");
    }
}

#[test]
fn a_change_of_recorded_frames_needs_a_new_wire_version() {
    const FROZEN: [(u32, u64); 1] = [(1, 0x5f59_ddd6_4c15_61c8)];
    // FNV-1a: it only has to notice a change.
    let digest = RECORDED.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(FROZEN.last(), Some(&(WIRE_VERSION, digest)), "{digest:#x}");
}
