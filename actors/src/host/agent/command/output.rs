//! What a program prints on its standard output, made into what its task is told.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cofferdam_storage::pod::presets::OutputForm;

use super::cosh::Talk;
use super::texts::{Tail, Texts};
use crate::host::agent::AgentEvent;
use crate::host::agent::jsonl::{Item, MAX_LINE, Outcome, Stream, event};
use crate::session::recovery::RunObserver;

/// How often lines become a text.
const TEXT_PAUSE: Duration = Duration::from_millis(250);
/// How often events are told, and how many at once: what a program prints faster waits, and then the program does.
const EVENT_PAUSE: Duration = Duration::from_millis(20);
const EVENTS: usize = 8;
/// How many events may wait before nothing more is read.
const MOST_WAITING: usize = 64;

/// A program's output.
pub(super) enum Output {
    /// Lines for people.
    Text(Texts),
    /// Objects.
    Jsonl(Box<Objects>),
    /// The lines of a conversation, which are answered.
    Cosh(Box<Talk>),
}

/// How a turn ended, as its program printed it.
#[derive(Debug, Default)]
pub(super) struct Printed {
    /// The program's own verdict, if it printed one.
    pub(super) outcome: Option<Outcome>,
    /// What it printed about its conversation.
    pub(super) session: RunObserver,
    /// Why what it printed cannot be used.
    pub(super) unusable: Option<String>,
}

impl Output {
    pub(super) fn new(form: OutputForm, tools: &BTreeMap<String, String>) -> Self {
        match form {
            OutputForm::Text => Self::Text(Texts::default()),
            OutputForm::Jsonl => {
                Self::Jsonl(Box::new(Objects { tools: tools.clone(), ..Objects::default() }))
            }
        }
    }

    /// Takes what was printed.
    pub(super) fn push(&mut self, bytes: &[u8], complaints: &mut Tail) {
        match self {
            Self::Text(texts) => texts.push(bytes),
            Self::Jsonl(objects) => {
                let items = objects.stream.push(bytes);
                objects.hear(items, complaints);
            }
            Self::Cosh(talk) => talk.push(bytes, complaints),
        }
    }

    /// Nothing more will be printed.
    pub(super) fn finish(&mut self, complaints: &mut Tail) {
        match self {
            Self::Text(_) => {}
            Self::Jsonl(objects) => {
                let items = objects.stream.finish();
                objects.hear(items, complaints);
                objects.say_result();
            }
            Self::Cosh(talk) => talk.finish(complaints),
        }
    }

    /// What the program reads next, if there is something.
    pub(super) fn answer(&mut self) -> Option<String> {
        match self {
            Self::Text(_) | Self::Jsonl(_) => None,
            Self::Cosh(talk) => talk.answer(),
        }
    }

    /// Whether there may be something to be read yet.
    pub(super) fn is_listened_to(&self) -> bool {
        matches!(self, Self::Cosh(talk) if !talk.is_over())
    }

    /// The turn is not wanted any more: how long the program may take to end by itself.
    pub(super) fn interrupt(&mut self) -> Duration {
        match self {
            Self::Text(_) | Self::Jsonl(_) => Duration::ZERO,
            Self::Cosh(talk) => talk.interrupt(),
        }
    }

    /// Whether there is something to be told.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Text(texts) => texts.is_ready(),
            Self::Jsonl(objects) => !objects.waiting.is_empty(),
            Self::Cosh(talk) => !talk.waiting().is_empty(),
        }
    }

    /// Whether nothing more should be read until something was told.
    pub(super) fn is_full(&self) -> bool {
        let waiting = match self {
            Self::Text(_) => 0,
            Self::Jsonl(objects) => objects.waiting.len(),
            Self::Cosh(talk) => talk.waiting().len(),
        };
        waiting >= MOST_WAITING
    }

    /// How long to wait between what is told.
    pub(super) fn pause(&self) -> Duration {
        match self {
            Self::Text(_) => TEXT_PAUSE,
            Self::Jsonl(_) | Self::Cosh(_) => EVENT_PAUSE,
        }
    }

    /// What is told next, after a pause.
    pub(super) fn take(&mut self) -> Vec<AgentEvent> {
        match self {
            Self::Text(texts) => texts.take(false).map(AgentEvent::Text).into_iter().collect(),
            Self::Jsonl(objects) => some(&mut objects.waiting),
            Self::Cosh(talk) => some(talk.waiting_mut()),
        }
    }

    /// The next of what is left after the end.
    pub(super) fn take_last(&mut self) -> Option<AgentEvent> {
        match self {
            Self::Text(texts) => texts.take(true).map(AgentEvent::Text),
            Self::Jsonl(objects) => objects.waiting.pop_front(),
            Self::Cosh(talk) => talk.waiting_mut().pop_front(),
        }
    }

    /// Whether the program must not go on, since nobody knows what it does, or need not, since its turn is over: how long it may
    /// take to end by itself.
    pub(super) fn is_over(&self) -> Option<Duration> {
        match self {
            Self::Jsonl(objects) if objects.too_long => Some(Duration::ZERO),
            Self::Cosh(talk) => talk.patience(),
            Self::Text(_) | Self::Jsonl(_) => None,
        }
    }

    /// How the turn ended, as far as that was printed.
    pub(super) fn printed(self) -> Printed {
        let objects = match self {
            Self::Text(_) => return Printed::default(),
            Self::Cosh(talk) => return talk.printed(),
            Self::Jsonl(objects) => objects,
        };
        let no_object = || {
            (objects.complained && !objects.stream.is_understood()).then(|| {
                "the program printed no JSON object; its preset may need other arguments, or output = \"text\""
                    .to_owned()
            })
        };
        let too_long = objects.too_long.then(too_long);
        Printed { unusable: too_long.or_else(no_object), outcome: objects.outcome, ..Printed::default() }
    }
}

