//! Frames in pieces, damaged frames, and random ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::Read;

use bytes::{BufMut, BytesMut};
use cofferdam_protocol::ckpt::*;
use proptest::prelude::*;
use tokio_util::codec::{Decoder, Encoder};

type ServerCodec = FrameCodec<WsCkptRequest, WsCkptResponse>;

fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

fn bytes_of<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(&mut bytes, message).unwrap();
    bytes
}

fn decode_one(bytes: &[u8]) -> Option<Frame<WsCkptRequest>> {
    ServerCodec::new().decode(&mut BytesMut::from(bytes)).unwrap()
}

#[test]
fn a_frame_may_arrive_byte_by_byte_and_the_next_right_behind_it() {
    let first = WsCkptRequest::Init { workspace: "/home/user/project".to_owned() };
    let mut wire = bytes_of(&first);
    wire.extend(bytes_of(&WsCkptRequest::Config));
    let (mut codec, mut buffer, mut got) = (ServerCodec::new(), BytesMut::new(), Vec::new());
    for byte in wire {
        buffer.put_u8(byte);
        while let Some(frame) = codec.decode(&mut buffer).unwrap() {
            match frame {
                Frame::Message(message) => got.push(message),
                Frame::Malformed(error) => panic!("{error}"),
            }
        }
    }
    assert_eq!(got, [first, WsCkptRequest::Config]);
    assert!(codec.decode_eof(&mut buffer).unwrap().is_none());
}

#[test]
fn a_length_over_the_limit_is_refused_with_the_contracts_words() {
    for (length, text) in [
        (16_777_217, "Frame too large: 16777217 bytes (max 16777216)"),
        (u32::MAX, "Frame too large: 4294967295 bytes (max 16777216)"),
    ] {
        let mut buffer = BytesMut::from(length.to_le_bytes().as_slice());
        assert_eq!(ServerCodec::new().decode(&mut buffer).unwrap_err().to_string(), text);
    }
}

#[test]
fn a_length_at_the_limit_is_waited_for_without_taking_memory() {
    let mut buffer = BytesMut::new();
    buffer.put_u32_le(WsCkptRequest::LIMIT);
    assert!(ServerCodec::new().decode(&mut buffer).unwrap().is_none());
    assert!(buffer.capacity() <= 16 * 1024, "{}", buffer.capacity());
}

#[test]
fn a_stream_that_ends_between_frames_is_told_apart_from_one_that_ends_inside() {
    let whole = bytes_of(&WsCkptRequest::List { workspace: None, format: None });
    assert!(read_message::<WsCkptRequest>(&mut &[][..]).unwrap().is_none());
    for cut in 1..whole.len() {
        let piece = &whole[..cut];
        let error = read_message::<WsCkptRequest>(&mut &*piece).unwrap_err();
        assert!(matches!(error, FrameError::Truncated), "{cut}: {error}");
        let error = ServerCodec::new().decode_eof(&mut BytesMut::from(piece)).unwrap_err();
        assert!(matches!(error, FrameError::Truncated), "{cut}: {error}");
    }
}

#[test]
fn a_client_leaves_the_payload_behind_an_absurd_length_unread() {
    let prefix = (WsCkptResponse::LIMIT + 1).to_le_bytes();
    let mut stream = prefix.chain(&b"payload"[..]);
    let error = read_message::<WsCkptResponse>(&mut stream).unwrap_err();
    assert!(matches!(error, FrameError::TooLarge { length: 67_108_865, max: 67_108_864 }), "{error}");
    assert_eq!(stream.into_inner().1, b"payload");
}

#[test]
fn payloads_that_are_no_request_are_malformed_and_the_next_frame_is_read() {
    let init = |workspace: &[u8]| {
        let mut payload = vec![0, 0, 0, 0];
        payload.extend_from_slice(&(workspace.len() as u64).to_le_bytes());
        payload.extend_from_slice(workspace);
        payload
    };
    let mut absurd = vec![0, 0, 0, 0];
    absurd.extend_from_slice(&u64::MAX.to_le_bytes());
    let mut bad_bool =
        bytes_of(&WsCkptRequest::Delete { workspace: None, snapshot: "s".into(), force: true });
    *bad_bool.last_mut().unwrap() = 2;
    for (name, payload) in [
        ("nothing", vec![]),
        ("an unknown variant", vec![12, 0, 0, 0]),
        ("half a variant", vec![0, 0]),
        ("text that is not UTF-8", init(b"/\xff")),
        ("a length beyond the frame", absurd),
        ("a bad option tag", vec![6, 0, 0, 0, 2]),
        ("a bad bool", bad_bool.split_off(4)),
    ] {
        let mut buffer = BytesMut::from(framed(&payload).as_slice());
        buffer.extend_from_slice(&bytes_of(&WsCkptRequest::Config));
        let mut codec = ServerCodec::new();
        assert!(matches!(codec.decode(&mut buffer).unwrap(), Some(Frame::Malformed(_))), "{name}");
        let next = codec.decode(&mut buffer).unwrap();
        assert!(matches!(next, Some(Frame::Message(WsCkptRequest::Config))), "{name}");
    }
}

