//! A client of the control API: one request per connection, over HTTP/1.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_actors::session::recovery::{ClientError, SessionCore};
use cofferdam_protocol::host::HostMethod;
use cofferdam_protocol::session::{SessionData, SessionErrorCode, SessionRequest};
use cofferdam_web::ckpt::{
    CheckRequest, CheckSummary, LastRollbackReport, RestoreRequest, RestoredReport, SizeReport, TrashReport,
    UndoReport, UndoRequest, WarningsReport,
};
use cofferdam_web::{ConsoleLink, ErrorReport, SignedOut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// The most an answer may have.
const MAX_ANSWER: usize = 64 << 20;

/// Why the control API did not do something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Nobody answers there.
    #[error("cannot reach the daemon's control socket {}: {source}; it serves the daemon's own user", path.display())]
    Unreachable { path: PathBuf, source: io::Error },
    /// It took too long.
    #[error("no answer within {} ms; the daemon may still be working on it", .0.as_millis())]
    Timeout(Duration),
    /// The answer is no answer of this API.
    #[error("control API: {0}")]
    Protocol(String),
    /// The daemon refused.
    #[error("[{code}]: {message}")]
    Refused { code: String, message: String },
}

/// A client of one daemon's control API.
#[derive(Clone, Debug)]
pub(crate) struct ControlClient {
    path: PathBuf,
    timeout: Option<Duration>,
}

impl ControlClient {
    /// The client for a socket, with a deadline for each call.
    pub(crate) fn new(path: PathBuf, timeout: Option<Duration>) -> Self {
        Self { path, timeout }
    }

    /// Takes the newest rollback of a workspace back.
    pub(crate) fn undo(&self, workspace: &str) -> Result<UndoReport, ControlError> {
        self.post("/ckpt/undo", &UndoRequest { workspace: workspace.to_owned(), operation: None })
    }

    /// What is in the trash.
    pub(crate) fn trash(&self) -> Result<TrashReport, ControlError> {
        self.get("/ckpt/trash")
    }

    /// Brings something back from the trash.
    pub(crate) fn restore(&self, request: &RestoreRequest) -> Result<RestoredReport, ControlError> {
        self.post("/ckpt/trash/restore", request)
    }

    /// What a snapshot does not hold faithfully.
    pub(crate) fn warnings(&self, workspace: &str, snapshot: &str) -> Result<WarningsReport, ControlError> {
        let (workspace, snapshot) = (encoded(workspace), encoded(snapshot));
        self.get(&format!("/ckpt/workspaces/{workspace}/snapshots/{snapshot}/warnings"))
    }

    /// What the newest rollback or undo of a workspace did.
    pub(crate) fn last_rollback(&self, workspace: &str) -> Result<Option<LastRollbackReport>, ControlError> {
        self.get(&format!("/ckpt/workspaces/{}/last-rollback", encoded(workspace)))
    }

    /// Verifies the store.
    pub(crate) fn check(&self, read_data: bool) -> Result<CheckSummary, ControlError> {
        self.post("/ckpt/check", &CheckRequest { read_data })
    }

    /// What the store takes.
    pub(crate) fn size(&self) -> Result<SizeReport, ControlError> {
        self.get("/ckpt/store")
    }

    /// Whether anybody listens there.
    pub(crate) fn is_reachable(&self) -> bool {
        std::os::unix::net::UnixStream::connect(&self.path).is_ok()
    }

    /// Asks the host for something.
    pub(crate) fn host<M: HostMethod>(&self, method: &M) -> Result<M::Document, ControlError> {
        self.post(&host_route::<M>(), method)
    }

    /// The same, for whoever waits for something else meanwhile.
    pub(crate) async fn host_async<M: HostMethod>(&self, method: &M) -> Result<M::Document, ControlError> {
        let body = serde_json::to_vec(method).map_err(protocol)?;
        let request = request(Method::POST, &host_route::<M>(), body.into()).map_err(protocol)?;
        let (status, body) = self.in_time(self.exchange(request)).await?;
        answer(status, &body)
    }

