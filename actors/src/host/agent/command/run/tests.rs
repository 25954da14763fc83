//! A course whose supervisor the test plays. Where time is of interest, it goes by only as the test says: left alone, virtual time
//! goes on while something real is on its way.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::{PipeWriter, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio as ChildStdio};

use cofferdam_storage::pod::presets::OutputForm;
use tokio::task::yield_now;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{advance, pause};

use super::*;

const EXITED: &str = r#"{"report":"exited","code":null,"signal":15}"#;
const SECOND: Duration = Duration::from_secs(1);

/// Stops time until it is dropped, but for what the test lets go by: virtual time waits for threads that block.
fn stop_time() -> std::sync::mpsc::Sender<()> {
    let (held, until) = std::sync::mpsc::channel();
    drop(spawn_blocking(move || until.recv()));
    pause();
    held
}

/// Lets everything happen that can.
async fn settle() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

async fn passes(span: Duration) {
    settle().await;
    advance(span).await;
    settle().await;
}

/// The supervisor's side of a course.
struct Stage {
    link: UnixStream,
    /// What a program would hold.
    output: PipeWriter,
    errors: PipeWriter,
    wanted: watch::Sender<Wanted>,
    heard: mpsc::UnboundedReceiver<AgentEvent>,
    running: JoinHandle<io::Result<Ran>>,
    /// The process that stands for the supervisor, which ends when this does.
    pid: u32,
    ends: ChildStdin,
}

impl Stage {
    fn new(form: OutputForm) -> Self {
        let (link, theirs) = UnixStream::pair().unwrap();
        let (from_program, output) = pipe().unwrap();
        let (complaints, errors) = pipe().unwrap();
        let mut supervisor = Command::new("cat").stdin(ChildStdio::piped()).spawn().unwrap();
        let (pid, ends) = (supervisor.id(), supervisor.stdin.take().unwrap());
        let (wanted, told) = watch::channel(Wanted::Work);
        let course = Course {
            supervisor: Supervisor(Some(supervisor)),
            copies: None,
            link: theirs,
            output: pipe::Receiver::from_owned_fd(from_program.into()).unwrap(),
            errors: pipe::Receiver::from_owned_fd(complaints.into()).unwrap(),
            printed: Output::new(form, &BTreeMap::new()),
            wanted: told,
            faster: 1,
        };
        let (sender, heard) = mpsc::unbounded_channel();
        let said = async move |event| drop(sender.send(event));
        let running = spawn_local(course.follow(None, pending(), said));
        Self { link, output, errors, wanted, heard, running, pid, ends }
    }

    async fn report(&mut self, line: &str) {
        self.link.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The supervisor ends, and everything with it.
    async fn end(self) -> Ran {
        let Self { link, output, errors, ends, running, .. } = self;
        drop((link, output, errors, ends));
        running.await.unwrap().unwrap()
    }
}

#[actix::test]
async fn what_is_left_of_a_program_that_was_cancelled_is_cleared_in_a_minute_of_its_own() {
    let _stopped = stop_time();
    let mut stage = Stage::new(OutputForm::Text);
    stage.wanted.send_replace(Wanted::Cancel);
    passes(7 * SECOND).await;
    stage.report(EXITED).await;
    assert_eq!(stage.heard.recv().await, Some(AgentEvent::Exited));
    passes(50 * SECOND).await;
    let ran = stage.end().await;
    assert!(ran.cancelled && ran.left().is_none(), "{ran:?}");
}

#[actix::test]
async fn a_supervisor_that_nobody_follows_any_more_leaves_no_zombie() {
    let Stage { running, pid, ends, .. } = Stage::new(OutputForm::Text);
    running.abort();
    let _ = running.await;
    drop(ends);
    while Path::new(&format!("/proc/{pid}")).exists() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[actix::test]
async fn others_are_served_while_a_line_is_read_that_says_nothing() {
    const LINES: u32 = 4;
    let line = format!("{{\"x\":[{}0]}}\n", "0,".repeat(2_000_000));
    let began = Instant::now();
    Output::new(OutputForm::Jsonl, &BTreeMap::new()).push(line.as_bytes(), &mut Tail::default());
    let alone = began.elapsed() * LINES;
    let stage = Stage::new(OutputForm::Jsonl);
    let Stage { link, mut output, errors, ends, mut running, .. } = stage;
    let printed = spawn_blocking(move || (0..LINES).try_for_each(|_| output.write_all(line.as_bytes())));
    // Once it is printed, the supervisor ends, too.
    let ended = spawn_local(async move {
        let printed = printed.await.unwrap();
        drop((link, errors, ends));
        printed
    });
    // How long nobody else was served, in all.
    let mut held_up = Duration::ZERO;
    let mut last = Instant::now();
    let ran = loop {
        tokio::select! {
            ran = &mut running => break ran,
            () = sleep(Duration::from_millis(1)) => {}
        }
        held_up += last.elapsed().saturating_sub(Duration::from_millis(5));
        last = Instant::now();
    };
    ran.unwrap().unwrap();
    ended.await.unwrap().unwrap();
    assert!(held_up < alone / 2, "{held_up:?} of {alone:?}");
}
