//! The contract's surface as a page has it: over real HTTP, with the token.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use cofferdam_tests::files;
use cofferdam_tests::host::Core;
use cofferdam_tests::site::Daemon;
use cofferdam_tests::web;
use serde_json::{Value, json};

use super::{site, with_either_core};

with_either_core! {
    each_method_of_the_contract_answers_over_http
    a_restart_of_the_core_interrupts_what_runs_and_a_task_can_go_on_afterwards
}

/// A page that has signed in.
pub(super) struct Page {
    address: String,
    token: String,
    /// What signed it in, and what it has been given for that.
    shown: [String; 2],
}

impl Page {
    pub(super) fn open(daemon: &Daemon) -> Self {
        let line = daemon.line();
        let link = line.strip_prefix("console: http://").unwrap_or_else(|| panic!("{line}"));
        let (address, path) = link.split_once('/').unwrap();
        let page = Self { address: address.to_owned(), token: String::new(), shown: Default::default() };
        let signed_in = page.ask(&format!("GET /{path}"), "", "");
        let cookie = signed_in.split_once("set-cookie: ").unwrap_or_else(|| panic!("{signed_in}")).1;
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let shown = [path, &cookie].map(|text| text.rsplit('=').next().unwrap().to_owned());
        let cookie = format!("Cookie: {cookie}\r\n");
        let token = document(&page.ask("GET /isolation-pod/bootstrap", &cookie, ""))["token"].clone();
        Self { token: token.as_str().unwrap().to_owned(), shown, ..page }
    }

    /// Whatever lets somebody in: the token, the code of the link, and the cookie.
    pub(super) fn secrets(&self) -> [&str; 3] {
        [&self.token, &self.shown[0], &self.shown[1]]
    }

    /// Everything the server says to one request.
    fn ask(&self, line: &str, headers: &str, body: &str) -> String {
        let (address, length) = (&self.address, body.len());
        let mut stream = self.connect();
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn connect(&self) -> TcpStream {
        web::connect(&self.address)
    }

    fn call(&self, method: &str, args: &Value) -> Value {
        let token = format!("x-ipp-token: {}\r\n", self.token);
        let body = json!({"method": method, "args": args}).to_string();
        let answer = self.ask("POST /isolation-pod/api", &token, &body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{method}: {answer}");
        document(&answer)
    }

    /// The answer of a method that must succeed.
    #[track_caller]
    pub(super) fn ok(&self, method: &str, args: &Value) -> Value {
        let answer = self.call(method, args);
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer
    }

    /// The code with which a method is refused.
    #[track_caller]
    fn refused(&self, method: &str, args: &Value) -> String {
        let answer = self.call(method, args);
        assert_eq!(answer["ok"], false, "{method}: {answer}");
        answer["code"].as_str().unwrap().to_owned()
    }

    /// Stands in for the client of a main session.
    fn attach(&self, session: &str, cwd: &str) -> BufReader<TcpStream> {
        self.listen(&format!("?sessionId={session}&cwd={cwd}"))
    }

    /// Listens to events.
    fn listen(&self, query: &str) -> BufReader<TcpStream> {
        let (address, token) = (&self.address, &self.token);
        let mut stream = self.connect();
        write!(
            stream,
            "GET /api/v1/events{query} HTTP/1.1\r\nHost: {address}\r\nx-ipp-token: {token}\r\n\r\n"
        )
        .unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        // The head, and the first line of the stream: the host has heard of it then.
        while !line.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut line).unwrap(), 0, "{line}");
        }
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        stream
    }
}

/// The JSON of an answer.
fn document(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// The next event of that kind.
fn next(stream: &mut BufReader<TcpStream>, kind: &str) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended");
        if let Some(json) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(json).unwrap();
            if event["kind"] == kind {
                return event;
            }
        }
    }
}