/// Some of what waits to be told.
fn some(waiting: &mut VecDeque<AgentEvent>) -> Vec<AgentEvent> {
    let count = waiting.len().min(EVENTS);
    waiting.drain(..count).collect()
}

/// A line was too long to be read.
pub(super) fn too_long() -> String {
    let most = MAX_LINE >> 20;
    format!("the program printed a line of more than {most} MiB, and was ended; ask for less at once")
}

/// What was heard of a program that prints objects.
#[derive(Default)]
pub(super) struct Objects {
    stream: Stream,
    /// Our names for its tools.
    tools: BTreeMap<String, String>,
    waiting: VecDeque<AgentEvent>,
    outcome: Option<Outcome>,
    /// Whether there was a text for people.
    spoke: bool,
    complained: bool,
    too_long: bool,
}

impl Objects {
    fn hear(&mut self, items: Vec<Item>, complaints: &mut Tail) {
        for item in items {
            self.spoke |= matches!(item, Item::Text(_));
            let ours = |name: &str| self.tools.get(name).map_or(name, String::as_str).to_owned();
            self.waiting.extend(event(&item, ours));
            match item {
                Item::Result(outcome) => self.outcome = Some(outcome),
                Item::TooLong => self.too_long = true,
                Item::Complaint(text) => {
                    self.complained = true;
                    complaints.push(text.as_bytes());
                    complaints.push(b"\n");
                }
                _ => {}
            }
        }
    }

    /// A program may say something only in its verdict.
    fn say_result(&mut self) {
        if let Some(Outcome { is_error: false, text, .. }) = &self.outcome
            && !self.spoke
            && !text.is_empty()
        {
            self.waiting.extend(event(&Item::Text(text.clone()), str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jsonl() -> (Output, Tail) {
        let tools = BTreeMap::from([("Bash".to_owned(), "bash".to_owned())]);
        (Output::new(OutputForm::Jsonl, &tools), Tail::default())
    }

    fn rest(output: &mut Output) -> Vec<AgentEvent> {
        std::iter::from_fn(|| output.take_last()).collect()
    }

    #[test]
    fn tools_have_our_names_and_those_without_one_their_own() {
        let (mut output, mut tail) = jsonl();
        for name in ["Bash", "Other"] {
            let line = serde_json::json!({ "type": "tool_use", "tool_name": name, "parameters": {} });
            output.push(format!("{line}\n").as_bytes(), &mut tail);
        }
        let called = |name: &str| AgentEvent::ToolCall { name: name.to_owned(), input: "{}".to_owned() };
        assert_eq!(rest(&mut output), [called("bash"), called("Other")]);
    }

    #[test]
    fn a_flood_of_events_waits_and_none_is_lost() {
        let (mut output, mut tail) = jsonl();
        let line = "{\"type\":\"text\",\"part\":{\"text\":\"x\"}}\n";
        let mut pushed = 0;
        while !output.is_full() {
            output.push(line.as_bytes(), &mut tail);
            pushed += 1;
        }
        assert_eq!((pushed, output.take().len(), output.is_full()), (MOST_WAITING, EVENTS, false));
        assert_eq!(rest(&mut output).len(), MOST_WAITING - EVENTS);
        assert!(!output.is_ready());
    }

    #[test]
    fn the_verdict_is_told_where_nothing_else_was() {
        let (said, unsaid) = ("{\"type\":\"text\",\"part\":{\"text\":\"x\"}}\n", "");
        for (before, count) in [(said, 1), (unsaid, 1)] {
            let (mut output, mut tail) = jsonl();
            output.push(before.as_bytes(), &mut tail);
            output.push(b"{\"type\":\"result\",\"is_error\":false,\"result\":\"x\"}\n", &mut tail);
            output.finish(&mut tail);
            assert_eq!(rest(&mut output), vec![AgentEvent::Text("x".to_owned()); count]);
            assert!(output.printed().outcome.is_some());
        }
    }

    #[test]
    fn what_is_no_object_is_a_complaint_and_nothing_but_that_cannot_be_used() {
        let (mut output, mut tail) = jsonl();
        output.push(b"please log in\n", &mut tail);
        output.finish(&mut tail);
        assert_eq!((tail.text().as_str(), rest(&mut output)), ("please log in", Vec::new()));
        assert!(output.printed().unusable.unwrap().contains("no JSON object"));
        let (mut output, mut tail) = jsonl();
        output.push(b"a note\n{}\n", &mut tail);
        assert_eq!(output.printed().unusable, None);
        let (mut output, mut tail) = jsonl();
        output.push(&vec![b'x'; MAX_LINE + 1], &mut tail);
        assert_eq!(output.is_over(), Some(Duration::ZERO));
        assert!(output.printed().unusable.unwrap().contains("4 MiB"));
    }
}
