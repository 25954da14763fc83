//! A live task, rule by rule, in virtual time.

mod beginning;
mod bench;
mod ends;
mod limits;
mod remembering;
mod turns;