    /// An address at which a browser gets into the console, once; `plain` for one that does not know the console's name.
    pub(crate) fn console(&self, plain: bool) -> Result<ConsoleLink, ControlError> {
        self.post(&format!("/console/code?plain={plain}"), &serde_json::json!({}))
    }

    /// Signs all browsers out of the console.
    pub(crate) fn sign_out(&self) -> Result<SignedOut, ControlError> {
        self.post("/console/sign-out", &serde_json::json!({}))
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ControlError> {
        self.call(Method::GET, path, Bytes::new())
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ControlError> {
        self.call(Method::POST, path, serde_json::to_vec(body).map_err(protocol)?.into())
    }

    fn call<T: DeserializeOwned>(&self, method: Method, path: &str, body: Bytes) -> Result<T, ControlError> {
        let request = request(method, path, body).map_err(protocol)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| self.unreachable(source))?;
        let (status, body) = runtime.block_on(self.in_time(self.exchange(request)))?;
        answer(status, &body)
    }

    /// Gives up when the time for a call is over.
    pub(super) async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, ControlError>>,
    ) -> Result<T, ControlError> {
        match self.timeout {
            None => call.await,
            Some(limit) => match tokio::time::timeout(limit, call).await {
                Ok(answered) => answered,
                Err(_) => Err(ControlError::Timeout(limit)),
            },
        }
    }

    /// Where the socket is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), ControlError> {
        let stream = UnixStream::connect(&self.path).await.map_err(|source| self.unreachable(source))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(protocol)?;
        let exchanged = async {
            let response = sender.send_request(request).await.map_err(protocol)?;
            let status = response.status();
            Ok((status, whole(response.into_body()).await?))
        };
        tokio::pin!(exchanged, connection);
        // The connection moves the bytes that the exchange waits for.
        tokio::select! {
            done = &mut exchanged => done,
            ended = &mut connection => match ended {
                Ok(()) => exchanged.await,
                Err(error) => Err(protocol(error)),
            },
        }
    }

    pub(super) fn unreachable(&self, source: io::Error) -> ControlError {
        ControlError::Unreachable { path: self.path.clone(), source }
    }
}

/// The daemon carries management requests out as the program does whose protocol they are, under its own lease.
impl SessionCore for ControlClient {
    fn ask(&self, request: SessionRequest) -> Result<SessionData, ClientError> {
        let answer = match &request {
            SessionRequest::List(body) => self.post("/session/list", body),
            SessionRequest::Inspect(body) => self.post("/session/inspect", body),
            SessionRequest::Validate(body) => self.post("/session/validate", body),
            SessionRequest::PrepareClearAll(body) => self.post("/session/prepare-clear-all", body),
            SessionRequest::Clear(body) => self.post("/session/clear", body),
        };
        answer.map_err(|error| match error {
            ControlError::Refused { code, message } => {
                let known = SessionErrorCode::ALL.into_iter().find(|known| known.as_str() == code);
                ClientError {
                    code,
                    message,
                    recoverable: true,
                    hint: known.map(|code| code.hint().to_owned()),
                }
            }
            other => ClientError::transport(other.to_string()),
        })
    }
}

/// The route of a method of the host.
fn host_route<M: HostMethod>() -> String {
    format!("/pod/{}", M::NAME)
}

/// A whole body, if it is not too large.
pub(super) async fn whole(body: Incoming) -> Result<Bytes, ControlError> {
    Ok(Limited::new(body, MAX_ANSWER).collect().await.map_err(protocol)?.to_bytes())
}

fn answer<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, ControlError> {
    if status.is_success() {
        return serde_json::from_slice(body).map_err(protocol);
    }
    Err(refusal(status, body))
}

