//! Sessions, as programs speak of them.

pub(crate) mod headless;
