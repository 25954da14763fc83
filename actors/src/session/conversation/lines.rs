//! The client's lines: taken one after the other, but looked through for an interrupt, or for an answer, while something
//! runs.

use std::collections::VecDeque;
use std::future::pending;

use cofferdam_protocol::session::headless::{ApprovalAnswer, Input, MalformedLine, Verdict};
use tokio::sync::mpsc;

/// How many bytes of lines may wait while a turn runs. Behind them an interrupt is not seen before its end.
const MAX_WAITING: usize = 8 << 20;

/// How many bytes of lines may wait while consent is waited for, the longest line included. Whoever says that much
/// instead does not want to give it.
const MAX_INSTEAD: usize = 256 << 20;

/// A line of the client.
#[derive(Debug)]
pub struct Line {
    /// What it says.
    pub input: Result<Input, MalformedLine>,
    /// How long it is.
    pub bytes: usize,
}

/// Where lines come from.
pub struct LineSource {
    /// The lines; it is closed at the end of input.
    pub lines: mpsc::Receiver<Line>,
    /// Has them read from now on. Called before the first is wanted, if one ever is.
    pub begin: Box<dyn FnOnce() + Send>,
}

/// The client's lines.
pub(super) struct Lines {
    lines: mpsc::Receiver<Line>,
    begin: Option<Box<dyn FnOnce() + Send>>,
    /// Read, and not yet their turn.
    waiting: VecDeque<Line>,
    bytes: usize,
}

impl Lines {
    pub(super) fn new(LineSource { lines, begin }: LineSource) -> Self {
        Self { lines, begin: Some(begin), waiting: VecDeque::new(), bytes: 0 }
    }

    /// The next line; `None` at the end of input.
    pub(super) async fn next(&mut self) -> Option<Result<Input, MalformedLine>> {
        self.begin();
        let line = match self.waiting.is_empty() {
            true => self.lines.recv().await,
            false => self.remove(0),
        };
        line.map(|line| line.input)
    }

    /// Waits until the client interrupts what runs. Other lines wait for their turn. The end of input is no interrupt.
    /// Nothing is lost if nobody waits for it any more.
    pub(super) async fn interrupt(&mut self) {
        // Where only one turn is wanted nobody is expected to write lines.
        while self.begin.is_none() && self.bytes < MAX_WAITING {
            match self.lines.recv().await {
                Some(Line { input: Ok(Input::Interrupt), .. }) => return,
                Some(line) => self.wait(line),
                None => break,
            }
        }
        pending().await
    }

    /// The answer to a request. `None` if the client does not want to give one: it interrupts, ends the program or its
    /// input, or says very much instead. Other answers and lines that cannot be read are dropped, the rest waits for its turn.
    pub(super) async fn answer(&mut self, request: &str) -> Option<Verdict> {
        self.begin();
        let mut at = 0;
        loop {
            // Also behind what fills the room for lines that wait during an answer: this is what they wait for.
            while at == self.waiting.len() {
                if self.bytes > MAX_INSTEAD {
                    return None;
                }
                let line = self.lines.recv().await?;
                self.wait(line);
            }
            match &self.waiting[at].input {
                Ok(Input::Answer(answer)) if answer.request_id == request => {
                    return match self.remove(at)?.input {
                        Ok(Input::Answer(ApprovalAnswer { verdict, .. })) => Some(verdict),
                        _ => None,
                    };
                }
                Ok(Input::Answer(_)) | Err(MalformedLine) => drop(self.remove(at)),
                Ok(Input::Interrupt) => {
                    self.remove(at);
                    return None;
                }
                Ok(Input::Shutdown) => return None,
                Ok(_) => at += 1,
            }
        }
    }

    fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            begin();
        }
    }

    fn wait(&mut self, line: Line) {
        self.bytes += line.bytes;
        self.waiting.push_back(line);
    }

    fn remove(&mut self, at: usize) -> Option<Line> {
        let line = self.waiting.remove(at)?;
        self.bytes -= line.bytes;
        Some(line)
    }
}
