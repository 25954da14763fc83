//! How fast the host answers, beside a rival in the same run: `cargo bench -p cofferdam --bench host`.
//!
//! - `getState` with 200 tasks, beside a bare actix-web handler that returns the same bytes: requests a second over one
//!   kept connection, and how long one takes.
//! - How long it takes from `startTask` to the first instruction of a program in its sandbox, with the sandbox's test still
//!   believed and with a test of its own, beside the same program started without anything around it.
//! - How long it takes from telling a task more to that instruction, in directories of several sizes: what a turn's
//!   checkpoints add, beside `find` in the same directory.
//! - How long it takes from a change of a task's state, as the asker's answer shows it, until a listener has the event.
//!
//! Rivals take turns, so that a busy machine is busy for both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has nothing to say")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::{Value, json};

const TASKS: usize = 200;

fn main() {
    let place = tempfile::Builder::new().prefix("cofferdam-bench-").tempdir().unwrap();
    let mut daemon = Daemon::start(place.path());
    daemon.call("setConfig", &json!({"patch": {
        "sandboxRoot": place.path().join("pods"), "presetId": "fake", "maxConcurrent": 8, "maxTasks": 5000,
    }}));
    for nth in 0..TASKS {
        daemon.call(
            "startTask",
            &json!({"description": format!("say {}\nend completed", "text ".repeat(40 + nth % 7))}),
        );
    }
    let body = daemon.settled();
    states(&mut daemon, body);
    events(&mut daemon);
    starts(&mut daemon, place.path());
    turns(&mut daemon, place.path());
}

/// `getState`, beside the same bytes from a handler that has them at hand.
fn states(daemon: &mut Daemon, body: Vec<u8>) {
    const ROUNDS: usize = 40;
    const REQUESTS: usize = 100;
    println!("getState with {TASKS} tasks, {} bytes", body.len());
    let mut bare = Connection::open(bare(body));
    let request = br#"{"method":"getState","args":{}}"#;
    let (mut ours, mut rival, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let round = |connection: &mut Connection, token: &str, all: &mut Vec<Duration>| {
            let began = Instant::now();
            for _ in 0..REQUESTS {
                let sent = Instant::now();
                connection.post("/isolation-pod/api", token, request);
                all.push(sent.elapsed());
            }
            REQUESTS as f64 / began.elapsed().as_secs_f64()
        };
        let before = round(&mut bare, "", &mut rival);
        let token = daemon.token.clone();
        let rate = round(&mut daemon.connection, &token, &mut ours);
        let after = round(&mut bare, "", &mut rival);
        // As long for each as it took on the whole.
        ratios.push(rate / (2.0 / (1.0 / before + 1.0 / after)));
    }
    ratios.sort_unstable_by(f64::total_cmp);
    for (what, times) in [("the daemon", &mut ours), ("a bare handler", &mut rival)] {
        times.sort_unstable();
        println!(
            "{what:<16} p50 {:>6} us   p99 {:>6} us",
            percentile(times, 50).as_micros(),
            percentile(times, 99).as_micros()
        );
    }
    println!(
        "a second, x bare: {:.2} (p10 {:.2}, p90 {:.2})",
        ratios[ratios.len() / 2],
        ratios[ratios.len() / 10],
        ratios[ratios.len() * 9 / 10]
    );
}

/// From the answer of a cancellation to the event that says so.
fn events(daemon: &mut Daemon) {
    const CHANGES: usize = 200;
    let heard = daemon.listen();
    let mut times = Vec::new();
    for _ in 0..CHANGES {
        let started = daemon.call("startTask", &json!({"description": "hold"}));
        let id = started["taskId"].as_str().unwrap().to_owned();
        wait(&heard, &id, "running");
        daemon.call("cancelTask", &json!({"taskId": id}));
        let answered = Instant::now();
        let at = wait(&heard, &id, "cancelled");
        times.push(at.saturating_duration_since(answered));
        daemon.call("cleanup", &json!({"taskId": id, "scope": "all"}));
    }
    times.sort_unstable();
    println!(
        "from the answer of a cancellation, through the agent and a durable change, to the event: p50 {} us, p99 {} us",
        percentile(&times, 50).as_micros(),
        percentile(&times, 99).as_micros()
    );
}

/// From `startTask` to the program's first instruction, beside a bare start of the same program.
fn starts(daemon: &mut Daemon, place: &Path) {
    const ROUNDS: usize = 50;
    let heard = daemon.listen();
    daemon.call("setConfig", &json!({"patch": {"presetId": "shell", "allowedTools": ["bash"]}}));
    let (mut bare, mut believed, mut tested) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        bare.push(bare_start(place));
        // Of another root nothing is known yet.
        let root = place.join(format!("root-{round}"));
        daemon.call("setConfig", &json!({"patch": {"sandboxRoot": root}}));
        tested.push(sandboxed_start(daemon, &heard, &root));
        believed.push(sandboxed_start(daemon, &heard, &root));
    }
    println!("from the request to the program's first instruction, {ROUNDS} times each");
    let table = [
        ("the program alone", &mut bare),
        ("a task, its sandbox tested before", &mut believed),
        ("a task, and a test of its sandbox", &mut tested),
    ];
    for (what, times) in table {
        times.sort_unstable();
        let [middle, most] = [50, 95].map(|of| percentile(times, of).as_secs_f64() * 1000.0);
        println!("{what:<36} p50 {middle:>7.2} ms   p95 {most:>7.2} ms");
    }
}

