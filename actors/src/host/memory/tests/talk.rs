//! What a conversation becomes.

use cofferdam_protocol::session::{Compaction, Content, Envelope, Message};

use crate::host::memory::envelope::{Identity, empty, of_agent, shorten, text};
use crate::host::memory::heard::{Heard, message};

fn lines(messages: &[Message]) -> Vec<String> {
    let of = |message: &Message| {
        let calls: Vec<_> = message.tool_calls.iter().flatten().collect();
        let calls: String = calls
            .iter()
            .map(|call| format!(" [{} {}]", call.function.name, call.function.arguments))
            .collect();
        format!("{}: {}{calls}", message.role, text(&message.content))
    };
    messages.iter().map(of).collect()
}

fn conversation(messages: &[&str]) -> Envelope {
    let identity = Identity { session_id: "id".to_owned(), scope: "/pods".to_owned() };
    let messages = messages.iter().map(|text| message("user", (*text).to_owned())).collect();
    Envelope { messages, generation: 3, updated_at_ms: 5, ..empty(&identity, 7) }
}

#[test]
fn what_is_said_in_one_go_is_one_message_and_a_call_belongs_to_it() {
    let mut heard = Heard::new(2, Some("do it"));
    heard.said("first");
    heard.said("second\n");
    heard.said("third");
    heard.called("bash", r#"{"command":"ls"}"#);
    heard.called("read", "a.txt");
    heard.answered("a b");
    heard.answered("the text");
    heard.answered("nobody asked");
    heard.said("done");
    let messages = heard.messages();
    let expected = [
        "user: do it",
        r#"assistant: first
second
third [bash {"command":"ls"}] [read {"input":"a.txt"}]"#,
        "tool: a b",
        "tool: the text",
        "tool: nobody asked",
        "assistant: done",
    ];
    assert_eq!(lines(&messages), expected);
    let ids: Vec<_> = messages[2..5].iter().map(|message| message.tool_call_id.as_deref()).collect();
    assert_eq!(ids, [Some("call-2-1"), Some("call-2-2"), None]);
}

#[test]
fn a_call_without_an_answer_gets_one_when_the_turn_is_over() {
    let mut heard = Heard::new(1, None);
    heard.called("bash", "sleep");
    let messages = heard.messages();
    assert_eq!(lines(&messages)[1], "tool: the turn ended before the tool had answered");
    assert_eq!(messages[1].tool_call_id.as_deref(), Some("call-1-1"));
}

#[test]
fn of_a_turn_in_which_too_much_was_said_the_last_word_is_kept_and_each_text_is_cut() {
    let mut heard = Heard::new(1, Some("go"));
    for n in 0..100 {
        heard.said(&format!("{n}{}", "é".repeat(1 << 17)));
        heard.called("bash", "x");
        heard.answered("y");
    }
    heard.said("the end");
    let messages = heard.messages();
    let whole: usize = messages.iter().map(|message| text(&message.content).len()).sum();
    assert!(whole < 5 << 20, "{whole}");
    let last = lines(&messages).pop().unwrap();
    assert!(last.ends_with("is kept of a turn)\nthe end"), "{last}");
    assert!(text(&messages[1].content).ends_with("… (cut)"));
}

#[test]
fn an_agents_conversation_is_taken_but_for_whose_and_which_it_is() {
    let given = conversation(&["one"]);
    let own = Envelope {
        session_id: "another".to_owned(),
        workspace_scope: "/elsewhere".to_owned(),
        schema_version: 9,
        generation: 99,
        created_at_ms: 0,
        updated_at_ms: 0,
        model: "m\u{7}".repeat(1000),
        compaction_revision: u64::MAX,
        ..conversation(&["one", "two"])
    };
    let taken = of_agent(own, &given).unwrap();
    assert!(taken.model.len() <= 256 && !taken.model.contains('\u{7}'));
    assert_eq!(Envelope { model: String::new(), ..taken }, conversation(&["one", "two"]).with_id(&given));
    // One that says no more than it was given says nothing.
    for own in [conversation(&["one"]), conversation(&[])] {
        assert_eq!(of_agent(own, &given), None);
    }
    // Another one is taken, too.
    let other = of_agent(conversation(&["else"]), &given).unwrap();
    assert_eq!(lines(&other.messages), ["user: else"]);
}

trait WithId {
    fn with_id(self, given: &Envelope) -> Self;
}

impl WithId for Envelope {
    fn with_id(self, given: &Envelope) -> Self {
        Self { messages: self.messages, ..given.clone() }
    }
}

#[test]
fn a_summary_is_taken_if_it_can_be_used_and_its_count_can_be_believed() {
    let given = conversation(&["one"]);
    let longer = conversation(&["one", "two"]);
    let summary = |revision: u64, digest: &str| Compaction {
        revision,
        compacted_through: 1,
        summary: "so far".to_owned(),
        model: String::new(),
        prompt_version: 1,
        source_digest: digest.to_owned(),
        tokens_before: None,
        tokens_after: None,
        created_at_ms: 1,
    };
    let digest = Compaction::digest(&longer.messages[..1]);
    for (compaction, taken) in
        [(summary(1, &digest), Some(1)), (summary(u64::MAX, &digest), None), (summary(1, "another"), None)]
    {
        let own = Envelope { compaction: Some(compaction), ..longer.clone() };
        let next = of_agent(own, &given).unwrap();
        assert_eq!(next.compaction.map(|compaction| compaction.revision), taken);
        assert_eq!(next.compaction_revision, taken.unwrap_or(0));
    }
}

#[test]
fn of_a_conversation_that_is_too_long_the_beginning_goes() {
    let mut short = conversation(&["one", "two"]);
    assert!(!shorten(&mut short));
    let mut long = conversation(&[]);
    let big = "x".repeat(1 << 20);
    for n in 0..40 {
        long.messages.push(message("user", format!("{n} {big}")));
        long.messages.push(message("assistant", "yes".to_owned()));
    }
    assert!(shorten(&mut long));
    assert!(long.write().unwrap().len() < 16 << 20);
    assert_eq!((long.messages[0].role.as_str(), long.messages[1].role.as_str()), ("system", "user"));
    assert_eq!(long.messages.last().unwrap().content, Content::Text("yes".to_owned()));
    assert!(!shorten(&mut long));
    // Of one whose last message alone is too long nothing is left but that it was.
    let mut huge = conversation(&[&"x".repeat(40 << 20)]);
    assert!(shorten(&mut huge));
    assert_eq!(huge.messages.len(), 1);
}
