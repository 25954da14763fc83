//! What each program's `main` calls.

pub mod cofferdam;
pub mod cosh_core;
mod manual;
pub mod pod_core;
mod pod_supervisor;
pub mod ws_ckpt;
