//! A conversation, and all that it speaks with.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{Actor, Context, Handler, ResponseFuture};
use cofferdam_protocol::session::headless::*;
use cofferdam_protocol::session::{Content, SessionError, SessionErrorCode};
use cofferdam_storage::clock::{RandomIds, SystemClock};
use cofferdam_storage::disk::Disk;
use cofferdam_storage::session::{Config, StoreParts};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{pause, timeout};

use crate::session::conversation::{
    Conversation, Ended, Envelope, Line, LineSource, Lines, OutputSink, Parts, Place, Processes, Provider,
    SessionStore, Tool,
};
use crate::session::provider::{Answer, Pieces, ProviderError, Request};
use crate::session::tool::{Description, Outcome, Running};
use crate::session::{
    ClearSessions, InspectSession, ListSessions, LoadSession, OpenStore, PersistSession, Persisted,
    PrepareClearAll, ValidateSession,
};

/// The id of the conversation.
pub(super) const ID: &str = "00000000-0000-4000-8000-000000000001";

/// A conversation that runs, and the other ends of everything.
pub(super) struct Bench {
    lines: Option<mpsc::Sender<Line>>,
    said: mpsc::UnboundedReceiver<Output>,
    room: Arc<AtomicBool>,
    questions: mpsc::UnboundedReceiver<Question>,
    calls: mpsc::UnboundedReceiver<ToolCalled>,
    writes: mpsc::UnboundedReceiver<Write>,
    ended: JoinHandle<Ended>,
    _dir: TempDir,
}

/// A question to the provider.
pub(super) struct Question {
    pub(super) request: Request,
    pieces: Pieces,
}

/// A call of the tool.
pub(super) struct ToolCalled {
    pub(super) arguments: Value,
    pub(super) place: Place,
    outcome: oneshot::Sender<Outcome>,
}

/// A conversation that is to be kept.
pub(super) struct Write {
    pub(super) envelope: Envelope,
    reply: oneshot::Sender<Persisted>,
}

/// What must happen. In virtual time nothing is waited for once everybody waits.
async fn soon<T>(what: impl Future<Output = Option<T>>) -> T {
    let waited = timeout(Duration::from_secs(60), what).await;
    waited.expect("everybody waits").expect("it will not happen any more")
}

impl Bench {
    /// A conversation that is kept.
    pub(super) fn new() -> Self {
        pause();
        let dir = tempfile::tempdir().unwrap();
        let parts = StoreParts {
            disk: Disk::default(),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(RandomIds),
            home: Some(dir.path().to_owned()),
        };
        let config = Config {
            auto_persist: true,
            persist_dir: Config::DEFAULT_DIR.to_owned(),
            ai: Default::default(),
        };
        // Nothing is read or written through it: the sessions are in the test's hands.
        let store = Arc::new(SessionStore::open(parts, &config, dir.path()).unwrap());

        let (lines, source) = mpsc::channel(100);
        let (saying, said) = mpsc::unbounded_channel();
        let (asking, questions) = mpsc::unbounded_channel();
        let (calling, calls) = mpsc::unbounded_channel();
        let (writing, writes) = mpsc::unbounded_channel();
        let room = Arc::new(AtomicBool::new(true));
        let parts = Parts {
            sessions: FakeSessions(writing).start().into(),
            sink: Arc::new(FakeSink(saying, Arc::clone(&room))),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(RandomIds),
            processes: Processes::default(),
        };
        let envelope = Envelope {
            schema_version: 1,
            session_id: ID.to_owned(),
            workspace_scope: "/w".to_owned(),
            created_at_ms: 1,
            updated_at_ms: 1,
            model: "m".to_owned(),
            generation: 0,
            messages: Vec::new(),
            compaction: None,
            compaction_revision: 0,
        };
        let mut conversation = Conversation {
            parts,
            store: Some(store),
            envelope,
            provider: Arc::new(FakeProvider(asking)),
            tools: vec![Arc::new(FakeShell(calling))],
            lines: Lines::new(LineSource { lines: source, begin: Box::new(|| {}) }),
            place: Place::default(),
            requests: 0,
        };
        let ended = actix::spawn(async move { conversation.converse().await });
        Self { lines: Some(lines), said, room, questions, calls, writes, ended, _dir: dir }
    }

    /// Sends a line.
    pub(super) async fn send(&self, input: Input) {
        self.send_line(Ok(input)).await;
    }

    /// Sends a line that may be unreadable.
    pub(super) async fn send_line(&self, input: Result<Input, MalformedLine>) {
        self.send_of_length(input, 10).await;
    }

    /// Sends a line that is said to be of that many bytes.
    pub(super) async fn send_of_length(&self, input: Result<Input, MalformedLine>, bytes: usize) {
        self.lines.as_ref().unwrap().send(Line { input, bytes }).await.unwrap();
    }

    /// Says something as the user.
    pub(super) async fn say(&self, text: &str) {
        self.send(Input::User(UserLine { content: text.to_owned(), ..UserLine::default() })).await;
    }

