//! What each program's `main` calls.

pub mod cofferdam;
pub mod cosh_core;
mod manual;
pub mod pod_core;
pub mod ws_ckpt;
