//! Panics, and who waits for whom. What each request leads to is for the tests of the operations.

use std::pin::Pin;
use std::sync::mpsc;

use cofferdam_protocol::session::SessionErrorCode;
use cofferdam_storage::session::Error;
use cofferdam_storage::session::config::Places;
use tokio::sync::oneshot;

use super::*;
use crate::session::lease_actor::LeaseActor;

/// Says that it has begun and waits to be let go.
#[derive(Message)]
#[rtype(result = "Result<u8, SessionError>")]
struct Held<const UNDER_LEASE: bool>(oneshot::Sender<()>, mpsc::Receiver<()>);

impl<const UNDER_LEASE: bool> Operation for Held<UNDER_LEASE> {
    type Done = u8;
    const UNDER_LEASE: bool = UNDER_LEASE;

    fn run(self, _: &Parts) -> Result<u8, Error> {
        self.0.send(()).unwrap();
        // An error is a test that ended.
        let _ = self.1.recv();
        Ok(1)
    }
}

#[derive(Message)]
#[rtype(result = "Result<u8, SessionError>")]
struct Panics;

impl Operation for Panics {
    type Done = u8;

    fn run(self, _: &Parts) -> Result<u8, Error> {
        panic!("planned")
    }
}

#[derive(Message)]
#[rtype(result = "Result<u8, SessionError>")]
struct Works<const UNDER_LEASE: bool>;

impl<const UNDER_LEASE: bool> Operation for Works<UNDER_LEASE> {
    type Done = u8;
    const UNDER_LEASE: bool = UNDER_LEASE;

    fn run(self, _: &Parts) -> Result<u8, Error> {
        Ok(2)
    }
}

fn start() -> (Addr<SessionStoreActor>, Lease) {
    let lease: Lease = LeaseActor::default().start().into();
    (SessionStoreActor::new(Parts::new(Places::default()), lease.clone()).start(), lease)
}

/// An operation that has begun, and what lets it go.
async fn begun<const UNDER_LEASE: bool>(
    store: &Addr<SessionStoreActor>,
) -> (Pin<Box<Request<SessionStoreActor, Held<UNDER_LEASE>>>>, mpsc::Sender<()>) {
    let ((began, beginning), (go, going)) = (oneshot::channel(), mpsc::channel());
    let mut asked = Box::pin(store.send(Held::<UNDER_LEASE>(began, going)));
    tokio::select! {
        begun = beginning => begun.unwrap(),
        _ = &mut asked => panic!("it was let go too early"),
    }
    (asked, go)
}

#[actix::test]
async fn a_panic_becomes_an_error_that_blames_nobody_and_the_actor_lives() {
    let (store, _) = start();
    let error = store.send(Panics).await.unwrap().unwrap_err();
    assert_eq!((error.code, error.recoverable), (SessionErrorCode::Io, true));
    assert_eq!(error.message, "internal error: the request panicked");
    assert_eq!(store.send(Works::<false>).await.unwrap(), Ok(2));
}

#[actix::test]
async fn requests_do_not_wait_for_each_other() {
    let (store, _) = start();
    let (slow, go) = begun::<true>(&store).await;
    assert_eq!(store.send(Works::<false>).await.unwrap(), Ok(2));
    go.send(()).unwrap();
    assert_eq!(slow.await.unwrap(), Ok(1));
}

#[actix::test]
async fn what_needs_the_lease_waits_for_it() {
    let (store, lease) = start();
    let held = lease.recipient().send(AcquireLease).await.unwrap();
    let mut waiting = Box::pin(store.send(Works::<true>));
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("it did not wait"),
        others = store.send(Works::<false>) => assert_eq!(others.unwrap(), Ok(2)),
    }
    drop(held);
    assert_eq!(waiting.await.unwrap(), Ok(2));
}

#[actix::test]
async fn the_lease_is_held_as_long_as_the_work_lasts_even_if_nobody_waits_for_it() {
    let (store, lease) = start();
    let (slow, go) = begun::<true>(&store).await;
    drop(slow);
    let mut next = Box::pin(lease.recipient().send(AcquireLease));
    tokio::select! {
        biased;
        _ = &mut next => panic!("the work is not done"),
        others = store.send(Works::<false>) => assert_eq!(others.unwrap(), Ok(2)),
    }
    go.send(()).unwrap();
    next.await.unwrap();
}