#[test]
fn bytes_behind_a_request_within_its_frame_are_ignored() {
    let frame = framed(&[8, 0, 0, 0, 0xde, 0xad]);
    assert!(matches!(decode_one(&frame), Some(Frame::Message(WsCkptRequest::Config))));
}

#[test]
fn a_config_report_whose_retention_is_no_duration_is_refused_whole() {
    let report = ConfigReport {
        mount_path: String::new(),
        socket_path: String::new(),
        log_level: String::new(),
        auto_cleanup: false,
        auto_cleanup_keep: "30d".parse().unwrap(),
        auto_cleanup_interval_secs: 0,
        health_check_interval_secs: 0,
        img_size: 0,
        img_max_percent: 0.0,
    };
    let mut frame = bytes_of(&WsCkptResponse::ConfigOk { config: report });
    let unit = frame.windows(3).position(|w| w == b"30d").unwrap() + 2;
    frame[unit] = b'x';
    let error = read_message::<WsCkptResponse>(&mut frame.as_slice()).unwrap_err();
    assert!(matches!(error, FrameError::Malformed(_)), "{error}");
}

#[test]
fn a_response_over_the_limit_is_refused_and_nothing_of_it_is_written() {
    let huge = WsCkptResponse::CheckpointSkipped { reason: "x".repeat(WsCkptResponse::LIMIT as usize) };
    let mut buffer = BytesMut::new();
    let error = ServerCodec::new().encode(&huge, &mut buffer).unwrap_err();
    assert!(matches!(error, FrameError::Unsendable(_)), "{error}");
    assert!(buffer.is_empty());
    let mut written = Vec::new();
    assert!(write_message(&mut written, &huge).is_err());
    assert!(written.is_empty());
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn request() -> impl Strategy<Value = WsCkptRequest> {
    use WsCkptRequest::*;
    let maybe = || proptest::option::of(text());
    prop_oneof![
        text().prop_map(|workspace| Init { workspace }),
        (text(), text(), maybe(), maybe(), any::<bool>()).prop_map(
            |(workspace, id, message, metadata, pin)| {
                Checkpoint { workspace, id, message, metadata, pin }
            }
        ),
        (text(), text()).prop_map(|(workspace, to)| Rollback { workspace, to }),
        (maybe(), text(), any::<bool>()).prop_map(|(workspace, snapshot, force)| Delete {
            workspace,
            snapshot,
            force
        }),
        (maybe(), maybe()).prop_map(|(workspace, format)| List { workspace, format }),
        (text(), text(), text()).prop_map(|(workspace, from, to)| Diff { workspace, from, to }),
        maybe().prop_map(|workspace| Status { workspace }),
        (text(), any::<Option<u32>>()).prop_map(|(workspace, keep)| Cleanup { workspace, keep }),
        Just(Config),
        Just(ReloadConfig),
        text().prop_map(|workspace| Recover { workspace }),
        Just(HealthAdvisory),
    ]
}

fn snapshot() -> impl Strategy<Value = SnapshotEntry> {
    let maybe = || proptest::option::of(text());
    (text(), text(), maybe(), maybe(), any::<bool>(), any::<i64>(), any::<bool>()).prop_map(
        |(id, workspace, message, metadata, pinned, nanos, missing)| {
            let created_at = Timestamp::from_unix_nanos(nanos);
            SnapshotEntry {
                id,
                workspace,
                meta: SnapshotMeta { message, metadata, pinned, created_at, missing },
            }
        },
    )
}

fn change() -> impl Strategy<Value = DiffEntry> {
    let kind = prop_oneof![
        Just(DiffKind::Added),
        Just(DiffKind::Modified),
        Just(DiffKind::Deleted),
        Just(DiffKind::Renamed)
    ];
    (text(), kind, proptest::option::of(text())).prop_map(|(path, change_type, detail)| DiffEntry {
        path,
        change_type,
        detail,
    })
}

fn retention() -> impl Strategy<Value = CleanupRetention> {
    let age = (any::<u32>(), "[smhdwSMHDW]", "[ \t]{0,2}").prop_map(|(n, unit, blank)| {
        CleanupRetention::Age(RetentionAge::new(format!("{blank}{n}{unit}{blank}")).unwrap())
    });
    prop_oneof![any::<u32>().prop_map(CleanupRetention::Count), age]
}

fn report() -> impl Strategy<Value = ConfigReport> {
    let texts = (text(), text(), text());
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), -1e300..1e300f64);
    (texts, any::<bool>(), retention(), numbers).prop_map(
        |((mount_path, socket_path, log_level), auto_cleanup, auto_cleanup_keep, numbers)| ConfigReport {
            mount_path,
            socket_path,
            log_level,
            auto_cleanup,
            auto_cleanup_keep,
            auto_cleanup_interval_secs: numbers.0,
            health_check_interval_secs: numbers.1,
            img_size: numbers.2,
            img_max_percent: numbers.3,
        },
    )
}

