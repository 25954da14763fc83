//! A whole server on a port of its own, and clients that write bytes by hand.

mod console;
mod events;
mod limits;
mod strangers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix::Actor;
use actix_web::dev::ServerHandle;
use cofferdam_storage::clock::SystemClock;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::access::OwnAddress;
use crate::api::tests::services;
use crate::console::LinkPlace;
use crate::events::EventStreams;
use crate::host::tests::stub::{Heard, HostStub};

/// A running server.
struct Running {
    address: SocketAddr,
    token: String,
    console: Arc<Console>,
    heard: Heard,
    stopping: CancellationToken,
    handle: ServerHandle,
}

/// The shortest time that a server whose clock moves each half second keeps.
const SHORT: Duration = Duration::from_secs(1);

async fn start() -> Running {
    start_with(Limits::default(), Duration::from_secs(30))
}

fn start_with(limits: Limits, body_time: Duration) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let console = Arc::new(Console::new(address, Arc::new(SystemClock::new()), None));
    let browser = Arc::clone(&console);
    let access =
        Access { body_time, ..Access::new(OwnAddress::new(address).named(&console.host()), browser) };
    let token = access.token.reveal();
    let (heard, stopping) = (Heard::default(), CancellationToken::new());
    let stub = HostStub { heard: heard.clone(), ..HostStub::default() };
    let services = Services {
        streams: EventStreams::new(stopping.clone()),
        console: Some(Arc::clone(&console)),
        ..services(Some(stub.start().into()))
    };
    let server = serve(listener, services, access, Arc::clone(&console), limits).unwrap();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    Running { address, token, console, heard, stopping, handle }
}

/// An answer, as it came.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// A header's value; what has capitals in a value has them no more.
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(of, _)| *of == name).map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal, in either of the two forms.
    fn refusal(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap().to_owned())
    }
}

impl Running {
    /// Our own name, as a header.
    fn host(&self) -> String {
        format!("Host: {}\r\n", self.address)
    }

    fn origin(&self) -> String {
        format!("Origin: http://{}\r\n", self.address)
    }

    fn shown_token(&self) -> String {
        format!("x-ipp-token: {}\r\n", self.token)
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Everything that comes until the server closes, for these bytes.
    async fn raw(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // A server that has heard enough may have closed by then.
        let _ = stream.write_all(bytes.as_ref()).await;
        rest(&mut stream).await
    }

    /// The answer to one request with these header lines and this body.
    async fn ask(&self, line: &str, headers: &str, body: &str) -> Answer {
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{line} HTTP/1.1\r\n{headers}{length}Connection: close\r\n\r\n{body}");
        Answer::of(&self.raw(request).await)
    }

    /// The same with our own name.
    async fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask(&format!("GET {path}"), &(self.host() + headers), "").await
    }

    async fn post(&self, path: &str, headers: &str, body: &str) -> Answer {
        self.ask(&format!("POST {path}"), &(self.host() + headers), body).await
    }

    /// The path of a link that is good at the address itself.
    fn login(&self) -> String {
        let url = self.console.login_url(LinkPlace::Plain);
        url.strip_prefix(&format!("http://{}", self.address)).unwrap().to_owned()
    }

    /// The cookie of a browser that has signed in, as a header.
    async fn signed_in(&self) -> String {
        let path = &self.login();
        let answer = self.get(path, "").await;
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
        format!("Cookie: {cookie}\r\n")
    }
}

/// What is left until the server closes. One that resets the connection has closed, too.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}
