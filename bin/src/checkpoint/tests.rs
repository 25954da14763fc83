//! The client against a socket on which the test plays the daemon.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::JoinHandle;

use cofferdam_protocol::ckpt::{CleanupRetention, Timestamp};

use super::*;

/// A socket in a directory of its own.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("ckpt.sock")
    }

    fn client(&self, timeout_ms: u64) -> CkptClient {
        CkptClient::with_timeout(self.path(), timeout_ms)
    }

    /// Serves one connection with `serve` on a thread.
    fn daemon<T: Send + 'static>(
        &self,
        serve: impl FnOnce(UnixStream) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let listener = UnixListener::bind(self.path()).unwrap();
        std::thread::spawn(move || serve(listener.accept().unwrap().0))
    }
}

/// What `call` returns when the daemon answers with `response`, and the request the daemon saw.
fn exchange<T>(
    response: WsCkptResponse,
    call: impl FnOnce(&CkptClient) -> Result<T>,
) -> (Result<T>, WsCkptRequest) {
    let place = Place::new();
    let daemon = place.daemon(move |mut stream| {
        let request = read_message(&mut stream).unwrap().unwrap();
        write_message(&mut stream, &response).unwrap();
        request
    });
    let answer = call(&place.client(10_000));
    (answer, daemon.join().unwrap())
}

fn entry(id: &str) -> SnapshotEntry {
    SnapshotEntry {
        id: id.to_owned(),
        workspace: "/p".to_owned(),
        meta: SnapshotMeta {
            message: None,
            metadata: None,
            pinned: false,
            created_at: Timestamp::from_unix_nanos(0),
            missing: false,
        },
    }
}

#[test]
fn every_call_sends_its_request_and_returns_its_answer() {
    use WsCkptRequest as Q;
    use WsCkptResponse as A;
    let p = || "/p".to_owned();
    let s = || "s".to_owned();

    let (got, sent) = exchange(A::InitOk { ws_id: "ws-6d5aaa".into() }, |c| c.init("/p"));
    assert_eq!((got.unwrap().as_str(), sent), ("ws-6d5aaa", Q::Init { workspace: p() }));

    let (got, sent) = exchange(A::CheckpointOk { snapshot_id: s() }, |c| {
        c.create("/p", "s", Some("why"), Some("{\"a\":1}"), true)
    });
    assert_eq!(got.unwrap(), Checkpointed::Created { snapshot_id: s() });
    let expected = Q::Checkpoint {
        workspace: p(),
        id: s(),
        message: Some("why".into()),
        metadata: Some("{\"a\":1}".into()),
        pin: true,
    };
    assert_eq!(sent, expected);

    let (got, _) =
        exchange(A::CheckpointSkipped { reason: "Empty".into() }, |c| c.create("/p", "s", None, None, false));
    assert_eq!(got.unwrap(), Checkpointed::Skipped { reason: "Empty".into() });

    let (got, sent) =
        exchange(A::RollbackOk { from: "ws-6d5aaa".into(), to: "snap".into() }, |c| c.restore("/p", "s"));
    assert_eq!(got.unwrap(), Restored { ws_id: "ws-6d5aaa".into(), snapshot_id: "snap".into() });
    assert_eq!(sent, Q::Rollback { workspace: p(), to: s() });

    let (got, sent) = exchange(A::DeleteOk { target: "snap".into() }, |c| c.delete(None, "s", true));
    assert_eq!(
        (got.unwrap().as_str(), sent),
        ("snap", Q::Delete { workspace: None, snapshot: s(), force: true })
    );

    let (got, sent) = exchange(A::ListOk { snapshots: vec![entry("s")] }, |c| c.list(Some("/p")));
    assert_eq!((got.unwrap(), sent), (vec![entry("s")], Q::List { workspace: Some(p()), format: None }));

    let change = DiffEntry { path: "a".into(), change_type: DiffKind::Added, detail: None };
    let (got, sent) = exchange(A::DiffOk { changes: vec![change.clone()] }, |c| c.diff("/p", "s", "@live"));
    assert_eq!(
        (got.unwrap(), sent),
        (vec![change], Q::Diff { workspace: p(), from: s(), to: "@live".into() })
    );

    let report = StatusReport { uptime_secs: 1, workspaces: vec![], fs_total_bytes: 2, fs_used_bytes: 1 };
    let (got, sent) = exchange(A::StatusOk { report: report.clone() }, |c| c.status(None));
    assert_eq!((got.unwrap(), sent), (report, Q::Status { workspace: None }));

    let (got, sent) = exchange(A::CleanupOk { removed: vec![s()] }, |c| c.cleanup("/p", Some(5)));
    assert_eq!((got.unwrap(), sent), (vec![s()], Q::Cleanup { workspace: p(), keep: Some(5) }));

    let config = ConfigReport {
        mount_path: "/var/lib/cofferdam".into(),
        socket_path: "/run/ws-ckpt/ws-ckpt.sock".into(),
        log_level: "info".into(),
        auto_cleanup: false,
        auto_cleanup_keep: CleanupRetention::Count(20),
        auto_cleanup_interval_secs: 86_400,
        health_check_interval_secs: 300,
        img_size: 0,
        img_max_percent: 0.0,
    };
    let (got, sent) = exchange(A::ConfigOk { config: config.clone() }, CkptClient::config);
    assert_eq!((got.unwrap(), sent), (config, Q::Config));

    let (got, sent) = exchange(A::ReloadConfigOk, CkptClient::reload);
    got.unwrap();
    assert_eq!(sent, Q::ReloadConfig);

    let (got, sent) = exchange(A::RecoverOk { workspace: p() }, |c| c.recover("ws-6d5aaa"));
    assert_eq!((got.unwrap(), sent), (p(), Q::Recover { workspace: "ws-6d5aaa".into() }));

    let figures = A::HealthAdvisoryOk { over_limit_workspace_count: 1, fs_total_bytes: 10, fs_used_bytes: 9 };
    let (got, sent) = exchange(figures, CkptClient::health);
    let expected = Health { over_limit_workspace_count: 1, fs_total_bytes: 10, fs_used_bytes: 9 };
    assert_eq!((got.unwrap(), sent), (expected, Q::HealthAdvisory));
}

