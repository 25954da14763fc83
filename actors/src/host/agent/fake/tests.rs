//! What the scripted agent makes of a script.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cofferdam_protocol::pod::{ModelChoice, SandboxPolicy};
use tokio::time::{pause, sleep};

use super::script::Step;
use super::*;
use crate::Carries;

/// Writes down what an agent does.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<AgentEvent>>>);

impl Listener {
    fn take(&self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<AgentEvent> for Listener {
    type Result = ();

    fn handle(&mut self, event: AgentEvent, _: &mut Context<Self>) {
        self.0.lock().unwrap().push(event);
    }
}

struct Bench {
    preset: Preset,
    heard: Listener,
    listener: Recipient<AgentEvent>,
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(presets: Vec<Preset>) -> Self {
        let heard = Listener::default();
        let listener = heard.clone().start().recipient();
        let preset = presets.into_iter().next().unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("t")).unwrap();
        Self { preset, heard, listener, dir }
    }

    fn message(&self) -> StartAgent {
        let path = |name: &str| self.dir.path().join(name).to_str().unwrap().to_owned();
        StartAgent {
            task_id: "t".to_owned(),
            session_id: "s".to_owned(),
            preset: "fake".to_owned(),
            model: ModelChoice::default(),
            policy: SandboxPolicy {
                root: path(""),
                root_display: path(""),
                task_dir: path("t"),
                case_insensitive: false,
                separator: "/".to_owned(),
                long_path_prefix: String::new(),
            },
            mode: SandboxMode::WorkspaceWrite,
            tools: ["read", "write"].map(str::to_owned).into(),
            system_prompt: "you are in t".to_owned(),
            agent_dir: None,
            resume: false,
            turns: 3,
            events: self.listener.clone(),
        }
    }

    async fn send<M>(&self, message: M) -> M::Result
    where
        M: actix::Message + Send + 'static,
        M::Result: Send,
        AgentBackend: Carries<M>,
    {
        self.preset.backend.recipient().send(message).await.unwrap()
    }

    /// Tells the agent a script, and returns what it does until it waits.
    async fn play(&self, script: &str) -> Vec<AgentEvent> {
        self.tell(script).await.unwrap();
        self.settle().await
    }

    async fn tell(&self, script: &str) -> Result<(), AgentError> {
        self.send(FollowUpAgent { task_id: "t".to_owned(), prompt: script.to_owned(), conversation: None })
            .await
    }

    async fn settle(&self) -> Vec<AgentEvent> {
        sleep(Duration::from_millis(1)).await;
        self.heard.take()
    }

    async fn cancel(&self) -> Vec<AgentEvent> {
        self.send(CancelTurn { task_id: "t".to_owned(), cause: crate::host::agent::CancelCause::Timeout })
            .await;
        self.settle().await
    }

    async fn dispose(&self) {
        self.send(DisposeAgent { task_id: "t".to_owned() }).await;
    }
}

async fn started() -> Bench {
    let bench = Bench::new(start(1));
    bench.send(bench.message()).await.unwrap();
    bench
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text(text.to_owned())
}

fn ended(turn: u64, reason: &str) -> AgentEvent {
    AgentEvent::TurnEnded { turn, reason: reason.to_owned(), error: String::new() }
}

#[test]
fn a_line_that_is_no_step_is_said() {
    let say = |text: &str| Some(Step::Say(text.to_owned()));
    let table = [
        ("", None),
        ("  \t", None),
        ("say  hello  you ", say("hello  you")),
        ("hello you", say("hello you")),
        ("saying", say("saying")),
        ("think of it", Some(Step::Think("of it".to_owned()))),
        ("prompt", Some(Step::Prompt)),
        ("prompt me", say("prompt me")),
        ("tools a, b", Some(Step::Tools(vec!["a".to_owned(), "b".to_owned()]))),
        ("tool bash ls -l", Some(Step::Tool { name: "bash".to_owned(), input: "ls -l".to_owned() })),
        ("tool bash", Some(Step::Tool { name: "bash".to_owned(), input: String::new() })),
        ("tool", say("tool")),
        ("write a/b some text", Some(Step::Write { path: "a/b".to_owned(), text: "some text".to_owned() })),
        ("write", say("write")),
        ("sleep 20", Some(Step::Sleep(20))),
        ("sleep well", say("sleep well")),
        ("hold", Some(Step::Hold)),
        ("hold on", say("hold on")),
        ("stubborn", Some(Step::Stubborn)),
        (
            "end error no credit",
            Some(Step::End { reason: "error".to_owned(), error: "no credit".to_owned() }),
        ),
        ("end", say("end")),
        ("die of it", Some(Step::Die("of it".to_owned()))),
    ];
    for (line, step) in table {
        assert_eq!(Step::parse(line), step, "{line:?}");
    }
}

#[actix::test]
async fn a_script_is_played_line_by_line_and_a_turn_ends_by_itself() {
    pause();
    let bench = started().await;
    let said = bench.play("think hm\ntools a,b\n\nhello\nprompt\ntool bash ls").await;
    let expected = [
        AgentEvent::TurnStarted { turn: 4 },
        AgentEvent::Thinking("hm".to_owned()),
        AgentEvent::Tools(vec!["a".to_owned(), "b".to_owned()]),
        text("hello"),
        text("you are in t"),
        AgentEvent::ToolCall { name: "bash".to_owned(), input: "ls".to_owned() },
        ended(4, "completed"),
    ];
    assert_eq!(said, expected);
    let error = AgentEvent::TurnEnded { turn: 5, reason: "error".to_owned(), error: "no credit".to_owned() };
    assert_eq!(
        bench.play("end error no credit\nsay more").await,
        [AgentEvent::TurnStarted { turn: 5 }, error]
    );
}

#[actix::test]
async fn a_turn_holds_until_it_is_cancelled_and_a_stubborn_one_until_its_agent_is_disposed_of() {
    pause();
    let bench = started().await;
    assert_eq!(bench.play("hold\nsay more").await, [AgentEvent::TurnStarted { turn: 4 }]);
    assert_eq!(bench.tell("x").await, Err(AgentError::Busy));
    assert_eq!(bench.cancel().await, [ended(4, "aborted")]);
    assert_eq!(bench.cancel().await, []);
    // The cancellation was that turn's.
    assert_eq!(bench.play("say more").await.len(), 3);
    bench.play("stubborn\nhold").await;
    assert_eq!(bench.cancel().await, []);
    bench.dispose().await;
    assert_eq!(bench.settle().await, []);
    assert_eq!(bench.tell("x").await, Err(AgentError::Gone));
    bench.dispose().await;
    bench.send(bench.message()).await.unwrap();
}

#[actix::test]
async fn sleep_is_as_much_shorter_as_time_is_faster() {
    pause();
    let bench = Bench::new(start(10));
    bench.send(bench.message()).await.unwrap();
    let began = tokio::time::Instant::now();
    bench.play("sleep 1000\nend completed").await;
    while bench.settle().await.is_empty() {}
    assert_eq!(began.elapsed().as_millis() / 10, 10);
    bench.play("sleep 1000000").await;
    assert_eq!(bench.cancel().await, [ended(5, "aborted")]);
}

#[actix::test]
async fn an_agent_that_dies_is_gone() {
    pause();
    let bench = started().await;
    let gone = AgentEvent::Gone { message: "out of memory".to_owned() };
    assert_eq!(bench.play("die out of memory\nsay more").await, [AgentEvent::TurnStarted { turn: 4 }, gone]);
    assert_eq!(bench.tell("x").await, Err(AgentError::Gone));
    bench.send(bench.message()).await.unwrap();
}

/// What a turn's tools answer. Its files are written on another thread, so time is the machine's here.
async fn written(bench: &Bench, script: &str) -> String {
    bench.tell(script).await.unwrap();
    let mut events = Vec::new();
    while !matches!(events.last(), Some(AgentEvent::TurnEnded { .. })) {
        tokio::task::yield_now().await;
        events.append(&mut bench.heard.take());
    }
    let result = |event| match event {
        AgentEvent::ToolResult { text } => Some(text),
        _ => None,
    };
    events.into_iter().find_map(result).unwrap()
}

#[actix::test]
async fn files_are_written_below_the_tasks_directory_and_nowhere_else() {
    let bench = started().await;
    let at = |path: &str| bench.dir.path().join(path);
    std::fs::create_dir(at("outside")).unwrap();
    std::os::unix::fs::symlink(at("outside"), at("t/link")).unwrap();
    std::os::unix::fs::symlink(at("outside/target"), at("t/file-link")).unwrap();
    for (path, text) in [("a.txt", "one"), ("x/y/z.txt", "two"), ("a.txt", "three"), ("file-link", "four")] {
        assert_eq!(written(&bench, &format!("write {path} {text}")).await, format!("wrote {path}"));
        assert_eq!(std::fs::read_to_string(at("t").join(path)).unwrap(), text);
    }
    for path in ["../evil", "/evil", "link/evil", "x/../../evil", "a.txt/evil", "x", "."] {
        let result = written(&bench, &format!("write {path} text")).await;
        assert!(result.starts_with(&format!("cannot write {path}: ")), "{result}");
    }
    let left = |dir: &Path| std::fs::read_dir(dir).unwrap().count();
    assert_eq!((left(&at("outside")), left(bench.dir.path())), (0, 2));
}

#[actix::test]
async fn an_agent_that_may_not_write_writes_nothing() {
    let changes: [fn(&mut StartAgent); 2] =
        [|start| start.mode = SandboxMode::ReadOnly, |start| start.tools = vec!["read".to_owned()]];
    for change in changes {
        let bench = Bench::new(start(1));
        let mut message = bench.message();
        change(&mut message);
        bench.send(message).await.unwrap();
        assert_eq!(written(&bench, "write a.txt x").await, "refused: the task may not write");
        assert!(!bench.dir.path().join("t/a.txt").exists());
    }
}

#[actix::test]
async fn a_start_goes_as_its_preset_and_the_test_want() {
    let bench = Bench::new(start(1));
    let ready = bench.send(bench.message()).await.unwrap();
    assert_eq!((ready.check.probe, ready.check.fs_denied), (Probe::Denied, true));
    assert_eq!(ready.tools, ["read", "write"]);
    let again = bench.send(bench.message()).await.unwrap_err();
    assert_eq!(again, AgentError::Failed("the task has an agent already".to_owned()));
    let other = |task: &str| StartAgent { task_id: task.to_owned(), resume: true, ..bench.message() };
    bench.send(other("u")).await.unwrap();
    let forgetful = bench.send(StartAgent { preset: "fake-forgetful".to_owned(), ..other("v") }).await;
    assert!(matches!(forgetful, Err(AgentError::NotResumable(_))), "{forgetful:?}");
    let broken = bench.send(StartAgent { preset: "fake-broken".to_owned(), ..other("v") }).await;
    assert!(matches!(broken, Err(AgentError::Config(_))), "{broken:?}");

    let leaky = Bench::new(start_so(Start::Ready(Probe::Allowed)));
    let check = leaky.send(leaky.message()).await.unwrap().check;
    assert_eq!((check.probe, check.fs_denied), (Probe::Allowed, false));
    let failing = Bench::new(start_so(Start::Fails(AgentError::Failed("no".to_owned()))));
    assert_eq!(failing.send(failing.message()).await, Err(AgentError::Failed("no".to_owned())));
    pause();
    let hanging = Bench::new(start_so(Start::Hangs));
    let waited = tokio::time::timeout(Duration::from_secs(1000), hanging.send(hanging.message())).await;
    assert!(waited.is_err());
    let presets = start(1);
    let shown: Vec<_> = presets.iter().map(|p| (p.id.as_str(), p.resumable, p.broken.is_some())).collect();
    assert_eq!(
        shown,
        [("fake", true, false), ("fake-forgetful", false, false), ("fake-broken", false, true)]
    );
}
