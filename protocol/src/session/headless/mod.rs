//! The JSON lines of a running conversation: what a client sends, and what is answered.

mod input;
mod output;
