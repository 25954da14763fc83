//! Sessions, as programs speak of them.

pub(crate) mod control;
pub(crate) mod headless;
