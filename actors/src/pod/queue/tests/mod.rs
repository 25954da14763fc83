//! The state machine, without disk, clock or mailbox.
