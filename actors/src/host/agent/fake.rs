//! A scripted agent, for tests of the host and of what is built on it: what it is told is the script of its turn.

use actix::prelude::{Actor, Context};

use super::Preset;

/// The scripted backend.
#[derive(Debug, Default)]
pub struct FakeBackend {}

impl Actor for FakeBackend {
    type Context = Context<Self>;
}

/// Starts one in the running actix system; its preset is called `fake`.
pub fn start() -> Preset {
    unimplemented!()
}