fn each_method_of_the_contract_answers_over_http(core: Core) {
    let site = site(core).with_http();
    let daemon = site.start();
    let page = Page::open(&daemon);
    let start =
        json!({"mainSessionId": "main", "description": "write a.txt hello\nsay all done\nend completed"});
    assert_eq!(page.refused("startTask", &start), "NO_SANDBOX_ROOT");
    let patch = json!({"patch": {"sandboxRoot": site.root(), "presetId": "fake"}});
    assert_eq!(page.ok("setConfig", &patch)["messages"], json!([]));

    let started = page.ok("startTask", &start);
    let task = json!({"taskId": started["taskId"]});
    let id = started["taskId"].as_str().unwrap().to_owned();
    assert_eq!(started["task"]["sessionId"], started["sessionId"]);
    let row = site.until(&id, |row| row["status"] == "completed" && row["lastText"] == "all done");

    let state = page.ok("getState", &json!({"mainSessionId": "main"}));
    assert_eq!((&state["build"], &state["core"]["status"]), (&json!(2), &json!("ready")));
    assert_eq!(state["core"]["embedded"], core == Core::Embedded);
    assert_eq!((&state["tasks"][0]["id"], &state["tasks"][0]["live"]), (&json!(id), &json!(true)));
    let opened = page.ok("openTask", &task);
    assert_eq!((&opened["live"], &opened["resumeError"]), (&json!(true), &Value::Null));
    assert_eq!(page.ok("resumeTask", &task)["live"], true);

    let directory = row["taskDir"].as_str().unwrap();
    files::write(format!("{directory}/b.bin"), "\0");
    let listed = page.ok("listFiles", &task);
    let names: Vec<_> = listed["entries"].as_array().unwrap().iter().map(|row| &row["relPath"]).collect();
    assert_eq!(names, ["a.txt", "b.bin"]);
    let read = |path: &str| json!({"taskId": id, "relPath": path});
    assert_eq!(page.ok("readSandboxFile", &read("a.txt"))["text"], "hello");
    assert_eq!(page.refused("readSandboxFile", &read("b.bin")), "BINARY_FILE");
    assert_eq!(page.refused("readSandboxFile", &read("../x")), "PATH_OUTSIDE");
    assert_eq!(page.ok("getLegacyTask", &task)["entries"], json!([]));

    let preview = json!({"taskId": id, "parts": {"file": {"relPath": "a.txt"}}});
    let text = page.ok("previewReturn", &preview)["text"].as_str().unwrap().to_owned();
    assert!(["completed", "all done", "hello"].iter().all(|part| text.contains(part)), "{text}");
    let message = json!({"mainSessionId": "main", "text": text});
    assert_eq!(page.refused("returnToMain", &message), "MAIN_SESSION_NOT_LIVE");
    let mut main = page.attach("main", "/");
    let returned = page.ok("returnToMain", &message);
    let event = next(&mut main, "main.message");
    assert_eq!((&event["id"], &event["text"]), (&returned["id"], &json!(text)));

    let target = site.outside();
    let export = json!({"taskId": id, "entries": ["a.txt"], "targetDir": target});
    let exported = page.ok("exportEntries", &export)["export"].clone();
    assert_eq!(files::read(format!("{target}/a.txt")), b"hello");
    assert_eq!(page.ok("listExports", &json!({}))["exports"][0]["id"], exported["id"]);
    let undone = page.ok("undoExport", &json!({"exportId": exported["id"]}));
    assert_eq!(undone["removed"], json!([format!("{target}/a.txt")]));
    let moved = json!({"taskId": id, "entries": ["a.txt"], "targetDir": target, "mode": "move"});
    let moved = page.ok("exportEntries", &moved)["export"]["id"].clone();
    assert_eq!(page.refused("undoExport", &json!({"exportId": moved})), "BAD_REQUEST");

    let diagnostics = page.ok("getDiagnostics", &json!({}));
    assert_eq!(
        (&diagnostics["coreReport"]["initialized"], &diagnostics["liveAgents"]),
        (&json!(true), &json!(1))
    );
    let held = page.ok("startTask", &json!({"mainSessionId": "", "description": "hold"}))["taskId"].clone();
    let running = site.until(held.as_str().unwrap(), |row| row["status"] == "running" && row["turns"] == 1);
    assert_eq!(page.ok("cancelTask", &json!({"taskId": running["id"]}))["task"]["id"], running["id"]);
    site.until(held.as_str().unwrap(), |row| row["status"] == "cancelled");
    let cleaned = page.ok("cleanup", &json!({"taskId": held, "scope": "all"}));
    assert_eq!((&cleaned["removedFiles"], &cleaned["removedRecord"]), (&json!(true), &json!(true)));
    assert_eq!(page.ok("bulkCleanup", &json!({"deleteFiles": true}))["deleted"], 1);
    assert!(!Path::new(directory).exists());
    assert_eq!(page.refused("cleanup", &task), "TASK_NOT_FOUND");
    assert_eq!(page.refused("followUp", &task), "UNKNOWN_METHOD", "it is ours, and not the contract's");
    assert_eq!(page.refused("startTask", &json!({"description": 7})), "BAD_REQUEST");
}

fn a_restart_of_the_core_interrupts_what_runs_and_a_task_can_go_on_afterwards(core: Core) {
    let site = site(core).with_http();
    let daemon = site.start_with(&[]);
    let page = Page::open(&daemon);
    let held = page.ok("startTask", &json!({"description": "hold"}))["taskId"].clone();
    let id = held.as_str().unwrap();
    site.until(id, |row| row["status"] == "running" && row["turns"] == 1);
    assert_eq!(page.ok("restartCore", &json!({}))["core"]["status"], "ready");
    let row = site.until(id, |row| row["status"] == "interrupted");
    assert_eq!((&row["live"], &row["canResume"]), (&json!(false), &json!(true)));
    assert_eq!(page.ok("resumeTask", &json!({"taskId": held}))["live"], true);
}

#[test]
fn a_core_of_another_release_refuses_starts_with_its_code_and_everything_else_goes_on() {
    let site = crate::site();
    let program = site.path("another-core");
    let refusal =
        r#"{"id":"%s","error":{"code":"PROTOCOL_MISMATCH","message":"another release","data":null}}\n"#;
    let id = r#"sed 's/.*"id":"\([^"]*\)".*/\1/'"#;
    let script = format!(
        "#!/bin/sh\nwhile read -r line; do printf '{refusal}' \"$(printf '%s' \"$line\" | {id})\"; done\n"
    );
    files::write(&program, script);
    files::chmod(&program, 0o755);
    let mut serve = site.serve();
    let daemon =
        Daemon::start(serve.args(["--http", "127.0.0.1:0", "--pod-core"]).arg(&program), &site.socket());
    let page = Page::open(&daemon);
    let mut events = page.listen("");
    while page.ok("getState", &json!({}))["core"]["status"] != "mismatch" {
        next(&mut events, "core.changed");
    }
    assert_eq!(page.refused("startTask", &json!({"description": "hold"})), "PROTOCOL_MISMATCH");
    assert_eq!(page.ok("getDiagnostics", &json!({}))["core"]["code"], "PROTOCOL_MISMATCH");
    let status = document(&page.ask("GET /isolation-pod/status", "", ""));
    assert_eq!((&status["ok"], &status["core"]["status"]), (&json!(true), &json!("mismatch")));
}
