//! A client of the ws-ckpt socket that can also misbehave.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use cofferdam_protocol::ckpt::{
    FrameError, WsCkptErrorCode, WsCkptRequest, WsCkptResponse, read_message, write_message,
};

/// Longer than anything a sound daemon takes on a loaded machine; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One connection.
#[derive(Debug)]
pub struct Wire {
    stream: UnixStream,
}

impl Wire {
    /// Connects.
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap_or_else(|e| panic!("{}: {e}", socket.display()));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    /// Sends a request.
    pub fn send(&mut self, request: &WsCkptRequest) {
        write_message(&mut self.stream, request).unwrap_or_else(|e| panic!("sending {request:?}: {e}"));
    }

    /// Sends bytes as they are. That the other side has stopped listening is no error: it may have seen enough.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
        match self.stream.write_all(bytes) {
            Err(e) if !matches!(e.kind(), BrokenPipe | ConnectionReset) => panic!("sending bytes: {e}"),
            _ => {}
        }
    }

    /// Says that nothing more will be sent.
    pub fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Receives a response; `None` if the daemon has closed the connection.
    pub fn receive(&mut self) -> Option<WsCkptResponse> {
        match read_message(&mut self.stream) {
            Ok(response) => response,
            Err(FrameError::Io(e)) if e.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(e) => panic!("no answer: {e}"),
        }
    }

    /// Receives exactly so many bytes, whatever they mean.
    pub fn receive_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap_or_else(|e| panic!("no {len} bytes: {e}"));
        bytes
    }

    /// Sends a request's frame and receives the payload of its response, whatever it means.
    pub fn call_raw(&mut self, frame: &[u8]) -> Vec<u8> {
        self.send_bytes(frame);
        let length = self.receive_bytes(4).try_into().unwrap();
        self.receive_bytes(u32::from_le_bytes(length) as usize)
    }

    /// Whether an answer, or the end of the connection, can be received within `time`.
    pub fn receives_within(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).unwrap();
        let mut byte = [0];
        let seen = rustix::net::recv(&self.stream, &mut byte, rustix::net::RecvFlags::PEEK);
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        seen.is_ok()
    }

    /// Sends a request and receives its response.
    pub fn call(&mut self, request: &WsCkptRequest) -> WsCkptResponse {
        self.send(request);
        self.receive().unwrap_or_else(|| panic!("connection closed instead of an answer to {request:?}"))
    }
}

/// A frame: `payload` behind its length.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&length.to_le_bytes(), payload].concat()
}

/// The frame of a request.
pub fn frame_of(request: &WsCkptRequest) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(&mut bytes, request).unwrap();
    bytes
}

/// Code and text of an error response.
#[track_caller]
pub fn error_of(response: WsCkptResponse) -> (WsCkptErrorCode, String) {
    match response {
        WsCkptResponse::Error { code, message } => (code, message),
        other => panic!("an error was expected, not {other:?}"),
    }
}

/// Requests, as short as a test wants them.
pub mod ask {
    use std::path::Path;

    use cofferdam_protocol::ckpt::WsCkptRequest;

    fn text(workspace: impl AsRef<Path>) -> String {
        workspace.as_ref().to_str().unwrap().to_owned()
    }

    /// Init.
    pub fn init(workspace: impl AsRef<Path>) -> WsCkptRequest {
        WsCkptRequest::Init { workspace: text(workspace) }
    }

    /// Checkpoint without message and metadata, not pinned.
    pub fn checkpoint(workspace: impl AsRef<Path>, id: &str) -> WsCkptRequest {
        checkpoint_with(workspace, id, None, None, false)
    }

    /// Checkpoint with everything.
    pub fn checkpoint_with(
        workspace: impl AsRef<Path>,
        id: &str,
        message: Option<&str>,
        metadata: Option<&str>,
        pin: bool,
    ) -> WsCkptRequest {
        WsCkptRequest::Checkpoint {
            workspace: text(workspace),
            id: id.to_owned(),
            message: message.map(str::to_owned),
            metadata: metadata.map(str::to_owned),
            pin,
        }
    }

    /// Rollback.
    pub fn rollback(workspace: impl AsRef<Path>, to: &str) -> WsCkptRequest {
        WsCkptRequest::Rollback { workspace: text(workspace), to: to.to_owned() }
    }

    /// Delete in one workspace.
    pub fn delete(workspace: impl AsRef<Path>, snapshot: &str, force: bool) -> WsCkptRequest {
        WsCkptRequest::Delete { workspace: Some(text(workspace)), snapshot: snapshot.to_owned(), force }
    }

    /// Delete wherever the snapshot is.
    pub fn delete_anywhere(snapshot: &str, force: bool) -> WsCkptRequest {
        WsCkptRequest::Delete { workspace: None, snapshot: snapshot.to_owned(), force }
    }

    /// List of one workspace.
    pub fn list(workspace: impl AsRef<Path>) -> WsCkptRequest {
        WsCkptRequest::List { workspace: Some(text(workspace)), format: None }
    }

    /// List of all workspaces.
    pub fn list_all() -> WsCkptRequest {
        WsCkptRequest::List { workspace: None, format: None }
    }

    /// Diff.
    pub fn diff(workspace: impl AsRef<Path>, from: &str, to: &str) -> WsCkptRequest {
        WsCkptRequest::Diff { workspace: text(workspace), from: from.to_owned(), to: to.to_owned() }
    }

    /// Status of one workspace.
    pub fn status(workspace: impl AsRef<Path>) -> WsCkptRequest {
        WsCkptRequest::Status { workspace: Some(text(workspace)) }
    }

    /// Status of all.
    pub fn status_all() -> WsCkptRequest {
        WsCkptRequest::Status { workspace: None }
    }

    /// Cleanup.
    pub fn cleanup(workspace: impl AsRef<Path>, keep: Option<u32>) -> WsCkptRequest {
        WsCkptRequest::Cleanup { workspace: text(workspace), keep }
    }

    /// Recover.
    pub fn recover(workspace: impl AsRef<Path>) -> WsCkptRequest {
        WsCkptRequest::Recover { workspace: text(workspace) }
    }
}
