//! What each program's `main` calls.

pub mod cofferdam;
mod manual;
pub mod ws_ckpt;
