//! The daemon's control socket, played by a test.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use clap::{Parser, Subcommand};
use cofferdam_protocol::host::HostEvent;
use serde::Serialize;
use serde_json::{Value, json};

use crate::client::arguments::Connection;
use crate::client::host::{Console, attach, config, export, run_in, task};
use crate::control::ControlClient;
use crate::paths::Environment;
use crate::terminal::testing::{Input, terminal};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    group: Group,
}

#[derive(Subcommand)]
enum Group {
    #[command(subcommand)]
    Task(task::Verb),
    #[command(subcommand)]
    Export(export::Verb),
    #[command(subcommand)]
    Main(attach::Verb),
    #[command(subcommand)]
    Config(config::Verb),
    Console(Console),
}

/// What a stub answers: a document, or a status, a code and a message.
pub(in crate::client::host) type Reply = Result<Value, (u16, &'static str, &'static str)>;

/// The reply with a document.
pub(in crate::client::host) fn ok(document: impl Serialize) -> Reply {
    Ok(serde_json::to_value(document).unwrap())
}

/// What one connection that listens to events is told.
#[derive(Default)]
pub(in crate::client::host) struct Stream {
    chunks: Vec<Vec<u8>>,
    /// Whether the connection is over then.
    ends: bool,
    /// Whether it may not listen at all.
    refused: bool,
}

impl Stream {
    /// These events.
    pub(in crate::client::host) fn of(events: &[HostEvent]) -> Self {
        let text = |event: &HostEvent| {
            let json = serde_json::to_value(event).unwrap();
            format!(": heartbeat\n\nevent: {}\ndata: {json}\n\n", json["kind"].as_str().unwrap()).into_bytes()
        };
        Self { chunks: events.iter().map(text).collect(), ..Self::default() }
    }

    /// These bytes, one chunk each.
    pub(in crate::client::host) fn raw(chunks: &[&[u8]]) -> Self {
        Self { chunks: chunks.iter().map(|chunk| chunk.to_vec()).collect(), ..Self::default() }
    }

    /// Nothing: whoever asks may not listen.
    pub(in crate::client::host) fn refused() -> Self {
        Self { refused: true, ..Self::default() }
    }

    /// And then no more.
    pub(in crate::client::host) fn then_over(self) -> Self {
        Self { ends: true, ..self }
    }
}

type Rule = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// A daemon that answers by rule and remembers what it was asked.
pub(in crate::client::host) struct Stub {
    dir: tempfile::TempDir,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    rule: Box<Rule>,
    asked: Mutex<Vec<(String, Value)>>,
    streams: Mutex<VecDeque<Stream>>,
    over: AtomicBool,
}

