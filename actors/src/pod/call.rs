//! A request on its way to the actor, and the way back of its answer.

use std::fmt;

use actix::Message;
use cofferdam_protocol::pod::Method;
use tokio::sync::oneshot;

use super::failure::{Failure, Refusal};

/// A method of the contract, sent by an adapter. The reply is used exactly once, whatever happens, and before any event
/// that the request causes; replies come in the order of the requests.
#[derive(Debug)]
pub struct Call<M: Method> {
    /// What is asked.
    pub request: M,
    /// Where the answer goes.
    pub reply: Reply<M::Result>,
}

impl<M: Method> Message for Call<M> {
    type Result = ();
}

type Respond<T> = Box<dyn FnOnce(Result<T, Failure>) + Send>;

/// Takes one answer. It is a function and not a message's result because answers and events have one order: the actor
/// calls it, and the sink of events, one after the other.
pub struct Reply<T>(Option<Respond<T>>);

impl<T> Reply<T> {
    /// A reply that calls `respond` on the actor's thread; it must not block.
    pub fn new(respond: impl FnOnce(Result<T, Failure>) + Send + 'static) -> Self {
        Self(Some(Box::new(respond)))
    }

    /// Answers.
    pub fn send(mut self, answer: Result<T, Failure>) {
        if let Some(respond) = self.0.take() {
            respond(answer);
        }
    }
}

impl<T: Send + 'static> Reply<T> {
    /// A reply and what it resolves.
    pub fn channel() -> (Self, oneshot::Receiver<Result<T, Failure>>) {
        let (sender, receiver) = oneshot::channel();
        // Whoever asked may not care any more.
        (Self::new(move |answer| drop(sender.send(answer))), receiver)
    }
}

impl<T> Drop for Reply<T> {
    /// A request that was lost on the way is answered too.
    fn drop(&mut self) {
        if let Some(respond) = self.0.take() {
            respond(Err(Refusal::Stopping.into()));
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}