fn response() -> impl Strategy<Value = WsCkptResponse> {
    use WsCkptResponse::*;
    let several = || proptest::collection::vec(text(), 0..5);
    let code = proptest::sample::select(WsCkptErrorCode::ALL.to_vec());
    let workspace = (text(), text(), any::<u32>()).prop_map(|(ws_id, path, snapshot_count)| WorkspaceInfo {
        ws_id,
        path,
        snapshot_count,
    });
    let status = (any::<u64>(), proptest::collection::vec(workspace, 0..5), any::<u64>(), any::<u64>());
    prop_oneof![
        text().prop_map(|ws_id| InitOk { ws_id }),
        text().prop_map(|snapshot_id| CheckpointOk { snapshot_id }),
        (text(), text()).prop_map(|(from, to)| RollbackOk { from, to }),
        text().prop_map(|target| DeleteOk { target }),
        (code, text()).prop_map(|(code, message)| Error { code, message }),
        proptest::collection::vec(snapshot(), 0..5).prop_map(|snapshots| ListOk { snapshots }),
        proptest::collection::vec(change(), 0..5).prop_map(|changes| DiffOk { changes }),
        status.prop_map(|(uptime_secs, workspaces, fs_total_bytes, fs_used_bytes)| StatusOk {
            report: StatusReport { uptime_secs, workspaces, fs_total_bytes, fs_used_bytes }
        }),
        several().prop_map(|removed| CleanupOk { removed }),
        report().prop_map(|config| ConfigOk { config }),
        Just(ReloadConfigOk),
        text().prop_map(|reason| CheckpointSkipped { reason }),
        text().prop_map(|workspace| RecoverOk { workspace }),
        (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(count, fs_total_bytes, fs_used_bytes)| {
            HealthAdvisoryOk { over_limit_workspace_count: count, fs_total_bytes, fs_used_bytes }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_survives_the_wire(request in request()) {
        let read = read_message::<WsCkptRequest>(&mut bytes_of(&request).as_slice()).unwrap();
        prop_assert_eq!(read, Some(request));
    }

    #[test]
    fn a_response_survives_the_wire(response in response()) {
        let read = read_message::<WsCkptResponse>(&mut bytes_of(&response).as_slice()).unwrap();
        prop_assert_eq!(read, Some(response));
    }

    #[test]
    fn random_payloads_are_read_or_refused(payload in proptest::collection::vec(any::<u8>(), 0..200), tag in 0u8..16) {
        let mut plausible = vec![tag, 0, 0, 0];
        plausible.extend_from_slice(&payload);
        for bytes in [payload, plausible] {
            let frame = framed(&bytes);
            prop_assert!(decode_one(&frame).is_some());
            let _ = read_message::<WsCkptResponse>(&mut frame.as_slice());
        }
    }

    #[test]
    fn a_damaged_response_is_read_or_refused(response in response(), at in any::<usize>(), byte in any::<u8>()) {
        let mut frame = bytes_of(&response);
        let at = 4 + at % (frame.len() - 4);
        frame[at] = byte;
        let _ = read_message::<WsCkptResponse>(&mut frame.as_slice());
    }

    #[test]
    fn random_bytes_never_take_more_memory_than_they_are(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut buffer = BytesMut::from(bytes.as_slice());
        let mut codec = ServerCodec::new();
        while let Ok(Some(_)) = codec.decode(&mut buffer) {}
        prop_assert!(buffer.capacity() <= 16 * 1024);
    }
}
