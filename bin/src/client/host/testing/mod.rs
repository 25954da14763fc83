//! A daemon that a test plays on a control socket, and documents to answer with.

mod documents;
mod stub;

pub(super) use documents::*;
pub(super) use stub::*;