    /// Answers a request.
    pub(super) async fn verdict(&self, request: &str, verdict: Verdict) {
        let request_id = request.to_owned();
        self.send(Input::Answer(ApprovalAnswer { request_id, verdict })).await;
    }

    /// Ends the input.
    pub(super) fn end(&mut self) {
        self.lines = None;
    }

    /// Whether there is room for output.
    pub(super) fn room(&self, is_there: bool) {
        self.room.store(is_there, Ordering::Relaxed);
    }

    /// The next line, in short.
    pub(super) async fn heard(&mut self) -> String {
        brief(soon(self.said.recv()).await)
    }

    /// The next lines.
    #[track_caller]
    pub(super) fn hears(&mut self, expected: &[&str]) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            for expected in expected {
                assert_eq!(self.heard().await, *expected, "{place}");
            }
        }
    }

    /// Nothing was said that was not heard.
    #[track_caller]
    pub(super) fn hears_nothing(&mut self) {
        assert!(self.said.try_recv().is_err());
    }

    /// The next question to the provider.
    pub(super) async fn question(&mut self) -> Question {
        soon(self.questions.recv()).await
    }

    /// The provider is not asked.
    #[track_caller]
    pub(super) fn asks_nothing(&mut self) {
        assert!(self.questions.try_recv().is_err());
    }

    /// The next call of the tool.
    pub(super) async fn call(&mut self) -> ToolCalled {
        soon(self.calls.recv()).await
    }

    /// The next conversation that is to be kept.
    pub(super) async fn write(&mut self) -> Write {
        soon(self.writes.recv()).await
    }

    /// Has the next one kept; returns its messages, in short.
    pub(super) async fn kept(&mut self) -> Vec<String> {
        let write = self.write().await;
        let messages = messages(&write.envelope.messages);
        write.keep();
        messages
    }

    /// Answers the next question with a text.
    pub(super) async fn answers(&mut self, text: &str) {
        self.question().await.text(text).await;
        self.hears(&["start", "text block 0", &format!("text {text}"), "end 0", "stop"]).await;
        self.hears(&[&format!("assistant {text}")]).await;
    }

    /// Answers the next question with calls of tools: id, name and arguments.
    pub(super) async fn answers_with_calls(&mut self, calls: &[(&str, &str, &str)]) {
        self.question().await.calls(calls).await;
        while self.heard().await != "stop" {}
    }

    /// How it ended.
    pub(super) async fn ended(self) -> Ended {
        let Self { ended, mut said, .. } = self;
        let ended = soon(async { ended.await.ok() }).await;
        assert_eq!(said.recv().await.map(brief), None, "that was said and not heard");
        ended
    }
}

impl Question {
    pub(super) async fn piece(&self, event: Value) {
        self.pieces.send(Ok(serde_json::from_value(event).unwrap())).await.unwrap();
    }

    pub(super) async fn fail(&self, why: &str) {
        self.pieces.send(Err(ProviderError(why.to_owned()))).await.unwrap();
    }

    /// Begins an answer with one text.
    pub(super) async fn begin(&self, text: &str) {
        self.piece(json!({"type": "message_start"})).await;
        self.piece(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}))
            .await;
        self.more(text).await;
    }

    /// More of that text.
    pub(super) async fn more(&self, text: &str) {
        let delta = json!({"type": "text_delta", "text": text});
        self.piece(json!({"type": "content_block_delta", "index": 0, "delta": delta})).await;
    }

    /// A whole answer.
    pub(super) async fn text(&self, text: &str) {
        self.begin(text).await;
        self.finish().await;
    }

    /// The end of an answer of one text.
    pub(super) async fn finish(&self) {
        self.piece(json!({"type": "content_block_stop", "index": 0})).await;
        self.piece(json!({"type": "message_stop"})).await;
    }

    async fn calls(&self, calls: &[(&str, &str, &str)]) {
        self.piece(json!({"type": "message_start"})).await;
        for (index, (id, name, arguments)) in calls.iter().enumerate() {
            let block = json!({"type": "tool_use", "id": id, "name": name});
            self.piece(json!({"type": "content_block_start", "index": index, "content_block": block})).await;
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            self.piece(json!({"type": "content_block_delta", "index": index, "delta": delta})).await;
            self.piece(json!({"type": "content_block_stop", "index": index})).await;
        }
        self.piece(json!({"type": "message_stop"})).await;
    }

    /// Waits until nobody wants the answer any more.
    pub(super) async fn given_up(&self) {
        soon(async {
            self.pieces.closed().await;
            Some(())
        })
        .await;
    }
}

impl ToolCalled {
    pub(super) fn give(self, content: &str) {
        self.outcome.send(Outcome { content: content.to_owned(), is_error: false }).unwrap();
    }

    /// Waits until nobody wants its outcome any more.
    pub(super) async fn given_up(&mut self) {
        soon(async {
            self.outcome.closed().await;
            Some(())
        })
        .await;
    }
}

impl Write {
    /// It was kept.
    pub(super) fn keep(mut self) {
        self.envelope.generation += 1;
        let _ = self.reply.send(Persisted { envelope: self.envelope, result: Ok(()) });
    }

