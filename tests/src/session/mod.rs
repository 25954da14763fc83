//! Sessions in a place of their own, and the built `cosh-core` that manages them.

mod headless;
mod place;
mod turn;

use std::fs::File;
use std::io::Write;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cofferdam_protocol::session::Summary;
use serde_json::{Value, json};

use crate::user;

pub use headless::Headless;
pub use place::{ARRAY, Place, directory_name, envelope, id, put, recorded};
pub use turn::Turn;

/// A test's own place, with the program.
#[derive(Debug)]
pub struct SessionSite {
    place: Place,
    program: PathBuf,
    /// What keeps a program's name for another user.
    open: Option<File>,
    runs_as: Option<u32>,
}

/// What `cosh-core --session-control` said.
#[derive(Debug)]
pub struct Answer {
    /// Its exit code.
    pub code: i32,
    /// Its one line.
    pub line: Value,
    /// The length of that line with its newline, in bytes.
    pub length: usize,
    /// What it complained about.
    pub stderr: String,
}

impl SessionSite {
    /// A place in which `cosh-core`, built at this path, runs as whoever runs the test.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { place: Place::new(), program: program.into(), open: None, runs_as: None }
    }

    /// The same for an ordinary user: [`user::NOBODY`] if the test runs as root.
    pub fn of_ordinary_user(program: impl Into<PathBuf>) -> Self {
        let mut site = Self::new(program);
        if user::is_root() {
            // Another user can run it then, also where he may not search the directories above it.
            let file = File::open(&site.program).unwrap();
            site.program = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
            site.open = Some(file);
            site.runs_as = Some(user::NOBODY);
            site.hand_over();
        }
        site
    }

    /// Gives everything in this place to whom the program runs as.
    pub fn hand_over(&self) {
        if let Some(uid) = self.runs_as {
            user::give_all(self.path(""), uid);
        }
    }

    /// The program, with nothing of this process's environment but a path; it is in none of the site's workspaces.
    pub fn core(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.home())
            .current_dir(self.path("elsewhere"));
        if let Some(uid) = self.runs_as {
            user::run_as(&mut command, uid);
        }
        command
    }

    /// Sends a request, as it is.
    #[track_caller]
    pub fn send(&self, request: impl AsRef<[u8]>) -> Answer {
        self.run(self.core(&["--session-control"]), request.as_ref())
    }

    /// Runs a command that answers one request.
    #[track_caller]
    pub fn run(&self, mut command: Command, request: &[u8]) -> Answer {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        // It need not read all of a request that is too long.
        let _ = child.stdin.take().unwrap().write_all(request);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code().unwrap_or_else(|| panic!("{}: {stderr}", output.status));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.ends_with('\n') && text.lines().count() == 1, "not one line: {text:?}\n{stderr}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["ok"], json!(code == 0), "exit code {code}: {text}");
        Answer { code, line, length: text.len(), stderr }
    }

    /// Sends a request about the site's workspace. `request` has the action and what it needs besides.
    #[track_caller]
    pub fn ask(&self, mut request: Value) -> Answer {
        request["workspace_scope"] = json!(self.workspace());
        self.send(request.to_string())
    }

    /// The data that a request about the site's workspace is answered with.
    #[track_caller]
    pub fn data(&self, request: Value) -> Value {
        self.ask(request).data()
    }

    /// The code of the error that a request about the site's workspace is answered with.
    #[track_caller]
    pub fn refused(&self, request: Value) -> String {
        self.ask(request).code()
    }

    /// A page of summaries, and the cursor of the next. `request` says what beside the action and the workspace.
    #[track_caller]
    pub fn list(&self, mut request: Value) -> (Vec<Summary>, Value) {
        request["action"] = json!("list");
        let data = self.data(request);
        (serde_json::from_value(data["sessions"].clone()).unwrap(), data["next_cursor"].clone())
    }

    /// The ids of the first hundred summaries.
    #[track_caller]
    pub fn listed(&self) -> Vec<String> {
        self.list(json!({"limit": 100})).0.into_iter().map(|row| row.session_id).collect()
    }

    /// One summary.
    #[track_caller]
    pub fn inspect(&self, n: u32) -> Summary {
        let data = self.data(json!({"action": "inspect", "session_id": id(n)}));
        serde_json::from_value(data["session"].clone()).unwrap()
    }

    /// `ok`, or the code with which validation of a session fails.
    #[track_caller]
    pub fn validate(&self, n: u32) -> String {
        let answer = self.ask(json!({"action": "validate", "session_id": id(n)}));
        if answer.code == 0 { "ok".to_owned() } else { answer.code() }
    }

    /// The clearable ids of the whole plan.
    #[track_caller]
    pub fn planned(&self) -> Vec<String> {
        let data = self.data(json!({"action": "prepare_clear_all", "protected_session_ids": []}));
        assert_eq!(data["next_cursor"], Value::Null);
        serde_json::from_value(data["session_ids"].clone()).unwrap()
    }

    /// Removes a session; `ok`, or the code with which it was skipped.
    #[track_caller]
    pub fn clear(&self, n: u32) -> String {
        let request = json!({"action": "clear", "session_ids": [id(n)], "protected_session_ids": []});
        let data = self.data(request);
        match data["skipped"].get(0) {
            None => "ok".to_owned(),
            Some(skipped) => skipped["error"]["code"].as_str().unwrap().to_owned(),
        }
    }
}

impl Deref for SessionSite {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Answer {
    /// The data of a success.
    #[track_caller]
    pub fn data(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        self.line["data"].clone()
    }

    /// The code of a failure.
    #[track_caller]
    pub fn code(&self) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        self.line["error"]["code"].as_str().unwrap().to_owned()
    }
}
