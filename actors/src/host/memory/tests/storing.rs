//! What is kept of a conversation when something goes wrong.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::{Actor, Context, Handler, ResponseFuture};
use cofferdam_protocol::session::{Envelope, Message, SessionError};
use cofferdam_storage::clock::{Clock, SystemClock};
use cofferdam_storage::session::redact;

use super::bench::{Bench, SESSION};
use crate::host::memory::envelope::{Identity, empty};
use crate::host::memory::heard::message;
use crate::host::memory::{Heard, MakeReady, ReadPast};
use crate::session::*;

/// Goes on with the conversation before the first who wants to store it does.
struct Faster(Option<Sessions>, Sessions);

impl Actor for Faster {
    type Context = Context<Self>;
}

impl Handler<PersistSession> for Faster {
    type Result = ResponseFuture<Result<Persisted, SessionError>>;

    fn handle(&mut self, persist: PersistSession, _: &mut Context<Self>) -> Self::Result {
        let (first, sessions) = (self.0.take(), self.1.clone());
        Box::pin(async move {
            if let Some(first) = first {
                let store = Arc::clone(&persist.store);
                let load = LoadSession { store, session_id: SESSION.to_owned() };
                let mut envelope = first.ask(load).await.unwrap();
                envelope.messages.push(message("user", "from elsewhere".to_owned()));
                let other = PersistSession { store: Arc::clone(&persist.store), envelope };
                first.ask(other).await.unwrap().result.unwrap();
            }
            sessions.ask(persist).await
        })
    }
}

macro_rules! passed_on {
    ($($message:ty),+) => {$(
        impl Handler<$message> for Faster {
            type Result = ResponseFuture<<$message as actix::Message>::Result>;

            fn handle(&mut self, message: $message, _: &mut Context<Self>) -> Self::Result {
                let sessions = self.1.clone();
                Box::pin(async move { sessions.ask(message).await })
            }
        }
    )+};
}
passed_on!(
    ListSessions,
    InspectSession,
    ValidateSession,
    PrepareClearAll,
    ClearSessions,
    OpenStore,
    LoadSession
);

#[actix::test]
async fn a_turn_is_stored_also_when_somebody_else_was_faster_by_a_moment() {
    let mut bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.begin(2, "two").await.unwrap();
    let real = bench.sessions.clone();
    bench.sessions = Faster(Some(real.clone()), real).start().into();
    bench.restart();
    bench.begin(3, "three").await.unwrap();
    assert_eq!(bench.said().await[2..], ["user: from elsewhere", "user: two"]);
}

#[actix::test]
async fn other_tasks_are_served_while_a_long_conversation_is_worked_on() {
    let bench = Bench::new().await;
    bench.begin(1, "one").await.unwrap();
    let clock = SystemClock::new();
    let mut heard = Heard::new(1, Some("one"));
    let identity = Identity { session_id: SESSION.to_owned(), scope: "/pods".to_owned() };
    let text = "a word, and another one; ".repeat(4 << 10);
    let messages: Vec<Message> = (0..100).map(|n| message("assistant", format!("{n} {text}"))).collect();
    heard.keeps(Box::new(Envelope { messages: messages.clone(), ..empty(&identity, 0) }));
    // What the least of it takes that is not done elsewhere already.
    let began = clock.monotonic();
    let mut redacted = messages;
    redacted.iter_mut().for_each(redact::message);
    let alone = clock.monotonic() - began;

    let end = bench.end(heard);
    let mut end = pin!(end);
    let (mut longest, mut last) = (Duration::ZERO, clock.monotonic());
    let notes = poll_fn(|context| {
        let now = clock.monotonic();
        (longest, last) = (longest.max(now - last), now);
        // As any other work on this thread, it wants to be looked at again at once.
        context.waker().wake_by_ref();
        end.as_mut().poll(context)
    });
    assert_eq!(notes.await, [""; 0]);
    assert!(longest < alone / 2, "{longest:?} of {alone:?}");
    assert_eq!(bench.said().await.len(), 100);
}