#[test]
fn an_error_of_the_daemon_keeps_its_code_and_words() {
    let refusal = WsCkptResponse::Error {
        code: WsCkptErrorCode::SnapshotNotFound,
        message: "snapshot not found: zzz".into(),
    };
    let (got, _) = exchange(refusal, |c| c.restore("/p", "zzz"));
    let error = got.unwrap_err();
    assert_eq!(error.code(), Some(WsCkptErrorCode::SnapshotNotFound));
    assert_eq!(error.to_string(), "snapshot not found: zzz");
}

#[test]
fn an_answer_to_another_request_is_a_protocol_error() {
    let (got, _) = exchange(WsCkptResponse::ReloadConfigOk, |c| c.list(None));
    assert!(matches!(got.unwrap_err(), CkptError::Protocol(_)));
}

#[test]
fn no_daemon_is_a_connection_error_and_not_available() {
    let place = Place::new();
    let client = place.client(1000);
    assert!(!client.is_available());
    let error = client.list(None).unwrap_err();
    assert!(matches!(error, CkptError::Connection { .. }), "{error}");
    assert!(error.to_string().contains("ckpt.sock"), "{error}");
}

#[test]
fn a_listening_socket_is_available() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.path()).unwrap();
    assert!(place.client(1000).is_available());
}

#[test]
fn a_silent_daemon_is_a_timeout() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.path()).unwrap();
    let error = place.client(30).list(None).unwrap_err();
    assert!(matches!(error, CkptError::Timeout(limit) if limit.as_millis() == 30), "{error}");
}

#[test]
fn a_daemon_that_dribbles_its_answer_does_not_stretch_the_deadline() {
    let place = Place::new();
    let daemon = place.daemon(|mut stream| {
        stream.write_all(&1000u32.to_le_bytes()).unwrap();
        // Each byte comes well within the limit, all of them would take for ever.
        let mut byte = [0];
        stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        while stream.write_all(&[0]).is_ok() {
            let _ = stream.read(&mut byte);
        }
    });
    let error = place.client(60).health().unwrap_err();
    assert!(matches!(error, CkptError::Timeout(_)), "{error}");
    daemon.join().unwrap();
}

#[test]
fn a_daemon_that_does_not_accept_is_a_timeout_too() {
    let place = Place::new();
    let address = rustix::net::SocketAddrUnix::new(place.path()).unwrap();
    let kind = rustix::net::SocketType::STREAM;
    let listener = rustix::net::socket(rustix::net::AddressFamily::UNIX, kind, None).unwrap();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    // Fills the backlog.
    let _queued = UnixStream::connect(place.path()).unwrap();
    let error = place.client(30).list(None).unwrap_err();
    assert!(matches!(error, CkptError::Timeout(_)), "{error}");
}

#[test]
fn an_answer_that_stops_half_way_is_a_protocol_error() {
    let place = Place::new();
    let daemon = place.daemon(|mut stream| {
        let _: Option<WsCkptRequest> = read_message(&mut stream).unwrap();
        stream.write_all(&[24, 0, 0, 0, 13]).unwrap();
    });
    let error = place.client(10_000).health().unwrap_err();
    assert!(matches!(error, CkptError::Protocol(_)), "{error}");
    daemon.join().unwrap();
}

#[test]
fn a_connection_closed_without_an_answer_is_a_connection_error() {
    let place = Place::new();
    let daemon = place.daemon(|mut stream| {
        let _: Option<WsCkptRequest> = read_message(&mut stream).unwrap();
    });
    let error = place.client(10_000).health().unwrap_err();
    assert!(matches!(error, CkptError::Connection { .. }), "{error}");
    daemon.join().unwrap();
}

#[test]
fn an_absurd_length_is_a_protocol_error() {
    let place = Place::new();
    let daemon = place.daemon(|mut stream| {
        let _: Option<WsCkptRequest> = read_message(&mut stream).unwrap();
        stream.write_all(&u32::MAX.to_le_bytes()).unwrap();
    });
    let error = place.client(10_000).health().unwrap_err();
    assert!(error.to_string().contains("Frame too large"), "{error}");
    daemon.join().unwrap();
}

#[test]
fn a_refusal_before_the_whole_request_was_read_is_still_heard() {
    let place = Place::new();
    let daemon = place.daemon(|mut stream| {
        let mut prefix = [0; 4];
        stream.read_exact(&mut prefix).unwrap();
        let refusal =
            WsCkptResponse::Error { code: WsCkptErrorCode::InternalError, message: "too much".into() };
        write_message(&mut stream, &refusal).unwrap();
    });
    let huge = "x".repeat(8 << 20);
    let error = place.client(10_000).create("/p", "s", Some(&huge), None, false).unwrap_err();
    assert_eq!(error.to_string(), "too much");
    daemon.join().unwrap();
}

#[test]
fn a_request_over_the_limit_is_not_sent() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.path()).unwrap();
    let huge = "x".repeat(17 << 20);
    let error = place.client(10_000).create("/p", "s", Some(&huge), None, false).unwrap_err();
    assert!(matches!(error, CkptError::Protocol(_)), "{error}");
}
