//! The end of the host: end of input, death of the parent, a signal.