#[actix::test]
async fn a_store_that_takes_nothing_loses_nothing() {
    for restarts in [false, true] {
        let mut bench = Bench::new().await;
        bench.turn(1, "one").await;
        bench.store_fuse.set(0);
        let notes = bench.turn(2, "two").await;
        assert!(notes.len() == 1 && notes[0].contains("tried again with the next turn"), "{notes:?}");
        assert_eq!(bench.said().await.len(), 2);
        if restarts {
            bench.restart();
        }
        bench.store_fuse.set(-1);
        let begun = bench.begin(3, "three").await.unwrap();
        assert_eq!(begun.conversation.unwrap().messages.len(), 4);
        assert_eq!(bench.end(Heard::new(3, Some("three"))).await, [""; 0]);
        assert_eq!(bench.said().await.len(), 5);
    }
}

#[actix::test]
async fn where_no_disk_takes_anything_a_turn_is_a_turn_all_the_same() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.store_fuse.set(0);
    bench.fuse.set(0);
    let begun = bench.begin(2, "two").await.unwrap();
    assert_eq!(begun.conversation.unwrap().messages.len(), 2);
    assert!(begun.notes.iter().any(|note| note.contains("cannot be gone back to")), "{:?}", begun.notes);
    let mut heard = Heard::new(2, Some("two"));
    heard.said("answer two");
    assert!(bench.end(heard).await.len() >= 2);
    // As long as the host lives it remembers.
    bench.store_fuse.set(-1);
    bench.fuse.set(-1);
    assert_eq!(bench.begin(3, "three").await.unwrap().conversation.unwrap().messages.len(), 4);
    bench.end(Heard::new(3, Some("three"))).await;
    assert_eq!(bench.said().await.len(), 5);
}

#[actix::test]
async fn of_a_turn_that_ran_when_the_host_died_is_known_what_was_asked() {
    let mut bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.begin(2, "never answered").await.unwrap();
    bench.restart();
    let past = bench.ask(ReadPast(bench.whose.clone())).await;
    assert_eq!(past.last().unwrap().1, "never answered");
    assert_eq!(bench.said().await.last().unwrap(), "user: never answered");
    // Once.
    bench.restart();
    bench.turn(3, "three").await;
    assert_eq!(bench.said().await.len(), 5);
}

#[actix::test]
async fn what_was_stored_of_a_turn_is_not_said_again_since_its_end_was_not_written_down() {
    let mut bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.begin(2, "two").await.unwrap();
    bench.fuse.set(0);
    let mut heard = Heard::new(2, Some("two"));
    heard.said("answer two");
    let notes = bench.end(heard).await;
    assert!(notes.iter().any(|note| note.contains("end of the turn")), "{notes:?}");
    bench.restart();
    bench.turn(3, "three").await;
    assert_eq!(bench.said().await[2..4], ["user: two", "assistant: answer two"]);
    assert_eq!(bench.said().await.len(), 6);
}

#[actix::test]
async fn what_only_the_copy_has_of_a_turn_is_not_said_again() {
    for moment in 1.. {
        let mut bench = Bench::new().await;
        bench.turn(1, "one").await;
        bench.begin(2, "two").await.unwrap();
        bench.store_fuse.set(0);
        bench.fuse.set(moment);
        bench.end(Heard::new(2, Some("two"))).await;
        let died = bench.fuse.is_blown();
        bench.store_fuse.set(-1);
        bench.restart();
        let begun = bench.begin(3, "three").await.unwrap();
        let last = &begun.conversation.unwrap().messages[2..];
        assert_eq!(last, [message("user", "two".to_owned())], "{moment}");
        if !died {
            assert!(moment > 5, "{moment}");
            return;
        }
    }
}

#[actix::test]
async fn what_was_asked_is_known_also_if_another_program_wrote_since_the_host_died() {
    let mut bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.begin(2, "two").await.unwrap();
    bench.restart();
    bench.goes_on_elsewhere("from elsewhere").await;
    bench.begin(3, "three").await.unwrap();
    assert_eq!(bench.said().await[2..], ["user: from elsewhere", "user: two"]);
}