/// Writes down when it began.
const SCRIPT: &str = "printf %s $EPOCHREALTIME > began";

fn bare_start(place: &Path) -> Duration {
    let asked = SystemTime::now();
    let ended = Command::new("bash").args(["-c", "--", SCRIPT]).current_dir(place).status().unwrap();
    assert!(ended.success());
    began(place).duration_since(asked).unwrap_or_default()
}

fn sandboxed_start(daemon: &mut Daemon, heard: &mpsc::Receiver<(Instant, Value)>, root: &Path) -> Duration {
    let asked = SystemTime::now();
    let started = daemon.call("startTask", &json!({"description": SCRIPT}));
    let id = started["taskId"].as_str().unwrap().to_owned();
    wait(heard, &id, "completed");
    let took = began(&root.join(&id)).duration_since(asked).unwrap_or_default();
    daemon.call("cleanup", &json!({"taskId": id, "scope": "all"}));
    took
}

/// From `followUp` to the program's first instruction: what the checkpoints before the turn add as a task's directory grows,
/// beside `find` in the same directory, and one fsync.
fn turns(daemon: &mut Daemon, place: &Path) {
    const ROUNDS: usize = 20;
    let heard = daemon.listen();
    let root = place.join("turns");
    daemon.call("setConfig", &json!({"patch": {"sandboxRoot": root}}));
    println!("from telling a task more to the program's first instruction, {ROUNDS} times each");
    for files in [1, 10, 1000, 10_000] {
        let script = format!(
            "for ((i = 0; i < {files}; i++)); do mkdir -p $((i / 100)); echo $i > $((i / 100))/$i; done"
        );
        let started = daemon.call("startTask", &json!({"description": script}));
        let id = started["taskId"].as_str().unwrap().to_owned();
        wait(&heard, &id, "completed");
        let mut told = |script: &str| {
            let asked = SystemTime::now();
            daemon.tell(&id, script);
            wait(&heard, &id, "running");
            let ended = heard_of(&heard, &id, "completed").1;
            moment(ended["task"]["lastText"].as_str().unwrap()).duration_since(asked).unwrap_or_default()
        };
        let (nothing, ten) =
            ("echo $EPOCHREALTIME", "echo $EPOCHREALTIME; for i in {0..9}; do echo $RANDOM > 0/$i; done");
        // The first checkpoint of all these files, and one that finds them at rest.
        let first = told(nothing);
        told(nothing);
        let mut unchanged: Vec<_> = (0..ROUNDS).map(|_| told(nothing)).collect();
        told(ten);
        let mut changed: Vec<_> = (0..ROUNDS).map(|_| told(ten)).collect();
        let mut rival: Vec<_> = (0..ROUNDS).map(|_| find(&root.join(&id))).collect();
        for times in [&mut unchanged, &mut changed, &mut rival] {
            times.sort_unstable();
        }
        let [first, unchanged, changed, rival] =
            [first, middle(&unchanged), middle(&changed), middle(&rival)]
                .map(|time| time.as_secs_f64() * 1000.0);
        println!(
            "{files:>6} files: all new {first:>7.2} ms   none changed {unchanged:>7.2} ms   ten changed {changed:>7.2} ms   \
             find {rival:>6.2} ms"
        );
        daemon.call("cleanup", &json!({"taskId": id, "scope": "all"}));
    }
    let mut file = std::fs::File::create(place.join("synced")).unwrap();
    let mut synced: Vec<_> = (0..ROUNDS)
        .map(|_| {
            file.write_all(&[0; 4096]).unwrap();
            let began = Instant::now();
            file.sync_data().unwrap();
            began.elapsed()
        })
        .collect();
    synced.sort_unstable();
    println!("one fsync: p50 {:.2} ms", middle(&synced).as_secs_f64() * 1000.0);
}

fn find(dir: &Path) -> Duration {
    let began = Instant::now();
    assert!(Command::new("find").arg(dir).args(["-newermt", "2100-01-01"]).status().unwrap().success());
    began.elapsed()
}

fn middle(sorted: &[Duration]) -> Duration {
    percentile(sorted, 50)
}

/// What a program has written down.
fn began(dir: &Path) -> SystemTime {
    moment(&std::fs::read_to_string(dir.join("began")).unwrap())
}