/// What an answer that is no success says.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> ControlError {
    match serde_json::from_slice::<ErrorReport>(body) {
        Ok(ErrorReport { code, message }) => ControlError::Refused { code, message },
        Err(_) => ControlError::Protocol(format!("answered {status}")),
    }
}

pub(super) fn request(
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
}

/// A name as one segment of a path.
fn encoded(name: &str) -> PercentEncode<'_> {
    utf8_percent_encode(name, NON_ALPHANUMERIC)
}

pub(super) fn protocol(error: impl ToString) -> ControlError {
    ControlError::Protocol(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Asks `call` of a server that answers with `response`; returns also the first line of the request.
    fn exchange<T>(
        response: &'static str,
        call: impl FnOnce(&ControlClient) -> Result<T, ControlError>,
    ) -> (Result<T, ControlError>, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut first = String::new();
            stream.read_line(&mut first).unwrap();
            stream.get_mut().write_all(response.as_bytes()).unwrap();
            first
        });
        let answer = call(&ControlClient::new(path, Some(Duration::from_secs(10))));
        (answer, server.join().unwrap())
    }

    #[test]
    fn names_travel_whatever_they_are() {
        let response = "HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"warnings\": []}";
        let (_, line) = exchange(response, |control| control.warnings("/a b/größe", "50%?#"));
        let path = "/api/v1/ckpt/workspaces/%2Fa%20b%2Fgr%C3%B6%C3%9Fe/snapshots/50%25%3F%23/warnings";
        assert_eq!(line, format!("GET {path} HTTP/1.1\r\n"));
    }

    #[test]
    fn a_refusal_keeps_its_code_and_words() {
        let response = "HTTP/1.1 404 Not Found\r\ncontent-length: 60\r\n\r\n\
                        {\"code\":\"SnapshotNotFound\",\"message\":\"nothing to undo: ...\"}";
        let (answer, line) = exchange(response, |control| control.undo("/p"));
        assert_eq!(line, "POST /api/v1/ckpt/undo HTTP/1.1\r\n");
        assert_eq!(answer.unwrap_err().to_string(), "[SnapshotNotFound]: nothing to undo: ...");
    }

    #[test]
    fn what_is_not_this_api_is_a_protocol_error() {
        for response in ["HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "SSH-2.0-OpenSSH\r\n", ""] {
            let (answer, _) = exchange(response, ControlClient::size);
            let error = answer.unwrap_err();
            assert!(matches!(error, ControlError::Protocol(_)), "{response:?}: {error}");
        }
    }

    #[test]
    fn a_management_request_goes_to_the_route_of_its_action_and_its_data_comes_back() {
        let response = "HTTP/1.1 200 OK\r\ncontent-length: 44\r\n\r\n\
                        {\"action\":\"clear\",\"deleted\":[],\"skipped\":[]}";
        let body = r#"{"workspace_scope": "/w", "session_id": "", "session_ids": [], "protected_session_ids": [], "action": "#;
        for (action, route) in [
            ("list", "list"),
            ("inspect", "inspect"),
            ("validate", "validate"),
            ("prepare_clear_all", "prepare-clear-all"),
            ("clear", "clear"),
        ] {
            let request = SessionRequest::parse(format!("{body}\"{action}\"}}").as_bytes()).unwrap();
            let (answer, line) = exchange(response, |control| Ok(control.ask(request)));
            assert_eq!(line, format!("POST /api/v1/session/{route} HTTP/1.1\r\n"));
            let nothing = SessionData::Clear { deleted: Vec::new(), skipped: Vec::new() };
            assert_eq!(answer.unwrap(), Ok(nothing));
        }
    }

    #[test]
    fn nobody_there_and_nobody_answering_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let control = ControlClient::new(path.clone(), Some(Duration::from_millis(20)));
        assert!(matches!(control.size(), Err(ControlError::Unreachable { .. })));
        let _listener = UnixListener::bind(path).unwrap();
        assert!(matches!(control.size(), Err(ControlError::Timeout(_))));
    }
}
