//! The table from a method's name to its message.