    /// It was not.
    pub(super) fn refuse(self) {
        let error = SessionError::new(SessionErrorCode::Conflict, "somebody else was faster");
        let _ = self.reply.send(Persisted { envelope: self.envelope, result: Err(error) });
    }
}

/// Messages, in short.
pub(super) fn messages(messages: &[cofferdam_protocol::session::Message]) -> Vec<String> {
    let brief = |message: &cofferdam_protocol::session::Message| {
        let Content::Text(text) = &message.content else { panic!("{message:?}") };
        let calls = message.tool_calls.iter().flatten();
        let calls: String = calls
            .map(|call| format!(" {}:{}{}", call.id, call.function.name, call.function.arguments))
            .collect();
        let of = message.tool_call_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
        format!("{}{of} {text}{calls}", message.role)
    };
    messages.iter().map(brief).collect()
}

/// A line, in short.
fn brief(line: Output) -> String {
    match line {
        Output::ControlResponse { .. } => "initialized".to_owned(),
        Output::System(System::Init { session_id, model, .. }) => format!("init {session_id} {model}"),
        Output::System(System::Status { status }) => format!("status {status}"),
        Output::StreamEvent { event } => match event {
            StreamEvent::MessageStart {} => "start".to_owned(),
            StreamEvent::MessageStop {} => "stop".to_owned(),
            StreamEvent::ContentBlockStart { index, content_block: BlockStart::Text {} } => {
                format!("text block {index}")
            }
            StreamEvent::ContentBlockStart { index, .. } => format!("block {index}"),
            StreamEvent::ContentBlockDelta { delta: Delta::TextDelta { text }, .. } => format!("text {text}"),
            StreamEvent::ContentBlockDelta { .. } => "piece".to_owned(),
            StreamEvent::ContentBlockStop { index } => format!("end {index}"),
        },
        line => {
            let line = serde_json::to_value(line).unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            match line["type"].as_str().unwrap() {
                "assistant" => format!("assistant {}", text(&line["message"]["content"][0]["text"])),
                "user" => {
                    let result = &line["message"]["content"][0];
                    let error = if result["is_error"] == true { " failed" } else { "" };
                    format!("tool {}{error}: {}", text(&result["tool_use_id"]), text(&result["content"]))
                }
                "control_request" => {
                    let request = &line["request"];
                    format!(
                        "{}: {} {}",
                        text(&line["request_id"]),
                        text(&request["tool_name"]),
                        request["input"]
                    )
                }
                "result" => {
                    assert_eq!(line["session_id"], ID);
                    let code = line["session_error_code"].as_str().or(line["error_code"].as_str());
                    let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
                    format!("{}{code}: {}", text(&line["subtype"]), text(&line["result"]))
                }
                other => panic!("{other}"),
            }
        }
    }
}

struct FakeSink(mpsc::UnboundedSender<Output>, Arc<AtomicBool>);

impl OutputSink for FakeSink {
    fn put(&self, line: &Output) {
        // The test may have seen enough.
        let _ = self.0.send(line.clone());
    }

    fn room(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        match self.1.load(Ordering::Relaxed) {
            true => Box::pin(std::future::ready(())),
            false => Box::pin(pending()),
        }
    }
}

struct FakeProvider(mpsc::UnboundedSender<Question>);

impl Provider for FakeProvider {
    fn answer(&self, request: Request) -> Answer {
        let (pieces, answer) = Answer::new(100, ());
        self.0.send(Question { request, pieces }).unwrap();
        answer
    }
}

struct FakeShell(mpsc::UnboundedSender<ToolCalled>);

impl Tool for FakeShell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn description(&self) -> Description {
        Description { name: "shell", description: "", parameters: json!({}) }
    }

    fn call(&self, arguments: &Map<String, Value>, place: &Place) -> Running {
        let (outcome, running) = Running::new(());
        let arguments = Value::Object(arguments.clone());
        self.0.send(ToolCalled { arguments, place: place.clone(), outcome }).unwrap();
        running
    }
}

/// Stands in for the owner of the stored conversations.
struct FakeSessions(mpsc::UnboundedSender<Write>);

impl Actor for FakeSessions {
    type Context = Context<Self>;
}

impl Handler<PersistSession> for FakeSessions {
    type Result = ResponseFuture<Result<Persisted, SessionError>>;

    fn handle(
        &mut self,
        PersistSession { envelope, .. }: PersistSession,
        _: &mut Context<Self>,
    ) -> Self::Result {
        let (reply, persisted) = oneshot::channel();
        self.0.send(Write { envelope, reply }).unwrap();
        Box::pin(async { Ok(persisted.await.unwrap()) })
    }
}

macro_rules! not_wanted {
    ($($message:ty),+) => {$(
        impl Handler<$message> for FakeSessions {
            type Result = ResponseFuture<<$message as actix::Message>::Result>;

            fn handle(&mut self, _: $message, _: &mut Context<Self>) -> Self::Result {
                panic!("only turns are kept here")
            }
        }
    )+};
}
not_wanted!(
    ListSessions,
    InspectSession,
    ValidateSession,
    PrepareClearAll,
    ClearSessions,
    OpenStore,
    LoadSession
);
