//! The tool that runs a command.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use serde_json::{Map, Value, json};

use super::{Description, Outcome, Place, Running, SHELL, Tool};
use crate::session::process::{Processes, Starter};

/// How much is kept of the beginning of what a command writes, and how much of its end.
const KEPT: usize = 16 << 10;
/// How much is read at once.
const CHUNK: usize = 8 << 10;

/// Runs commands.
pub(super) struct Shell {
    processes: Processes,
}

impl Shell {
    pub(super) fn new(processes: Processes) -> Self {
        Self { processes }
    }
}

impl Tool for Shell {
    fn name(&self) -> &'static str {
        SHELL
    }

    fn description(&self) -> Description {
        Description {
            name: SHELL,
            description: "Runs a command with sh and gives what it writes.",
            parameters: json!({
                "type": "object",
                "properties": {"command": {"type": "string", "description": "The command"}},
                "required": ["command"],
            }),
        }
    }

    fn call(&self, arguments: &Map<String, Value>, place: &Place) -> Running {
        let (permit, starter) = self.processes.permit();
        let (outcome, running) = Running::new(permit);
        let Some(Value::String(command)) = arguments.get("command") else {
            let _ = outcome.send(Outcome::error("the argument `command` is missing"));
            return running;
        };
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).envs(&place.variables);
        if let Some(cwd) = &place.cwd {
            shell.current_dir(cwd);
        }
        let work = move || {
            let ran = run(starter, shell);
            // Nobody may wait for it any more.
            let _ = outcome.send(ran.unwrap_or_else(|error| Outcome::error(cannot_run(&error))));
        };
        // If there is no thread the outcome's sender goes with the work, which says as much.
        let _ = thread::Builder::new().name("shell".to_owned()).spawn(work);
        running
    }
}

fn cannot_run(error: &io::Error) -> String {
    format!("the command cannot be run: {error}")
}

/// Runs a command to its end.
fn run(starter: Starter, mut command: Command) -> io::Result<Outcome> {
    // One pipe for both, so that what is written stays in its order.
    let (mut reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let ended = starter.start(command)?.end_in_time()?;
    let mut written = Written::default();
    written.read(&mut reader)?;
    match ended.join() {
        Ok(status) => Ok(outcome(written, status?)),
        Err(_) => Ok(Outcome::error("the command was not waited for")),
    }
}

fn outcome(written: Written, status: ExitStatus) -> Outcome {
    let mut content = written.into_text();
    if !status.success() {
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        content.push_str(&format!("[{status}]"));
    }
    Outcome { content, is_error: !status.success() }
}

/// What a command writes: the beginning and the end of it.
#[derive(Default)]
struct Written {
    beginning: Vec<u8>,
    end: Vec<u8>,
    left_out: usize,
}

impl Written {
    fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(read) => self.add(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.beginning.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend_from_slice(rest);
        let over = self.end.len().saturating_sub(KEPT);
        self.end.drain(..over);
        self.left_out += over;
    }

    fn into_text(self) -> String {
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[self.beginning, self.end].concat()).into_owned();
        }
        let (beginning, end) = (String::from_utf8_lossy(&self.beginning), String::from_utf8_lossy(&self.end));
        format!("{beginning}\n[{} bytes left out]\n{end}", self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn ran(command: &str, place: &Place) -> Outcome {
        let arguments = json!({"command": command});
        let running = Shell::new(Processes::default()).call(arguments.as_object().unwrap(), place);
        running.outcome.blocking_recv().unwrap()
    }

    #[test]
    fn a_command_gives_what_it_writes_in_its_order_and_how_it_failed() {
        let here = Place::default();
        let good = |content: &str| Outcome { content: content.to_owned(), is_error: false };
        assert_eq!(ran("echo hello", &here), good("hello\n"));
        assert_eq!(ran("echo a; echo b >&2; echo c", &here), good("a\nb\nc\n"));
        assert_eq!(ran("cat", &here), good(""), "there is no input");
        assert_eq!(ran("printf out; exit 3", &here), Outcome::error("out\n[exit status: 3]"));
        assert!(ran("kill -9 $$", &here).content.starts_with("[signal: 9"));
    }

    #[test]
    fn a_command_runs_where_the_person_is() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = std::fs::canonicalize(dir.path()).unwrap();
        let variables = BTreeMap::from([("COLOUR".to_owned(), "blue".to_owned())]);
        let place = Place { cwd: Some(cwd.clone()), variables };
        let shown = ran("pwd; echo $COLOUR", &place);
        assert_eq!(shown.content, format!("{}\nblue\n", cwd.display()));
        let place = Place { cwd: Some(cwd.join("gone")), ..Place::default() };
        assert!(ran("pwd", &place).is_error);
    }

    #[test]
    fn what_is_too_long_loses_its_middle() {
        let outcome = ran("yes 0123456 | head -c 100000; printf END", &Place::default());
        assert!(!outcome.is_error);
        assert!(outcome.content.starts_with("0123456\n"));
        assert!(outcome.content.ends_with("END"));
        let left_out = format!("\n[{} bytes left out]\n", 100_003 - 2 * KEPT);
        assert!(outcome.content.contains(&left_out), "{}", outcome.content.len());
    }

    #[test]
    fn a_call_without_a_command_is_an_error() {
        for arguments in [json!({}), json!({"command": 7})] {
            let running =
                Shell::new(Processes::default()).call(arguments.as_object().unwrap(), &Place::default());
            assert!(running.outcome.blocking_recv().unwrap().is_error);
        }
    }
}