impl Stub {
    /// One that answers a method with its args by rule.
    pub(in crate::client::host) fn new(rule: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("run")).unwrap();
        let listener = UnixListener::bind(dir.path().join("run/control.sock")).unwrap();
        let shared = Arc::new(Shared {
            rule: Box::new(rule),
            asked: Mutex::default(),
            streams: Mutex::default(),
            over: AtomicBool::default(),
        });
        let thread = std::thread::spawn({
            let shared = shared.clone();
            move || {
                for stream in listener.incoming() {
                    if shared.over.load(Ordering::SeqCst) {
                        return;
                    }
                    let (shared, stream) = (shared.clone(), stream.unwrap());
                    // A client that has gone is none of this thread's business.
                    std::thread::spawn(move || drop(serve(&shared, stream)));
                }
            }
        });
        Self { dir, shared, thread: Some(thread) }
    }

    /// What the next connection that listens is told; those without a stream are told nothing.
    pub(in crate::client::host) fn stream(self, stream: Stream) -> Self {
        self.shared.streams.lock().unwrap().push_back(stream);
        self
    }

    /// A client of it.
    pub(in crate::client::host) fn control(&self) -> ControlClient {
        ControlClient::new(self.dir.path().join("run/control.sock"), None)
    }

    /// Runs a command line with this to read.
    pub(in crate::client::host) fn run_with(&self, line: &[&str], input: Input) -> Ran {
        let first = ["cofferdam", "--state-dir", self.dir.path().to_str().unwrap()];
        let line = Line::try_parse_from(first.iter().chain(line)).unwrap_or_else(|error| panic!("{error}"));
        let (terminal, out, err) = terminal(input);
        let code = run_in(&line.connection, Environment::default(), terminal, |run| match &line.group {
            Group::Task(verb) => verb.run(run),
            Group::Export(verb) => verb.run(run),
            Group::Main(verb) => verb.run(run),
            Group::Config(verb) => verb.run(run),
            Group::Console(console) => console.carry_out(run),
        });
        Ran { code, out: out.text(), err: err.text() }
    }

    /// Runs a command line where nobody is.
    pub(in crate::client::host) fn run(&self, line: &[&str]) -> Ran {
        self.run_with(line, Input::Piped(""))
    }

    /// Is gone from now on.
    #[allow(clippy::disallowed_methods, reason = "a test's own directory")]
    pub(in crate::client::host) fn hang_up(&self) {
        std::fs::remove_dir_all(self.dir.path().join("run")).unwrap();
    }

    /// What it was asked so far, with the args; `events` with the query of who listens.
    pub(in crate::client::host) fn asked(&self) -> Vec<(String, Value)> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The args with which it was asked to do this; it must have been, and once.
    #[track_caller]
    pub(in crate::client::host) fn args(&self, method: &str) -> Value {
        let asked = self.asked();
        let args: Vec<_> = asked.iter().filter(|(asked, _)| asked == method).map(|(_, args)| args).collect();
        assert_eq!(args.len(), 1, "{asked:?}");
        args[0].clone()
    }

    /// Whether it was asked to do this.
    pub(in crate::client::host) fn was_asked(&self, method: &str) -> bool {
        self.asked().iter().any(|(asked, _)| asked == method)
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // The thread waits for one more connection; where the socket is gone nobody can make one.
        if UnixStream::connect(self.dir.path().join("run/control.sock")).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn serve(shared: &Shared, stream: UnixStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let path = first.split(' ').nth(1).unwrap().strip_prefix("/api/v1/").unwrap();
    if let Some(query) = path.strip_prefix("events") {
        shared.asked.lock().unwrap().push(("events".to_owned(), query.into()));
        return tell(shared, &mut stream);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let args = serde_json::from_slice(&body).unwrap();
    let method = path.strip_prefix("pod/").unwrap_or(path);
    shared.asked.lock().unwrap().push((method.to_owned(), args));
    let args = shared.asked.lock().unwrap().last().unwrap().1.clone();
    let (status, mut body) = match (shared.rule)(method, &args) {
        Ok(document) => (200, document),
        Err((status, code, message)) => (status, json!({"code": code, "message": message})),
    };
    if status == 200 {
        body["ok"] = true.into();
    }
    let (body, stream) = (body.to_string(), stream.get_mut());
    write!(stream, "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn tell(shared: &Shared, stream: &mut BufReader<UnixStream>) -> std::io::Result<()> {
    let told = shared.streams.lock().unwrap().pop_front().unwrap_or_default();
    let out = stream.get_mut();
    if told.refused {
        let body = r#"{"code": "Forbidden", "message": "not for you"}"#;
        return write!(out, "HTTP/1.1 403 X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    }
    out.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    for chunk in &told.chunks {
        out.write_all(&[format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())?;
    }
    if told.ends {
        return Ok(());
    }
    // As long as the client listens.
    stream.read_to_end(&mut Vec::new()).map(drop)
}

/// What became of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client::host) struct Ran {
    pub(in crate::client::host) code: u8,
    pub(in crate::client::host) out: String,
    pub(in crate::client::host) err: String,
}

/// What should become of a command line.
pub(in crate::client::host) fn ran(code: u8, out: &str, err: &str) -> Ran {
    Ran { code, out: out.to_owned(), err: err.to_owned() }
}
