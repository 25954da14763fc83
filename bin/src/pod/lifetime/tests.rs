//! What ends a sidecar, and how soon.

use std::any::Any;
use std::process::{Command, Stdio};
use std::sync::mpsc::{TryRecvError, channel};

use actix::{Actor, Context, Handler};
use cofferdam_actors::pod::Call;
use cofferdam_protocol::pod::Method;

use super::*;

#[test]
fn the_end_of_the_watched_process_ends_the_sidecar() {
    let (sender, causes) = channel();
    let mut host = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&host);
    Lifetime::new(sender).end_with(pidfd_open(pid, PidfdFlags::empty()).unwrap()).unwrap();
    assert_eq!(causes.try_recv(), Err(TryRecvError::Empty));
    host.kill().unwrap();
    host.wait().unwrap();
    assert_eq!(causes.recv(), Ok(Cause::ParentGone));
}

#[test]
fn only_the_parent_is_watched_and_only_once() {
    let (sender, causes) = channel();
    let lifetime = Lifetime::new(sender);
    for stranger in [0, std::process::id(), u32::MAX] {
        lifetime.watch_host(stranger);
    }
    assert!(!lifetime.watching.load(Ordering::Relaxed));
    let parent = getppid().unwrap().as_raw_nonzero().get().unsigned_abs();
    lifetime.watch_host(parent);
    lifetime.watch_host(parent);
    assert!(lifetime.watching.load(Ordering::Relaxed));
    assert!(causes.try_recv().is_err());
}

/// What is heard of a host that has closed stdin, of which something was not read yet.
fn hang_up(reads: bool, patience: Duration) -> Option<Cause> {
    let (sender, causes) = channel();
    let (input, output) = rustix::pipe::pipe().unwrap();
    rustix::io::write(&output, b"unread").unwrap();
    let (reading, read) = channel();
    let reading = (!reads).then_some(reading);
    let watching = thread::spawn(move || Lifetime::new(sender).watch_input(input, &read, patience));
    drop(output);
    watching.join().unwrap();
    drop(reading);
    causes.try_recv().ok()
}

#[test]
fn a_host_that_closed_stdin_is_waited_for_only_while_it_reads() {
    assert_eq!(hang_up(false, Duration::from_millis(10)), Some(Cause::HungUp));
    assert_eq!(hang_up(true, Duration::from_secs(3600)), None);
}

/// Drops every request, which answers it, or keeps it for ever.
struct Closing {
    hangs: bool,
    kept: Vec<Box<dyn Any>>,
}

impl Actor for Closing {
    type Context = Context<Self>;
}

impl<M: Method> Handler<Call<M>> for Closing {
    type Result = ();

    fn handle(&mut self, call: Call<M>, _: &mut Context<Self>) {
        if self.hangs {
            self.kept.push(Box::new(call));
        }
    }
}

/// Lets two causes come and says which one counted, and whether everything was printed.
async fn end(hangs: bool, patience: Duration) -> (Cause, bool) {
    let actor = Closing { hangs, kept: Vec::new() }.start();
    let pod = Pod::from((actor.clone(), actor));
    // An actor whose last address is gone ends, and drops what it keeps.
    let _actor_lives = pod.clone();
    let (outbox, (sender, causes)) = (Arc::<Outbox>::default(), channel());
    let ((printing, printed), printer) = (channel(), Arc::clone(&outbox));
    let printer = thread::spawn(move || {
        printer.print(io::sink(), |error| panic!("{error}"));
        drop(printing);
    });
    let lifetime = Lifetime::new(sender);
    lifetime.end(Cause::EndOfInput);
    lifetime.end(Cause::OutputBroken);
    let last = Arc::clone(&outbox);
    let ending = tokio::task::spawn_blocking(move || end_in_time(&causes, &printed, &pod, &last, patience));
    let cause = ending.await.unwrap();
    let closed = printer.is_finished();
    assert!(outbox.admit(0).is_none());
    outbox.close();
    printer.join().unwrap();
    (cause, closed)
}

#[actix::test]
async fn the_first_cause_counts_and_what_waits_is_printed() {
    assert_eq!(end(false, Duration::from_secs(3600)).await.0, Cause::EndOfInput);
}

#[actix::test]
async fn a_database_that_hangs_does_not_keep_the_sidecar() {
    assert_eq!(end(true, Duration::from_millis(10)).await, (Cause::EndOfInput, false));
}