/// What bash calls `EPOCHREALTIME`.
fn moment(text: &str) -> SystemTime {
    let micros = text.trim().replace('.', "").parse().unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

/// When the event came that a task has that status.
fn wait(heard: &mpsc::Receiver<(Instant, Value)>, id: &str, status: &str) -> Instant {
    heard_of(heard, id, status).0
}

/// That event.
fn heard_of(heard: &mpsc::Receiver<(Instant, Value)>, id: &str, status: &str) -> (Instant, Value) {
    loop {
        let (at, event) = heard.recv_timeout(Duration::from_secs(30)).unwrap();
        if event["kind"] == "task.changed" && event["taskId"] == id && event["task"]["status"] == status {
            return (at, event);
        }
    }
}

fn percentile(sorted: &[Duration], of: usize) -> Duration {
    sorted[(sorted.len() * of / 100).min(sorted.len() - 1)]
}

/// A server that has its answer at hand.
fn bare(body: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let body = web::Bytes::from(body);
        let server = HttpServer::new(move || {
            let body = body.clone();
            App::new().route(
                "/isolation-pod/api",
                web::post().to(move |_: web::Bytes| {
                    let body = body.clone();
                    async move { HttpResponse::Ok().content_type("application/json; charset=utf-8").body(body) }
                }),
            )
        });
        actix_web::rt::System::new().block_on(server.workers(1).listen(listener).unwrap().run()).unwrap();
    });
    address
}

/// The daemon, with scripted agents.
struct Daemon {
    process: Child,
    address: SocketAddr,
    cookie: String,
    token: String,
    connection: Connection,
}

impl Daemon {
    fn start(place: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cofferdam"))
            .args(["serve", "--http", "127.0.0.1:0", "--log-level", "error", "--state-dir"])
            .arg(place.join("state"))
            .arg("--socket")
            .arg(place.join("ws.sock"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| line.unwrap().strip_prefix("console: ").map(str::to_owned)).unwrap();
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let address = cofferdam_tests::web::address(host);
        let mut connection = Connection::open(address);
        let (head, _) = connection.ask(&format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n"), b"");
        let cookie = head.lines().find(|line| line.to_lowercase().starts_with("set-cookie:"));
        let cookie = cookie.unwrap()["set-cookie:".len()..].split(';').next().unwrap().trim().to_owned();
        let get =
            format!("GET /isolation-pod/bootstrap HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n");
        let (_, body) = connection.ask(&get, b"");
        let said: Value = serde_json::from_slice(&body).unwrap();
        let token = said["token"].as_str().unwrap().to_owned();
        Self { process, address, cookie, token, connection }
    }

    fn call(&mut self, method: &str, args: &Value) -> Value {
        let body = json!({"method": method, "args": args}).to_string();
        let answer = self.connection.post("/isolation-pod/api", &self.token, body.as_bytes());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer
    }

    /// Tells a task more.
    fn tell(&mut self, task: &str, text: &str) {
        let body = json!({"taskId": task, "text": text}).to_string();
        let answer = self.connection.post("/api/v1/pod/followUp", &self.token, body.as_bytes());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["task"]["id"], task, "{answer}");
    }

    /// The state, once every task has ended.
    fn settled(&mut self) -> Vec<u8> {
        let heard = self.listen();
        loop {
            let body = self.connection.post(
                "/isolation-pod/api",
                &self.token,
                br#"{"method":"getState","args":{}}"#,
            );
            let state: Value = serde_json::from_slice(&body).unwrap();
            let tasks = state["tasks"].as_array().unwrap();
            if tasks.len() == TASKS && tasks.iter().all(|task| task["status"] == "completed") {
                return body;
            }
            let _ = heard.recv_timeout(Duration::from_millis(200));
        }
    }

    /// Events as they come, each with when it did.
    fn listen(&self) -> mpsc::Receiver<(Instant, Value)> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let (host, cookie) = (self.address, &self.cookie);
        write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n").unwrap();
        let (sender, heard) = mpsc::channel();
        let mut lines = BufReader::new(stream).lines();
        assert!(lines.next().unwrap().unwrap().contains("200"));
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(data) = line.strip_prefix("data: ")
                    && sender.send((Instant::now(), serde_json::from_str(data).unwrap())).is_err()
                {
                    return;
                }
            }
        });
        heard
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A connection that is kept.
struct Connection {
    host: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(host: SocketAddr) -> Self {
        let stream = TcpStream::connect(host).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { host, stream: BufReader::new(stream) }
    }

    fn post(&mut self, path: &str, token: &str, body: &[u8]) -> Vec<u8> {
        let (host, length) = (self.host, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nx-ipp-token: {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        self.ask(&head, body).1
    }

    /// Sends a request, and reads the head and the body of the answer.
    fn ask(&mut self, head: &str, body: &[u8]) -> (String, Vec<u8>) {
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = String::new();
        while !answer.ends_with("\r\n\r\n") {
            assert_ne!(self.stream.read_line(&mut answer).unwrap(), 0, "{answer}");
        }
        let length = answer
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body).unwrap();
        (answer, body)
    }
}