#[actix::test]
async fn of_a_damaged_conversation_the_copy_stands_in_and_without_one_that_is_said() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    std::fs::write(bench.stored(), "{").unwrap();
    let ready = bench.ask(MakeReady(bench.whose.clone())).await;
    assert!(ready.unreadable.is_none() && ready.notes[0].contains("its copy stands for it"), "{ready:?}");
    assert_eq!(ready.past.len(), 3);
    let begun = bench.begin(2, "two").await.unwrap();
    assert_eq!(begun.conversation.unwrap().messages.len(), 2);
    bench.end(Heard::new(2, Some("two"))).await;
    std::fs::write(bench.agent("conversation.json"), "{").unwrap();
    let ready = bench.ask(MakeReady(bench.whose.clone())).await;
    assert!(ready.unreadable.is_some(), "{ready:?}");
    assert_eq!(std::fs::read_to_string(bench.stored()).unwrap(), "{");
}

#[actix::test]
async fn what_somebody_has_removed_does_not_come_back() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    let clear = cofferdam_protocol::session::ClearRequest {
        workspace_scope: bench.whose.root.display().to_string(),
        session_ids: vec![SESSION.to_owned()],
        protected_session_ids: Vec::new(),
    };
    bench.sessions.ask(ClearSessions(clear, Vec::new())).await.unwrap();
    let begun = bench.begin(2, "two").await.unwrap();
    assert!(begun.conversation.is_none() && begun.notes[0].contains("was removed"), "{begun:?}");
    bench.end(Heard::new(2, Some("two"))).await;
    assert_eq!(bench.said().await, ["user: two"]);
}

#[actix::test]
async fn what_an_agent_says_the_conversation_is_is_stored_under_the_tasks_name() {
    let bench = Bench::new().await;
    let own = |messages: &[&str]| {
        let identity = Identity { session_id: "another".to_owned(), scope: "/elsewhere".to_owned() };
        let messages: Vec<Message> =
            messages.iter().map(|text| message("user", (*text).to_owned())).collect();
        Box::new(Envelope { messages, generation: 70, ..empty(&identity, 1) })
    };
    for (turn, messages, noted) in [
        (1, &["a"][..], false),
        (2, &["a", "b token=ghp_0123456789012345678901234567890123456789"], false),
        (3, &["c"], true),
    ] {
        bench.begin(turn, "told").await.unwrap();
        let mut heard = Heard::new(turn, Some("told"));
        heard.keeps(own(messages));
        let notes = bench.end(heard).await;
        assert_eq!(notes.iter().any(|note| note.contains("does not begin with")), noted, "{notes:?}");
        assert_eq!(bench.said().await.len(), messages.len());
    }
    assert_eq!(bench.said().await, ["user: c"]);
    // One that has less than what it was given says nothing: what was heard counts.
    bench.begin(4, "told").await.unwrap();
    let mut heard = Heard::new(4, Some("told"));
    heard.keeps(own(&[]));
    bench.end(heard).await;
    assert_eq!(bench.said().await, ["user: c", "user: told"]);
}

#[actix::test]
async fn what_another_program_wrote_meanwhile_stays() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.begin(2, "two").await.unwrap();
    bench.goes_on_elsewhere("from elsewhere").await;
    bench.end(Heard::new(2, Some("two"))).await;
    let said = bench.said().await;
    assert_eq!(said[2..], ["user: from elsewhere", "user: two"]);
}

#[actix::test]
async fn a_copy_that_cannot_be_read_is_left_where_it_is_and_not_taken_for_nothing() {
    let bench = Bench::new().await;
    bench.turn(1, "one").await;
    bench.turn(2, "two").await;
    // It cannot be read: it is too long, say, or another program's.
    let broken = |bench: &Bench| std::fs::write(bench.agent("conversation.json"), "{").unwrap();
    broken(&bench);
    std::fs::write(bench.stored(), "{").unwrap();
    let begun = bench.begin(3, "three").await.unwrap();
    assert!(begun.notes.iter().any(|note| note.contains("no checkpoint")), "{begun:?}");
    assert_eq!(std::fs::read_to_string(bench.agent("conversation.json")).unwrap(), "{");
    bench.end(Heard::new(3, Some("three"))).await;
    broken(&bench);
    let refused = bench.rewind(1).await.unwrap_err();
    assert!(refused.message.contains("nothing was changed"), "{refused:?}");
    assert!(bench.file("two").exists());
}
