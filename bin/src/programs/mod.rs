//! What each program's `main` calls.

pub mod cofferdam;
mod manual;
pub mod pod_core;
pub mod ws_ckpt;
