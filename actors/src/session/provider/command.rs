//! A provider that asks a program: it gets the conversation as JSON on its standard input and answers on its standard
//! output, as plain text or as the wire's events, one a line.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use cofferdam_protocol::session::headless::{BlockStart, Delta, StreamEvent};
use cofferdam_protocol::session::limits;
use cofferdam_storage::session::config::Provider as Settings;
use cofferdam_storage::session::redact;

use super::{Answer, Pieces, Provider, ProviderError, Request};
use crate::session::process::{Processes, Starter, read_tail};

/// How many pieces of an answer may wait to be taken.
const AHEAD: usize = 64;
/// How much of an answer is read at once; also the longest piece of a text.
const CHUNK: usize = 8 << 10;
/// How much of what a program complains about is told.
const COMPLAINT: usize = 2 << 10;

/// Asks a program.
pub(super) struct CommandProvider {
    program: String,
    arguments: Vec<String>,
    output: Output,
    processes: Processes,
}

/// What the program writes.
#[derive(Clone, Copy)]
enum Output {
    /// The text of the answer.
    Text,
    /// A [`StreamEvent`] a line.
    Events,
}

impl CommandProvider {
    pub(super) fn new(settings: &Settings, processes: Processes) -> Result<Self, ProviderError> {
        let refused = |why: &str| Err(ProviderError(why.to_owned()));
        let Some((program, arguments)) = settings.command.split_first() else {
            return refused(
                "a provider of type \"command\" needs a command; give it as [\"program\", \"argument\"]",
            );
        };
        let output = match settings.output.as_deref() {
            None | Some("text") => Output::Text,
            Some("events") => Output::Events,
            Some(_) => return refused("the output of a provider's command is \"text\" or \"events\""),
        };
        Ok(Self { program: program.clone(), arguments: arguments.to_vec(), output, processes })
    }
}

impl Provider for CommandProvider {
    fn answer(&self, request: Request) -> Answer {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (permit, starter) = self.processes.permit();
        let (pieces, answer) = Answer::new(AHEAD, permit);
        let output = self.output;
        let asking = Asking { program: self.program.clone(), output, pieces };
        let failed = asking.pieces.clone();
        let work = move || asking.ask(starter, command, &request);
        if let Err(error) = thread::Builder::new().name("provider".to_owned()).spawn(work) {
            let _ = failed.try_send(Err(ProviderError(format!("the provider cannot be asked: {error}"))));
        }
        answer
    }
}

/// One question to the program.
struct Asking {
    program: String,
    output: Output,
    pieces: Pieces,
}

/// Why there is nothing more to tell.
enum Over {
    /// Nobody listens any more.
    Unwanted,
    /// The program does not keep to what was agreed.
    Failed(ProviderError),
}

impl Asking {
    fn ask(self, starter: Starter, command: Command, request: &Request) {
        if let Err(Over::Failed(error)) = self.converse(starter, command, request) {
            // If nobody listens any more, nobody misses it.
            let _ = self.pieces.blocking_send(Err(error));
        }
    }

    fn converse(&self, starter: Starter, command: Command, request: &Request) -> Result<(), Over> {
        let question = serde_json::to_vec(request).map_err(|error| self.cannot_run(error))?;
        let mut running = starter.start(command).map_err(|error| self.cannot_run(error))?;
        let (stdin, stdout, stderr) =
            (running.child.stdin.take(), running.child.stdout.take(), running.child.stderr.take());
        let ended = running.end_in_time().map_err(|error| self.cannot_run(error))?;
        let (told, complaint) = thread::scope(|scope| {
            // A program may answer without having read everything.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(&question)));
            let complaint = scope.spawn(move || stderr.map(|stderr| read_tail(stderr, COMPLAINT)));
            let told = stdout.map_or(Ok(false), |stdout| self.tell(stdout));
            (told, complaint.join().ok().flatten().unwrap_or_default())
        });
        let begun = told?;
        match ended.join() {
            Ok(Ok(status)) if status.success() => self.finish(begun),
            Ok(Ok(status)) => Err(self.complained(status, &complaint)),
            Ok(Err(error)) => Err(self.cannot_run(error)),
            Err(_) => Err(self.cannot_run("it was not waited for")),
        }
    }

    /// Tells what the program writes, as it comes. Says whether there was anything.
    fn tell(&self, output: ChildStdout) -> Result<bool, Over> {
        match self.output {
            Output::Text => self.tell_text(output),
            Output::Events => self.tell_events(BufReader::new(output)),
        }
    }

    fn tell_text(&self, mut output: impl Read) -> Result<bool, Over> {
        let (mut chunk, mut held, mut begun) = (vec![0; CHUNK], Vec::new(), false);
        loop {
            // That it cannot be read any more is its end.
            let read = output.read(&mut chunk).unwrap_or(0);
            held.extend_from_slice(&chunk[..read]);
            // The last character may not be there as a whole yet.
            let whole = if read == 0 { held.len() } else { whole_characters(&held) };
            if whole > 0 {
                let text = String::from_utf8_lossy(&held[..whole]).into_owned();
                held.drain(..whole);
                if !std::mem::replace(&mut begun, true) {
                    self.put(StreamEvent::MessageStart {})?;
                    self.put(StreamEvent::ContentBlockStart {
                        index: 0,
                        content_block: BlockStart::Text {},
                    })?;
                }
                self.put(StreamEvent::ContentBlockDelta { index: 0, delta: Delta::TextDelta { text } })?;
            }
            if read == 0 {
                return Ok(begun);
            }
        }
    }

    fn tell_events(&self, output: impl BufRead) -> Result<bool, Over> {
        let mut begun = false;
        for line in output.take(limits::SESSION_FILE).split(b'\n') {
            let Ok(line) = line else { break };
            let event = serde_json::from_slice(&line).map_err(|error| {
                Over::Failed(ProviderError(format!(
                    "the provider's program wrote a line that is no event: {error}"
                )))
            })?;
            begun = true;
            self.put(event)?;
        }
        Ok(begun)
    }

    /// The program has ended well, so what it wrote was everything.
    fn finish(&self, begun: bool) -> Result<(), Over> {
        match (self.output, begun) {
            (Output::Text, true) => self.put(StreamEvent::ContentBlockStop { index: 0 })?,
            (Output::Text, false) => self.put(StreamEvent::MessageStart {})?,
            // It has told the end itself, or there is none.
            (Output::Events, _) => return Ok(()),
        }
        self.put(StreamEvent::MessageStop {})
    }

    fn put(&self, event: StreamEvent) -> Result<(), Over> {
        self.pieces.blocking_send(Ok(event)).map_err(|_| Over::Unwanted)
    }

    fn cannot_run(&self, why: impl Display) -> Over {
        Over::Failed(ProviderError(format!("the provider's program {} cannot be run: {why}", self.program)))
    }

    /// What the program said about its failure, without secrets; if it said nothing, how it ended.
    fn complained(&self, status: ExitStatus, complaint: &str) -> Over {
        let text = match complaint.trim() {
            "" => format!("the provider's program {} ended with {status}", self.program),
            complaint => redact::text(complaint).into_owned(),
        };
        Over::Failed(ProviderError(text))
    }
}

/// How many of these bytes are not the beginning of a character whose end is still to come.
fn whole_characters(bytes: &[u8]) -> usize {
    let is_first = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let Some(back) = bytes.iter().rev().take(4).position(is_first) else { return bytes.len() };
    let last = bytes.len() - 1 - back;
    match std::str::from_utf8(&bytes[last..]) {
        Err(error) if error.error_len().is_none() => last,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests;
