//! The few system calls that no safe crate has. The only `unsafe` of the workspace.
#![allow(unsafe_code, reason = "each block says why it is sound")]
