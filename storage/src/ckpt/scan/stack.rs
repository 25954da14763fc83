//! A stack of work that some threads share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work to be done, last in first out. It ends when nothing is left and nobody is busy, or when it is stopped.
#[derive(Debug)]
pub(super) struct Stack<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: Vec<T>,
    busy: usize,
    waiting: usize,
    stopped: bool,
}

/// While it lives the work that came with it is not done.
#[derive(Debug)]
pub(super) struct Busy<'a, T>(&'a Stack<T>);

impl<T> Stack<T> {
    pub(super) fn new() -> Self {
        let state = State { items: Vec::new(), busy: 0, waiting: 0, stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds work; the last of it is taken first.
    pub(super) fn push(&self, items: impl IntoIterator<Item = T>) {
        let mut state = self.lock();
        state.items.extend(items);
        if state.waiting > 0 && !state.items.is_empty() {
            self.changed.notify_all();
        }
    }

    /// Takes work, waiting while somebody who is busy may still add some.
    pub(super) fn next(&self) -> Option<(T, Busy<'_, T>)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(item) = state.items.pop() {
                state.busy += 1;
                return Some((item, Busy(self)));
            }
            if state.busy == 0 {
                return None;
            }
            state.waiting += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Lets everybody go home.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Busy<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        // The others must not wait for what will not come.
        state.stopped |= std::thread::panicking();
        if state.stopped || (state.busy == 0 && state.items.is_empty()) {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn work_that_makes_work_is_done_to_the_end_by_all() {
        let (stack, done) = (Stack::new(), AtomicUsize::new(0));
        stack.push([10_usize]);
        std::thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    while let Some((size, _busy)) = stack.next() {
                        done.fetch_add(1, Ordering::Relaxed);
                        stack.push((0..size).filter(|n| n % 2 == 0));
                    }
                });
            }
        });
        // f(n) = 1 + f(0) + f(2) + ... below n
        assert_eq!(done.load(Ordering::Relaxed), 32);
    }

    #[test]
    fn a_panic_ends_the_wait_of_the_others() {
        let stack = Stack::new();
        stack.push([()]);
        let first = stack.next();
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| stack.next().is_none());
            let panics = threads.spawn(|| {
                let _busy = first;
                panic!("on purpose");
            });
            assert!(panics.join().is_err());
            assert!(waits.join().unwrap());
        });
    }
}
