//! An answer as far as it is known, and whether its pieces come in order.

use cofferdam_protocol::session::headless::{BlockStart, Delta, StreamEvent};
use cofferdam_protocol::session::limits;

use super::ProviderError;

/// What of an answer has come so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    place: Place,
    /// The number of the next block.
    next: u32,
    size: u64,
    text: String,
    calls: Vec<Call>,
}

/// Where in an answer the next piece belongs.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Before,
    Between,
    Text,
    Thinking,
    Arguments,
    Complete,
}

/// A tool that is to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// What its result refers to.
    pub(crate) id: String,
    /// The tool.
    pub(crate) name: String,
    /// JSON as it came; may be empty.
    pub(crate) arguments: String,
}

impl Draft {
    /// Adds a piece.
    pub(crate) fn add(&mut self, piece: &StreamEvent) -> Result<(), ProviderError> {
        self.place = match (&self.place, piece) {
            (Place::Before, StreamEvent::MessageStart {}) => Place::Between,
            (Place::Between, StreamEvent::ContentBlockStart { index, content_block })
                if *index == self.next =>
            {
                match content_block {
                    BlockStart::Text {} => Place::Text,
                    BlockStart::Thinking {} => Place::Thinking,
                    BlockStart::ToolUse { id, name } => {
                        let (id, name) = (id.clone(), name.clone());
                        self.calls.push(Call { id, name, arguments: String::new() });
                        Place::Arguments
                    }
                }
            }
            (Place::Text, StreamEvent::ContentBlockDelta { index, delta: Delta::TextDelta { text } })
                if *index == self.next =>
            {
                self.text.push_str(text);
                self.size += text.len() as u64;
                Place::Text
            }
            (
                Place::Thinking,
                StreamEvent::ContentBlockDelta { index, delta: Delta::ThinkingDelta { .. } },
            ) if *index == self.next => Place::Thinking,
            (
                Place::Arguments,
                StreamEvent::ContentBlockDelta { index, delta: Delta::InputJsonDelta { partial_json } },
            ) if *index == self.next => {
                if let Some(call) = self.calls.last_mut() {
                    call.arguments.push_str(partial_json);
                }
                self.size += partial_json.len() as u64;
                Place::Arguments
            }
            (Place::Text | Place::Thinking | Place::Arguments, StreamEvent::ContentBlockStop { index })
                if *index == self.next =>
            {
                self.next += 1;
                Place::Between
            }
            (Place::Between, StreamEvent::MessageStop {}) => Place::Complete,
            _ => return Err(ProviderError("the provider's answer is out of order".to_owned())),
        };
        if self.size > limits::SESSION_FILE {
            return Err(ProviderError("the provider's answer is too long to be kept".to_owned()));
        }
        Ok(())
    }

    /// Whether nothing is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.place == Place::Complete
    }

    /// The text, and the tools that are to be called.
    pub(crate) fn into_parts(self) -> (String, Vec<Call>) {
        (self.text, self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = r#"{"type":"message_start"}"#;
    const STOP: &str = r#"{"type":"message_stop"}"#;
    const TEXT: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#;
    const END: &str = r#"{"type":"content_block_stop","index":0}"#;

    fn draft(pieces: &[&str]) -> Result<Draft, usize> {
        let mut draft = Draft::default();
        for (at, piece) in pieces.iter().enumerate() {
            draft.add(&serde_json::from_str(piece).unwrap()).map_err(|_| at)?;
        }
        Ok(draft)
    }

    fn delta(index: u32, delta: &str) -> String {
        format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
    }

    #[test]
    fn text_and_calls_are_put_together_and_thoughts_are_not_kept() {
        let one = delta(0, r#"{"type":"text_delta","text":"Running "}"#);
        let two = delta(0, r#"{"type":"text_delta","text":"it."}"#);
        let thought = r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking"}}"#;
        let think = delta(1, r#"{"type":"thinking_delta","thinking":"hm"}"#);
        let thought_end = r#"{"type":"content_block_stop","index":1}"#;
        let call = r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"n"}}"#;
        let open = delta(2, r#"{"type":"input_json_delta","partial_json":"{\"a\""}"#);
        let close = delta(2, r#"{"type":"input_json_delta","partial_json":": 1}"}"#);
        let call_end = r#"{"type":"content_block_stop","index":2}"#;
        let pieces =
            [START, TEXT, &one, &two, END, thought, &think, thought_end, call, &open, &close, call_end, STOP];
        let draft = draft(&pieces).unwrap();
        assert!(draft.is_complete());
        let call = Call { id: "c".to_owned(), name: "n".to_owned(), arguments: r#"{"a": 1}"#.to_owned() };
        assert_eq!(draft.into_parts(), ("Running it.".to_owned(), vec![call]));
    }

    #[test]
    fn a_piece_out_of_order_is_refused_where_it_stands() {
        let text = delta(0, r#"{"type":"text_delta","text":"x"}"#);
        let other_block = delta(1, r#"{"type":"text_delta","text":"x"}"#);
        let other_kind = delta(0, r#"{"type":"thinking_delta","thinking":"x"}"#);
        for (pieces, at) in [
            (vec![TEXT], 0),
            (vec![STOP], 0),
            (vec![START, START], 1),
            (vec![START, &text], 1),
            (vec![START, END], 1),
            (vec![START, TEXT, TEXT], 2),
            (vec![START, TEXT, STOP], 2),
            (vec![START, TEXT, &other_block], 2),
            (vec![START, TEXT, &other_kind], 2),
            (vec![START, TEXT, END, TEXT], 3),
            (vec![START, STOP, START], 2),
        ] {
            assert_eq!(draft(&pieces).err(), Some(at), "{pieces:?}");
        }
        assert!(!draft(&[START, TEXT, &text, END]).unwrap().is_complete());
    }
}
