//! Deadlines, in virtual time.
