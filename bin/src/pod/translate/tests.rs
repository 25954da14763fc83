//! Every method of the contract against the table, with an actor that notes what it is asked.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use actix::prelude::*;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::pod::outbox::Outbox;

/// Takes every message and answers none.
struct Recorder(UnboundedSender<&'static str>);

impl Actor for Recorder {
    type Context = Context<Self>;
}

impl<M: Method> Handler<Call<M>> for Recorder {
    type Result = ();

    fn handle(&mut self, _: Call<M>, _: &mut Context<Self>) {
        self.0.send(M::NAME).unwrap();
    }
}

struct Bench {
    translator: Translator,
    outbox: Arc<Outbox>,
    asked: UnboundedReceiver<&'static str>,
    causes: Receiver<Cause>,
}

impl Bench {
    fn new() -> Self {
        let ((asking, asked), (ending, causes)) = (unbounded_channel(), channel());
        let actor = Recorder(asking).start();
        let pod = (actor.clone(), actor).into();
        let translator = Translator { pod, lifetime: Lifetime::new(ending) };
        Self { translator, outbox: Arc::default(), asked, causes }
    }

    fn line(&self, line: Line) -> ControlFlow<()> {
        self.translator.line(line, self.outbox.admit(0).unwrap())
    }

    fn send(&self, request: &Value) -> ControlFlow<()> {
        self.line(Line::Whole(request.to_string().into_bytes()))
    }

    /// What was printed.
    fn answers(self) -> Vec<Value> {
        let mut printed = Vec::new();
        self.outbox.close();
        self.outbox.print(&mut printed, |error| panic!("{error}"));
        serde_json::Deserializer::from_slice(&printed).into_iter().map(Result::unwrap).collect()
    }
}

/// Params that suit every method, since each ignores what it does not know.
fn params() -> Value {
    json!({
        "protocol": 1, "dbPath": "/d/pod.db", "patch": {}, "taskId": "a", "sessionId": "s", "mainSessionId": "m",
        "label": "l", "description": "d", "leaseId": "L", "turn": 1, "reason": "completed", "text": "t",
        "check": {"mode": "read-only", "root": "/r", "probe": "denied", "fsDenied": true, "note": "", "at": 1},
        "tools": ["read"], "code": "X", "message": "m", "relPath": "f", "entries": ["f"], "targetDir": "/t",
        "exportId": "e",
    })
}

#[actix::test]
async fn each_method_reaches_the_actors() {
    let mut bench = Bench::new();
    for name in METHOD_NAMES {
        let last = bench.send(&json!({"id": name, "method": name, "params": params()})).is_break();
        assert_eq!(last, *name == "shutdown", "{name}");
        assert_eq!(bench.asked.recv().await, Some(*name));
    }
    assert_eq!(bench.causes.try_iter().collect::<Vec<_>>(), [Cause::Shutdown]);

    let answers = bench.answers();
    assert_eq!(answers.len(), METHOD_NAMES.len(), "each request is answered once");
    for answer in answers {
        assert_eq!(answer["error"]["code"], "CORE_UNAVAILABLE", "{answer}");
    }
}

#[actix::test]
async fn what_is_no_request_is_answered_and_reaches_nobody() {
    let mut bench = Bench::new();
    assert!(bench.line(Line::TooLong).is_continue());
    for line in ["no json", "[1,2]", r#"{"id":7,"method":"health"}"#, r#"{"id":"a"}"#] {
        assert!(bench.line(Line::Whole(line.as_bytes().to_vec())).is_continue());
    }
    for (id, method) in [("b", "no.such"), ("c", "Health"), ("d", "")] {
        assert!(bench.send(&json!({"id": id, "method": method})).is_continue());
    }
    assert!(bench.send(&json!({"id": "e", "method": "shutdown", "params": []})).is_continue());
    assert!(bench.send(&json!({"id": "f", "method": "task.get", "params": {"taskId": 5}})).is_continue());
    assert!(bench.asked.try_recv().is_err());

    let answers = bench.answers();
    assert_eq!(answers[0]["error"]["data"], json!({"limit": 1_048_576}));
    let told: Vec<_> =
        answers.iter().map(|answer| (answer["id"].as_str(), &answer["error"]["code"])).collect();
    let (bad, unknown) = (json!("BAD_REQUEST"), json!("UNKNOWN_METHOD"));
    assert_eq!(
        told,
        [
            (None, &bad),
            (None, &bad),
            (None, &bad),
            (None, &bad),
            (Some("a"), &bad),
            (Some("b"), &unknown),
            (Some("c"), &unknown),
            (Some("d"), &unknown),
            (Some("e"), &bad),
            (Some("f"), &bad),
        ]
    );
}

#[actix::test]
async fn a_sidecar_without_actors_ends() {
    let (asking, _asked) = unbounded_channel();
    let (ending, causes) = channel();
    let actor = Recorder(asking).start();
    let pod = Pod::from((actor.clone(), actor.clone()));
    actor.do_send(Stop);
    while actor.connected() {
        tokio::task::yield_now().await;
    }
    let outbox = Arc::<Outbox>::default();
    let translator = Translator { pod, lifetime: Lifetime::new(ending) };
    let line = Line::Whole(br#"{"id":"1","method":"health"}"#.to_vec());
    assert!(translator.line(line, outbox.admit(0).unwrap()).is_continue());
    assert_eq!(causes.try_recv(), Ok(Cause::ActorsGone));
}

/// Ends the actor, as a panic would.
#[derive(Message)]
#[rtype(result = "()")]
struct Stop;

impl Handler<Stop> for Recorder {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}
