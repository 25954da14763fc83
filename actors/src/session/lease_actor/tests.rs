//! One holder at a time, in the order of asking.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::task::yield_now;

use super::*;
use crate::mailbox::Carries;

fn start() -> Lease {
    LeaseActor::default().start().into()
}

async fn acquire(lease: &Lease) -> ManagementLease {
    lease.recipient().send(AcquireLease).await.unwrap()
}

#[actix::test]
async fn one_at_a_time_has_the_lease_in_the_order_of_asking() {
    let lease = start();
    let first = acquire(&lease).await;
    let had = Rc::new(RefCell::new(Vec::new()));
    let mut waiting = Vec::new();
    for who in 0..5 {
        let (asked, had) = (lease.recipient().send(AcquireLease), Rc::clone(&had));
        waiting.push(actix::spawn(async move {
            let _held = asked.await.unwrap();
            had.borrow_mut().push(who);
            yield_now().await;
            had.borrow_mut().push(who);
        }));
    }
    for _ in 0..10 {
        yield_now().await;
    }
    assert!(had.borrow().is_empty(), "the first holder still has it");
    drop(first);
    for one in waiting {
        one.await.unwrap();
    }
    assert_eq!(*had.borrow(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
}

#[actix::test]
async fn whoever_gave_up_waiting_is_passed_over() {
    let lease = start();
    let held = acquire(&lease).await;
    let (gone, next) = (lease.recipient().send(AcquireLease), lease.recipient().send(AcquireLease));
    drop(gone);
    drop(held);
    next.await.unwrap();
    // The one before let go at the end of its statement.
    acquire(&lease).await;
}
