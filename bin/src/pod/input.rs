//! Stdin, read by a thread of its own.
