//! The actor with a real database in a directory of its own.
