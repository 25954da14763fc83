//! The backend over a script that speaks as a supervisor does.

use std::path::Path;
use std::sync::Mutex;

use actix::prelude::Handler;
use cofferdam_protocol::pod::{ModelChoice, Probe};
use cofferdam_storage::clock::WallTime;
use cofferdam_storage::pod::presets::{Argument, PromptBy};
use tokio::sync::mpsc;

use super::*;
use crate::Carries;
use crate::host::agent::{
    AgentError, CancelCause, CancelTurn, DisposeAgent, FollowUpAgent, ReadyAgent, StartAgent,
};

/// A clock that a test sets.
#[derive(Default)]
struct SetClock(Mutex<Duration>);

impl Clock for SetClock {
    fn wall(&self) -> WallTime {
        WallTime(7_000_000)
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

struct Listener(mpsc::UnboundedSender<AgentEvent>);

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<AgentEvent> for Listener {
    type Result = ();

    fn handle(&mut self, event: AgentEvent, _: &mut Context<Self>) {
        let _ = self.0.send(event);
    }
}

struct Bench {
    dir: tempfile::TempDir,
    clock: Arc<SetClock>,
    presets: Vec<Preset>,
    listener: Recipient<AgentEvent>,
    heard: mpsc::UnboundedReceiver<AgentEvent>,
    /// What people were told beside the ends of turns.
    notes: Vec<String>,
}

fn command(id: &str, follow_up: bool) -> CommandPreset {
    let argv = vec![Argument::One("sh".to_owned()), Argument::One("{prompt}".to_owned())];
    CommandPreset {
        id: id.to_owned(),
        name: id.to_owned(),
        argv_follow_up: follow_up.then(|| argv.clone()),
        argv_first: argv,
        prompt: PromptBy::Argument,
        needs: vec!["bash".to_owned()],
        ..CommandPreset::default()
    }
}

impl Bench {
    fn new(supervisor: impl Into<PathBuf>, faster: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(SetClock::default());
        let parts = CommandParts {
            supervisor: supervisor.into(),
            private: dir.path().join("private"),
            state: dir.path().join("state"),
            home: None,
            sockets: Vec::new(),
            places: Vec::new(),
            vars: BTreeMap::new(),
            clock: clock.clone(),
            faster,
        };
        let broken = BrokenPreset { id: "broken".to_owned(), why: "it is bad".to_owned() };
        let presets = vec![
            Ok(command("more", true)),
            Ok(command("once", false)),
            Ok(CommandPreset {
                keep_home: true,
                argv_follow_up: Some(["sh", "exit 3"].map(|part| Argument::One(part.to_owned())).to_vec()),
                ..command("keeper", true)
            }),
            Err(broken),
        ];
        let presets = start(parts, presets, Cosh(Err("there is none".to_owned())));
        let (sender, heard) = mpsc::unbounded_channel();
        Self { dir, clock, presets, listener: Listener(sender).start().recipient(), heard, notes: Vec::new() }
    }

    fn over_script(faster: u32) -> Self {
        Self::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/host/agent/command/tests/supervisor.sh"), faster)
    }

    fn message(&self, task: &str) -> StartAgent {
        let path = |name: &str| self.dir.path().join(name).to_str().unwrap().to_owned();
        StartAgent {
            task_id: task.to_owned(),
            session_id: "pod-session-u".to_owned(),
            preset: "more".to_owned(),
            model: ModelChoice::default(),
            policy: SandboxPolicy {
                root: path("pods"),
                root_display: path("pods"),
                task_dir: path("pods/t"),
                case_insensitive: false,
                separator: "/".to_owned(),
                long_path_prefix: String::new(),
            },
            mode: SandboxMode::WorkspaceWrite,
            tools: vec!["bash".to_owned()],
            system_prompt: String::new(),
            agent_dir: None,
            resume: false,
            turns: 0,
            events: self.listener.clone(),
        }
    }

    async fn send<M>(&self, message: M) -> M::Result
    where
        M: actix::Message + Send + 'static,
        M::Result: Send,
        AgentBackend: Carries<M>,
    {
        self.presets[0].backend.recipient().send(message).await.unwrap()
    }

    async fn begin(&self) -> ReadyAgent {
        self.send(self.message("t")).await.unwrap()
    }

    async fn tell(&self, prompt: &str) -> Result<(), AgentError> {
        self.send(FollowUpAgent { task_id: "t".to_owned(), prompt: prompt.to_owned(), conversation: None })
            .await
    }

    async fn cancel(&self) {
        self.send(CancelTurn { task_id: "t".to_owned(), cause: CancelCause::Timeout }).await;
    }

    async fn dispose(&self) {
        self.send(DisposeAgent { task_id: "t".to_owned() }).await;
    }

    /// The next turn from its start to its end.
    async fn turn(&mut self) -> (u64, String, String) {
        let Some(AgentEvent::TurnStarted { turn: started }) = self.heard.recv().await else {
            panic!("no turn began")
        };
        self.end(started).await
    }

    async fn end(&mut self, started: u64) -> (u64, String, String) {
        loop {
            match self.heard.recv().await {
                Some(AgentEvent::Exited) => {}
                Some(AgentEvent::Note(note)) => self.notes.push(note),
                Some(AgentEvent::TurnEnded { turn, reason, error }) => {
                    assert_eq!(turn, started);
                    return (turn, reason, error);
                }
                other => panic!("no turn ended: {other:?}"),
            }
        }
    }
}

#[actix::test]
async fn a_turn_ends_as_its_program_did() {
    let mut bench = Bench::over_script(1);
    bench.begin().await;
    for (number, (prompt, reason, part)) in (1..).zip([
        ("exit 0", "completed", ""),
        ("exit 3", "error", "exit code 3"),
        ("killed", "error", "signal 9"),
        ("unable", "error", "no such program"),
        ("untidy", "completed", ""),
        ("vanish", "error", "ended before the program did"),
        ("nonsense", "completed", ""),
    ]) {
        bench.tell(prompt).await.unwrap();
        let (turn, ended, error) = bench.turn().await;
        assert_eq!((turn, ended.as_str()), (number, reason), "{prompt}: {error}");
        assert!(error.contains(part) && error.is_empty() == part.is_empty(), "{prompt}: {error}");
    }
    assert_eq!(bench.notes, ["the program has ended, and something is left"]);
}

#[actix::test]
async fn a_cancelled_turn_is_aborted_and_the_agent_lives_on() {
    let mut bench = Bench::over_script(1);
    bench.begin().await;
    bench.cancel().await;
    bench.tell("wait").await.unwrap();
    assert_eq!(bench.tell("exit 0").await, Err(AgentError::Busy));
    bench.cancel().await;
    assert_eq!(bench.turn().await, (1, "aborted".to_owned(), String::new()));
    bench.tell("exit 0").await.unwrap();
    assert_eq!(bench.turn().await.1, "completed");
}

#[actix::test]
async fn a_supervisor_that_minds_nothing_is_killed() {
    let mut bench = Bench::over_script(100);
    bench.begin().await;
    bench.tell("deaf").await.unwrap();
    bench.cancel().await;
    assert_eq!(bench.turn().await, (1, "aborted".to_owned(), String::new()));
    assert!(bench.notes[0].contains("was killed; programs that the task has started may still run"));
    bench.tell("deaf").await.unwrap();
    bench.dispose().await;
    assert_eq!(bench.tell("exit 0").await, Err(AgentError::Gone));
}

#[actix::test]
async fn what_was_disposed_of_is_gone_for_everybody_who_asks_and_says_nothing_more() {
    let mut bench = Bench::over_script(1);
    bench.begin().await;
    bench.tell("wait").await.unwrap();
    tokio::join!(bench.dispose(), bench.dispose());
    assert_eq!(bench.heard.recv().await, Some(AgentEvent::TurnStarted { turn: 1 }));
    assert!(bench.heard.try_recv().is_err());
    bench.dispose().await;
    // There can be another one.
    bench.begin().await;
    bench.tell("exit 0").await.unwrap();
    assert_eq!(bench.turn().await.1, "completed");
}

#[actix::test]
async fn a_sandbox_is_tested_once_for_all_that_are_confined_alike_and_anew_after_ten_minutes() {
    let bench = Bench::over_script(1);
    let note = async |task: &str, how: fn(&mut StartAgent)| {
        let mut message = bench.message(task);
        how(&mut message);
        let ready = bench.send(message).await.unwrap();
        assert_eq!((ready.check.probe, ready.check.fs_denied, ready.check.at), (Probe::Denied, true, 7));
        ready.check.note
    };
    let first = note("a", |_| {}).await;
    assert!(first.starts_with("tested by "), "{first}");
    assert_eq!(note("b", |start| start.preset = "once".to_owned()).await, first);
    let read_only = note("c", |start| start.mode = SandboxMode::ReadOnly).await;
    let elsewhere = note("d", |start| start.policy.root.push('2')).await;
    assert!(first != read_only && first != elsewhere && read_only != elsewhere);
    *bench.clock.0.lock().unwrap() = Duration::from_secs(599);
    assert_eq!(note("e", |_| {}).await, first);
    *bench.clock.0.lock().unwrap() = Duration::from_secs(600);
    assert_ne!(note("f", |_| {}).await, first);
}

#[actix::test]
async fn a_turn_without_a_layer_that_the_test_had_does_not_run_and_the_next_agent_is_tested_anew() {
    let mut bench = Bench::over_script(1);
    let layered = |bench: &Bench, task: &str| {
        let mut message = bench.message(task);
        message.policy.task_dir.push_str("layered");
        message
    };
    let first = bench.send(layered(&bench, "t")).await.unwrap().check;
    // The verdict says so, too, of one that is confined alike.
    assert_eq!(bench.send(layered(&bench, "u")).await.unwrap().check, first);
    for task in ["t", "u"] {
        let prompt = "weaker".to_owned();
        bench.send(FollowUpAgent { task_id: task.to_owned(), prompt, conversation: None }).await.unwrap();
        assert_eq!(bench.heard.recv().await, Some(AgentEvent::TurnStarted { turn: 1 }));
        let Some(AgentEvent::Gone { message }) = bench.heard.recv().await else { panic!("it is not gone") };
        assert!(message.starts_with("it is weaker; resume the task"), "{message}");
    }
    assert_ne!(bench.send(layered(&bench, "t")).await.unwrap().check, first);
}

#[actix::test]
async fn without_a_sandbox_the_test_has_failed_and_is_made_again_the_next_time() {
    let bench = Bench::over_script(1);
    let mut message = bench.message("t");
    message.policy.task_dir.push_str("no-sandbox");
    let check = bench.send(message).await.unwrap().check;
    assert_eq!((check.probe, check.fs_denied), (Probe::Failed, false));
    assert_eq!(check.note, "this kernel has no Landlock");
    assert_eq!(bench.send(bench.message("u")).await.unwrap().check.probe, Probe::Denied);
}

#[actix::test]
async fn what_cannot_be_started_is_refused() {
    let bench = Bench::over_script(1);
    let refused = async |how: fn(&mut StartAgent)| {
        let mut message = bench.message("t");
        how(&mut message);
        bench.send(message).await.unwrap_err()
    };
    for id in ["nobody", "broken"] {
        let mut message = bench.message("t");
        message.preset = id.to_owned();
        assert!(matches!(bench.send(message).await, Err(AgentError::Config(_))), "{id}");
    }
    let resumed = |start: &mut StartAgent| {
        start.preset = "once".to_owned();
        start.resume = true;
    };
    assert!(matches!(refused(resumed).await, AgentError::NotResumable(_)));
    let AgentError::Config(why) = refused(|start| start.preset = "keeper".to_owned()).await else {
        panic!("a home was kept nowhere")
    };
    assert!(why.contains("keep_home"), "{why}");
    assert_eq!(bench.tell("exit 0").await, Err(AgentError::Gone));
    bench.begin().await;
    assert!(matches!(refused(|_| {}).await, AgentError::Failed(_)));
    assert!(matches!(bench.tell(&"x".repeat(200_000)).await, Err(AgentError::Failed(_))));
}

#[actix::test]
async fn an_agent_without_a_follow_up_has_one_turn() {
    let mut bench = Bench::over_script(1);
    let mut message = bench.message("t");
    message.preset = "once".to_owned();
    bench.send(message).await.unwrap();
    bench.tell("exit 0").await.unwrap();
    bench.turn().await;
    assert!(matches!(bench.tell("exit 0").await, Err(AgentError::NotResumable(_))));
}

#[actix::test]
async fn an_agent_whose_conversation_and_home_are_empty_begins_anew() {
    let mut bench = Bench::over_script(1);
    let agent_dir = bench.dir.path().join("agent");
    let mut message = bench.message("t");
    message.preset = "keeper".to_owned();
    message.agent_dir = Some(agent_dir.clone());
    message.turns = 3;
    bench.send(message).await.unwrap();
    let conversation = |roles: &[&str]| {
        let message = |role| serde_json::json!({ "role": role, "content": "x" });
        let messages: Vec<_> = roles.iter().map(message).collect();
        let conversation = serde_json::from_value(serde_json::json!({
            "schema_version": 1, "session_id": "2d711642-b726-4b04-8d2a-8a0470f4ed24", "workspace_scope": "/w",
            "created_at_ms": 1, "updated_at_ms": 1, "model": "", "generation": 1, "messages": messages,
        }));
        Some(Arc::new(conversation.unwrap()))
    };
    // It says with what it was started by how it ends.
    for (left, conversation, reason) in [
        (false, None, "completed"),
        // The host died in the first turn.
        (false, conversation(&["user"]), "completed"),
        (false, conversation(&["user", "assistant"]), "error"),
        // Only what the host has was removed: the agent has its own.
        (true, None, "error"),
        (true, conversation(&["user"]), "error"),
    ] {
        if left {
            cofferdam_tests::files::write(agent_dir.join("home/.agent/session"), "");
        }
        let case = format!("{left} {}", conversation.is_some());
        let follow_up = FollowUpAgent { task_id: "t".to_owned(), prompt: "exit 0".to_owned(), conversation };
        bench.send(follow_up).await.unwrap();
        let (_, ended, error) = bench.turn().await;
        assert_eq!(ended, reason, "{case}: {error}");
    }
}

#[actix::test]
async fn presets_say_what_is_wrong_with_them_and_none_works_without_a_supervisor() {
    let shown = |bench: &Bench| -> Vec<_> {
        bench
            .presets
            .iter()
            .map(|preset| (preset.id.clone(), preset.broken.clone(), preset.resumable))
            .collect()
    };
    let why = Some("it is bad".to_owned());
    assert_eq!(
        shown(&Bench::over_script(1)),
        [
            ("more".to_owned(), None, true),
            ("once".to_owned(), None, false),
            ("keeper".to_owned(), None, true),
            ("broken".to_owned(), why, false),
            ("cosh".to_owned(), Some("there is none".to_owned()), false)
        ]
    );
    let bench = Bench::new(Path::new("/nonexistent/cofferdam"), 1);
    assert!(bench.presets.iter().all(|preset| preset.broken.is_some()));
    assert!(bench.presets[0].broken.as_ref().unwrap().contains("/nonexistent/cofferdam"));
    assert!(matches!(bench.send(bench.message("t")).await, Err(AgentError::Failed(_))));
    let program = |argv: &str| CommandPreset {
        argv_first: argv.split(' ').map(|text| Argument::One(text.to_owned())).collect(),
        ..CommandPreset::default()
    };
    for (name, there) in [
        ("sh -c", true),
        ("/bin/sh", true),
        ("no-such sh", false),
        ("/bin/no-such", false),
        ("{model}", true),
        ("env A=b C=d sh -c", true),
        ("env A=b no-such sh", false),
    ] {
        let why = shell::missing(&program(name), Some("relative:/usr/bin:/bin"));
        assert_eq!(why.is_none(), there, "{name}: {why:?}");
    }
}

#[test]
fn the_shell_is_the_best_there_is_or_says_why_there_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    assert!(shell(Some(path)).unwrap_err().why.contains(path));
    for name in ["sh", "bash"] {
        std::fs::write(dir.path().join(name), "").unwrap();
        let preset = shell(Some(&format!("relative:{path}"))).unwrap();
        assert_eq!(preset.argv_first[0], Argument::One(name.to_owned()));
        assert_eq!((preset.id.as_str(), preset.needs), ("shell", vec!["bash".to_owned()]));
    }
}
