//! A workspace's directory: its name, and the descriptor that holds it.
