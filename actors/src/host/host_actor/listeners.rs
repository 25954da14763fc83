//! Who listens to events. Nobody waits for a listener: one that is too slow loses events and is told so.

use std::sync::Arc;

use actix::prelude::{Context, Handler};
use cofferdam_protocol::host::{HostEvent, MainMessage};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::HostActor;
use crate::host::messages::{MainSession, Subscribe};

/// Everybody who listens, oldest first.
#[derive(Debug, Default)]
pub(super) struct Listeners(Vec<Listener>);

#[derive(Debug)]
struct Listener {
    /// The main session it shows, if it shows one.
    main: Option<MainSession>,
    events: Sender<Arc<HostEvent>>,
    /// Whether the last that it was told is that it loses events.
    lost: bool,
}

impl Listeners {
    fn add(&mut self, Subscribe { main, events }: Subscribe) {
        self.0.retain(|listener| !listener.events.is_closed());
        self.0.push(Listener { main, events, lost: false });
    }

    /// Whether anybody listens.
    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|listener| !listener.events.is_closed())
    }

    /// Tells everybody.
    pub(super) fn tell(&mut self, event: HostEvent) {
        let event = Arc::new(event);
        self.0.retain_mut(|listener| listener.tell(&event) != Told::Gone);
    }

    /// Tells the newest listener that shows the message's session, and nobody else: it is one message of the user. `false` if
    /// there is none that has room.
    pub(super) fn deliver(&mut self, message: &MainMessage) -> bool {
        let event = Arc::new(HostEvent::MainMessage(message.clone()));
        let shows = |listener: &&mut Listener| {
            listener.main.as_ref().is_some_and(|main| main.id == message.session_id && !main.subagent)
        };
        self.0.iter_mut().rev().filter(shows).any(|listener| listener.tell(&event) == Told::Taken)
    }

    /// The main sessions that somebody shows, each once, with what its newest client says of it.
    pub(super) fn mains(&self) -> Vec<&MainSession> {
        let mut mains: Vec<&MainSession> = Vec::new();
        for listener in self.0.iter().rev().filter(|listener| !listener.events.is_closed()) {
            if let Some(main) = &listener.main
                && !mains.iter().any(|known| known.id == main.id)
            {
                mains.push(main);
            }
        }
        mains
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Taken,
    NoRoom,
    Gone,
}

impl Listener {
    /// The last place is kept for the word that events are lost: it comes also if nothing happens afterwards, and behind
    /// everything that came before.
    fn tell(&mut self, event: &Arc<HostEvent>) -> Told {
        let has_room = self.events.capacity() > 1;
        if !has_room && self.lost && !self.events.is_closed() {
            return Told::NoRoom;
        }
        let said = if has_room { Arc::clone(event) } else { Arc::new(HostEvent::Lost) };
        match self.events.try_send(said) {
            Ok(()) => {
                self.lost = !has_room;
                if has_room { Told::Taken } else { Told::NoRoom }
            }
            Err(TrySendError::Full(_)) => Told::NoRoom,
            Err(TrySendError::Closed(_)) => Told::Gone,
        }
    }
}

impl Handler<Subscribe> for HostActor {
    type Result = ();

    fn handle(&mut self, subscribe: Subscribe, _: &mut Context<Self>) {
        if let Some(main) = &subscribe.main {
            self.mains.learn(main);
        }
        self.listeners.add(subscribe);
    }
}
