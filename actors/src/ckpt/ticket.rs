//! A write that waits for its turn belongs to whoever takes it first: the actor that runs it, or the client's
//! patience.

use std::sync::{Arc, Mutex, PoisonError};

/// Holds an operation until it is begun or given up, whichever comes first.
#[derive(Debug)]
pub(crate) struct Ticket<O>(Arc<Mutex<Option<O>>>);

impl<O> Ticket<O> {
    /// A ticket for an operation that nobody has begun.
    pub(crate) fn new(operation: O) -> Self {
        Self(Arc::new(Mutex::new(Some(operation))))
    }

    /// Takes the operation to run it; `None` if it was given up.
    pub(crate) fn begin(&self) -> Option<O> {
        self.take()
    }

    /// Gives the operation up; false if it was begun, and then its end is to be waited for.
    pub(crate) fn give_up(&self) -> bool {
        self.take().is_some()
    }

    fn take(&self) -> Option<O> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<O> Clone for Ticket<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
