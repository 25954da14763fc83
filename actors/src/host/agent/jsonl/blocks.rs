//! Pieces of what is streamed, put together; and what is told again as a whole, left out.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::{Item, MAX_LINE};

/// How long a text becomes before it is told, in bytes, though there is more of it.
const PIECE: usize = 4000;
/// How many calls are remembered as told.
const CALLS: usize = 4096;
/// The longest id of a call, in bytes, by which it is remembered. One with a longer id may be told again.
const ID: usize = 256;
/// How many texts that were streamed are remembered: more than a message has, and few enough to be looked through for each
/// block of a line.
const TEXTS: usize = 256;

/// What a block is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// For people.
    Text,
    /// Thoughts.
    Thinking,
}

/// What is being streamed, and what was.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    open: Option<Open>,
    /// Texts that were streamed and may still be repeated as a whole. Together they fit into one line.
    told: VecDeque<(Kind, String)>,
    /// How many bytes those are.
    told_bytes: usize,
    /// The ids of calls that were told, oldest first.
    called: VecDeque<Arc<str>>,
    /// The same ids.
    known: HashSet<Arc<str>>,
}

/// A block that is being streamed.
#[derive(Debug)]
enum Open {
    Text {
        kind: Kind,
        all: String,
        /// How much of it was told.
        told: usize,
        /// Whether it is all there: what is longer than a line cannot be repeated in one, and is not kept.
        whole: bool,
    },
    Call {
        id: String,
        name: String,
        /// Its arguments, as JSON. What is too long for that is not kept.
        input: String,
    },
}

impl Blocks {
    /// A piece of a text.
    pub(super) fn piece(&mut self, kind: Kind, piece: &str, items: &mut Vec<Item>) {
        if !matches!(&self.open, Some(Open::Text { kind: open, .. }) if *open == kind) {
            self.close(items);
            self.open = Some(Open::Text { kind, all: String::new(), told: 0, whole: true });
        }
        let Some(Open::Text { all, told, whole, .. }) = &mut self.open else { return };
        all.push_str(piece);
        tell(kind, all, told, false, items);
        if all.len() > MAX_LINE {
            all.drain(..*told);
            (*told, *whole) = (0, false);
        }
    }

    /// A call begins; its arguments follow.
    pub(super) fn begin_call(&mut self, id: String, name: String, items: &mut Vec<Item>) {
        self.close(items);
        self.open = Some(Open::Call { id, name, input: String::new() });
    }

    /// A piece of a call's arguments.
    pub(super) fn arguments(&mut self, piece: &str) {
        if let Some(Open::Call { input, .. }) = &mut self.open
            && input.len() + piece.len() <= MAX_LINE
        {
            input.push_str(piece);
        }
    }

    /// What is being streamed is over.
    pub(super) fn close(&mut self, items: &mut Vec<Item>) {
        match self.open.take() {
            None => {}
            Some(Open::Text { kind, all, mut told, whole }) => {
                tell(kind, &all, &mut told, true, items);
                if whole && !all.is_empty() {
                    self.remember(kind, all);
                }
            }
            Some(Open::Call { id, name, input }) => {
                let input = match input.as_str() {
                    "" => Value::Object(serde_json::Map::new()),
                    text => serde_json::from_str(text).unwrap_or(Value::String(input)),
                };
                self.call(id, name, input, items);
            }
        }
    }

    fn remember(&mut self, kind: Kind, text: String) {
        self.told_bytes += text.len();
        self.told.push_back((kind, text));
        while (self.told_bytes > MAX_LINE || self.told.len() > TEXTS)
            && let Some((_, oldest)) = self.told.pop_front()
        {
            self.told_bytes -= oldest.len();
        }
    }

    /// A whole text; only what was not streamed before is told.
    pub(super) fn text(&mut self, kind: Kind, text: &str, items: &mut Vec<Item>) {
        if let Some(Open::Text { kind: open, all, told, whole: true }) = &mut self.open
            && *open == kind
            && let Some(rest) = text.strip_prefix(all.as_str())
        {
            all.push_str(rest);
            tell(kind, all, told, true, items);
            self.open = None;
            return;
        }
        if matches!(&self.open, Some(Open::Text { .. })) {
            self.close(items);
        }
        if let Some(at) = self.told.iter().position(|(told, all)| *told == kind && all == text) {
            self.told.remove(at);
            self.told_bytes -= text.len();
            return;
        }
        let of_kind = || self.told.iter().filter(|(told, _)| *told == kind).map(|(_, all)| all.as_str());
        // A line can have as many blocks as texts have bytes: they are put together only for one that may be they.
        let length: usize = of_kind().map(str::len).sum();
        if length > 0 && length == text.len() && of_kind().collect::<String>() == text {
            self.told.retain(|(told, _)| *told != kind);
            self.told_bytes -= length;
            return;
        }
        self.close(items);
        tell(kind, text, &mut 0, true, items);
    }

    /// A whole call; one that was told already is not told again.
    pub(super) fn call(&mut self, id: String, name: String, input: Value, items: &mut Vec<Item>) {
        match &self.open {
            Some(Open::Call { id: open, .. }) if *open == id && !id.is_empty() => self.open = None,
            _ => self.close(items),
        }
        if !id.is_empty() && id.len() <= ID {
            if self.known.contains(id.as_str()) {
                return;
            }
            if self.called.len() == CALLS
                && let Some(oldest) = self.called.pop_front()
            {
                self.known.remove(&oldest);
            }
            let kept: Arc<str> = id.as_str().into();
            self.known.insert(Arc::clone(&kept));
            self.called.push_back(kept);
        }
        items.push(Item::ToolCall { id, name, input });
    }

    /// What was streamed until now is not repeated any more.
    pub(super) fn forget_texts(&mut self) {
        self.told.clear();
        self.told_bytes = 0;
    }

    /// How many bytes of texts and ids are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let open = match &self.open {
            Some(Open::Text { all, .. }) => all.len(),
            Some(Open::Call { input, .. }) => input.len(),
            None => 0,
        };
        let told: usize = self.told.iter().map(|(_, text)| text.len()).sum();
        assert_eq!(told, self.told_bytes);
        assert_eq!(self.called.len(), self.known.len());
        open + told + self.called.iter().map(|id| id.len()).sum::<usize>()
    }
}

/// Tells what was not told of a text, in pieces; `all` of it, or only as much as makes whole pieces.
fn tell(kind: Kind, text: &str, told: &mut usize, all: bool, items: &mut Vec<Item>) {
    loop {
        let rest = &text[*told..];
        let end = match rest.len() <= PIECE {
            true if !all || rest.is_empty() => return,
            true => rest.len(),
            false => {
                let most = rest.floor_char_boundary(PIECE);
                rest[..most].rfind('\n').map_or(most, |end| end + 1)
            }
        };
        let piece = rest[..end].to_owned();
        *told += end;
        items.push(match kind {
            Kind::Text => Item::Text(piece),
            Kind::Thinking => Item::Thinking(piece),
        });
    }
}
